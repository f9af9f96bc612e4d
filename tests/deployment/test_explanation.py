from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.jobs import Job, write_journal
from ps2stream.cli.render.explanation_text import object_of, text_of
from ps2stream.config import Settings
from ps2stream.deployment.explanation import explain, offset_from
from ps2stream.deployment.home import Home
from ps2stream.deployment.publication_lookup import KnownPublication, publication_with_id
from ps2stream.deployment.subscription_history import Version, version_for, versions_of
from ps2stream.engines.inline import InlineEngine
from ps2stream.errors import JournalError
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE
from ps2stream.model.space import Region
from ps2stream.planning.first_plan import first_plan
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.testing import generators, oracle
from ps2stream.text.tokenizer import Tokenizer
from strategies import event_logs, points, regions

WORLD = Region(-180, -90, 180, 90)


def _with_own_ids(log: pa.Table) -> pa.Table:
    rows = log.to_pylist()
    for number, row in enumerate(rows):
        if row["op"] == PUBLISH and row["id"]:
            row["id"] = f"p{number}"
    return pa.Table.from_pylist(rows, EVENTS)


@given(event_logs(max_size=25), st.booleans())
@settings(max_examples=15, deadline=None)
def test_the_verdict_on_every_pair_is_the_oracles(log: pa.Table, with_job: bool) -> None:
    setup = Settings(n_workers=3, stop_words=("smoke",) if with_job else ())
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory))
        events = write_journal(home, _with_own_ids(log))
        plan = None
        if with_job:
            job = Job(home, setup)
            job.process(2)
            plan = job.state.plan()
        outcome = oracle.run(events, setup.stop_words)
        expected = {(match.publication_id, match.subscription_id): match for match in outcome.matches}
        rejected = {rejection.seq for rejection in outcome.rejected}
        valid = [row for row in events.to_pylist() if row["seq"] not in rejected]
        with Journal.open(home.journal) as journal:
            published = [publication_with_id(journal, row["id"]) for row in valid if row["op"] == PUBLISH]
        for subscription_id in {row["id"] for row in valid if row["op"] == SUBSCRIBE}:
            versions = versions_of(home, subscription_id)
            for publication in published:
                version = version_for(versions, publication.seq)
                explanation = explain(publication, version, Tokenizer(setup.stop_words), plan)
                match = expected.get((str(publication.id), subscription_id))
                assert explanation.matches == (match is not None)
                assert match is None or match.subscription_seq == version.seq_from
                assert text_of(explanation).splitlines()[-1].startswith("match" if match else "no match")
                assert object_of(explanation)["matches"] == explanation.matches


def test_a_pruned_journal_leaves_the_versions_that_live(home: Home) -> None:
    bounds = dict.fromkeys(("min_lon", "min_lat", "max_lon", "max_lat"), 0.0)
    rows: list[dict[str, Any]] = [
        {"op": SUBSCRIBE, "id": "a", "expression": "one", **bounds},
        {"op": SUBSCRIBE, "id": "a", "expression": "two", **bounds},
        {"op": "unsubscribe", "id": "a"},
        {"op": SUBSCRIBE, "id": "a", "expression": "three", **bounds},
        {"op": PUBLISH, "id": "p", "lat": 0.0, "lon": 0.0, "text": "three"},
    ]
    write_journal(home, pa.Table.from_pylist(rows, EVENTS), 1)

    def spans() -> list[tuple[int | None, int | None, bool]]:
        return [(one.seq_from, one.seq_to, one.replaced) for one in versions_of(home, "a")]

    before = [(1, 2, True), (2, 3, False), (4, None, False)]
    assert spans() == before
    job = Job(home, Settings(n_workers=2))
    job.process()
    assert spans() == before
    job.snapshot()
    job.prune()
    assert spans() == [(4, None, False)]


def test_the_version_that_a_publication_met_is_chosen() -> None:
    versions = [Version("a", WORLD, "q", 5, 8), Version("b", WORLD, "q", 10, None)]
    assert [version_for(versions, seq).expression for seq in (3, 6, 9, 11, None)] == ["a", "a", "a", "b", "b"]
    assert [version_for(versions, seq).sees(seq) for seq in (3, 6, 8, 9, 11, None)] == [
        *(False, True, False, False, True, True)
    ]


def test_the_worker_named_is_the_one_that_finds_the_match() -> None:
    setup = Settings(n_workers=5)
    n_matches = 0
    for seed in range(6):
        events = generators.random_events(120, seed, invalid_share=0).combine_chunks().to_batches()[0]
        plan = first_plan(events, setup)
        engine = InlineEngine(plan, setup)
        matches = engine.process(events).matches.to_pylist()
        rows = {row["seq"]: row for row in events.to_pylist()}
        dispatcher = Dispatcher(engine.registrar.grid_ts, setup.tokenizer())
        for match in matches[:40]:
            row, asked = rows[match["publication_seq"]], rows[match["subscription_seq"]]
            region = Region(*(asked[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat")))
            publication = KnownPublication(row["lat"], row["lon"], row["text"], row["id"], row["seq"])
            explanation = explain(publication, Version(asked["expression"], region), Tokenizer(), plan)
            assert explanation.reporting is not None
            assert explanation.reporting.posting is not None
            batch = events.filter(np.array(events.column("seq")) == row["seq"])
            packets = dispatcher.dispatch(batch.select(["seq", "id", "lat", "lon", "text"])).packets
            finders = [
                worker
                for worker, packet in packets.items()
                if asked["seq"] in engine.workers[worker].match(packet, -1).column(2).flatten().to_pylist()
            ]
            assert finders in ([], [explanation.reporting.posting.worker])
            n_matches += bool(finders)
    assert n_matches > 20


@given(regions, points)
def test_an_offset_is_0_inside_and_leads_back_to_the_edge(bounds: Any, point: tuple[float, float]) -> None:
    region = Region(*bounds)
    lon, lat = point
    offset = offset_from(region, lon, lat)
    if region.contains(lon, lat):
        assert (offset.north, offset.east) == (0.0, 0.0)
        return
    assert region.min_lat - 1e-9 <= lat - offset.north <= region.max_lat + 1e-9
    assert abs(offset.east) <= 180
    if offset.east:
        back = (lon - offset.east) % 360
        edges = (region.min_lon % 360, region.max_lon % 360)
        assert any(
            math.isclose(back, edge, abs_tol=1e-9) or abs(abs(back - edge) - 360) < 1e-9 for edge in edges
        )


def test_an_offset_takes_the_shorter_way_round() -> None:
    region = Region(170, 0, 175, 10)
    assert offset_from(region, -175, 12).east == 10
    assert offset_from(region, -175, 12).north == 2
    assert offset_from(region, 160, -3).east == -10
    assert offset_from(region, 160, -3).north == -3


def test_the_text_tells_every_test(home: Home) -> None:
    publication = KnownPublication(50.0, 11.5, "The Fire!", "p", 9)
    version = Version("fire AND (smoke OR flames)", Region(11, 48, 12, 49), "q", 3, 7)
    text = text_of(explain(publication, version, Tokenizer(["the"]), None))
    for line in (
        "publication 'p', seq 9",
        "  terms       fire",
        "  stop words  the",
        "words: no, 2 clauses: one satisfied is enough, tried in this order",
        "region: no, the point lies 1 degrees (111 km) north of it",
        "order: no, unsubscribed at seq 7, before the publication at seq 9",
        "routing: there is no plan yet; the first start of 'ps2stream run' makes it",
        "no match: the text lacks words, and the point lies outside the region, "
        "and the subscription was not there at that time",
    ):
        assert line in text.splitlines()
    assert "fire AND flames: missing flames" in text


def test_the_other_spelling_of_the_antimeridian_is_named() -> None:
    text = text_of(
        explain(KnownPublication(0, 180, "a"), Version("a", Region(-180, -1, 0, 1)), Tokenizer(), None)
    )
    assert "on its edge, but written as the other one of 180 and -180 degrees" in text


def test_what_is_not_known_or_not_valid_says_so(home: Home) -> None:
    rows: list[dict[str, Any]] = [
        {"op": PUBLISH, "id": "bad", "lat": 95.0, "lon": 0.0, "text": "x"},
        {"op": SUBSCRIBE, "id": "bad", "expression": "(", **dict.fromkeys(("min_lon", "min_lat"), 0.0)},
    ]
    write_journal(home, pa.Table.from_pylist(rows, EVENTS))
    with Journal.open(home.journal) as journal:
        with pytest.raises(JournalError, match="no publication with the id 'p'"):
            publication_with_id(journal, "p")
        with pytest.raises(JournalError, match="'bad' at seq 1 is rejected: lat must lie"):
            publication_with_id(journal, "bad")
    with pytest.raises(JournalError, match="no subscription with the id 'q' is known"):
        versions_of(home, "q")
    with pytest.raises(JournalError, match="subscribe 'bad' at seq 2 is rejected: max_lon"):
        versions_of(home, "bad")
