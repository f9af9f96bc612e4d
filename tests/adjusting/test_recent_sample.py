"""The recent past: a sample of the newest publications with who lives, and what is in a cell."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.deployments import Deployment, local_stream, posting_terms, random_plan
from engines.streams import TOKENIZER, publications_of
from matching.scan import cells_of, columns_of, random_subscriptions
from ps2stream.adjusting import recent_sample as recent_module
from ps2stream.adjusting.recent_sample import CellEvidence, RecentSample
from ps2stream.arrays import Ragged
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream.partitioning.sample import Sample
from ps2stream.registry.segments import BOUNDS
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.packets import SAMPLED
from strategies import points

NOBODY = columns_of([])


def _published(*numbers: int) -> pa.RecordBatch:
    """Make publications that can be told apart."""
    rows = [{"lon": float(n), "lat": -float(n), "terms": [n, n + 1]} for n in numbers]
    return pa.RecordBatch.from_pylist(rows, SAMPLED)


def _numbers(sample: Sample) -> list[int]:
    return [int(lon) for lon in sample.lon]


@pytest.mark.parametrize(
    ("sizes", "kept"), [([3, 3, 3], 9), ([4, 4, 4], 12), ([4, 4, 4, 2], 10), ([30, 1], 31), ([10, 10], 10)]
)
def test_as_many_of_the_newest_publications_are_kept_as_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], kept: int
) -> None:
    monkeypatch.setattr(recent_module, "KEPT", 10)
    recent, last = RecentSample(), 0
    for size in sizes:
        recent.add([_published(*range(last, last + size))], size, 0)
        last += size
    sample = recent.sample(NOBODY, 0)
    assert _numbers(sample) == list(range(last - kept, last)), "whole batches, the oldest of which go first"


def test_a_sample_has_the_publications_with_their_terms_and_the_subscriptions_as_they_are() -> None:
    stored = columns_of(random_subscriptions(random.Random(1), 7, 1))
    recent = RecentSample()
    recent.add([_published(1, 2), _published(5)], 300, 60)
    sample = recent.sample(stored, 70)
    assert _numbers(sample) == [1, 2, 5]
    assert sample.lat.tolist() == [-1.0, -2.0, -5.0]
    assert [sample.terms.row(row).tolist() for row in range(3)] == [[1, 2], [2, 3], [5, 6]]
    assert (sample.n_publications, sample.n_subscriptions, sample.n_live) == (3, 7, 70)
    np.testing.assert_array_equal(sample.bounds, stored.bounds)
    np.testing.assert_array_equal(sample.clause_terms, stored.terms)
    assert sample.churn == pytest.approx(0.1), "half of the updates begin something, the others end it"


def test_the_mix_is_that_of_the_recent_past() -> None:
    recent = RecentSample()
    for _ in range(50):
        recent.add([], 1000, 2000)
    assert recent.sample(NOBODY, 0).churn == pytest.approx(1.0, rel=0.01)
    for _ in range(50):
        recent.add([], 1000, 200)
    assert recent.sample(NOBODY, 0).churn == pytest.approx(0.1, rel=0.1)


def test_nothing_is_a_sample_too() -> None:
    sample = RecentSample().sample(NOBODY, 0)
    assert (sample.n_publications, sample.n_subscriptions) == (0, 0)
    assert sample.churn == 0.0
    assert isinstance(sample.terms, Ragged)
    assert sample.terms.n_rows == 0


def _deployment(seed: int) -> tuple[Deployment, RecentSample, list[dict[str, Any]]]:
    """Let a stream pass, and remember all of its publications."""
    events = local_stream(200, seed)
    deployment = Deployment(random_plan(random.Random(seed)))
    deployment.process(events)
    publications = publications_of(events)
    done = Dispatcher(deployment.registrar.grid_ts, TOKENIZER).dispatch(publications)
    recent = RecentSample()
    recent.add([done.sampled], publications.num_rows, 100)
    return deployment, recent, publications.to_pylist()


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_of_a_cell_is_what_was_published_in_it_and_who_asks_for_it(seed: int) -> None:
    deployment, recent, publications = _deployment(seed)
    plan, live = deployment.registrar.plan, deployment.live()
    evidence = CellEvidence(recent, deployment.registrar, 0)
    n_publications = 0
    for cell in range(plan.grid.n_cells):
        sample = evidence(cell)
        here = [row for row in publications if plan.grid.cell(row["lon"], row["lat"]) == cell]
        assert sample.lon.tolist() == [row["lon"] for row in here]
        terms = [sample.terms.row(row).tolist() for row in range(sample.n_publications)]
        assert terms == [TOKENIZER.tokenize(pa.array([row["text"]])).values.tolist() for row in here]
        asking = {
            seq: row
            for seq, row in sorted(live.items())
            if cell in cells_of(plan.grid, Region(*(row[name] for name in BOUNDS)))  # type: ignore[arg-type]
        }
        assert sample.bounds.reshape(-1, 4).tolist() == [
            [row[name] for name in BOUNDS] for row in asking.values()
        ]
        assert sample.n_live == sample.n_subscriptions == len(asking)
        posted = [
            sample.clause_terms[sample.clause_offsets[i] : sample.clause_offsets[i + 1]].tolist()
            for i in range(len(asking))
        ]
        assert posted == [posting_terms(plan, row) for row in asking.values()]
        assert np.diff(sample.term_offsets).tolist() == [1] * len(sample.clause_terms)
        n_publications += len(here)
    assert n_publications == len(publications)


def test_of_the_subscriptions_of_a_busy_cell_some_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment, recent, _ = _deployment(4)
    everything = CellEvidence(recent, deployment.registrar, 0)
    busiest = max(range(64), key=lambda cell: everything(cell).n_subscriptions)
    n_live = everything(busiest).n_live
    assert n_live > 8
    monkeypatch.setattr(recent_module, "_CELL_SUBSCRIPTIONS", 5)
    samples = [CellEvidence(recent, deployment.registrar, seed)(busiest) for seed in (0, 0, 1, 2, 3)]
    assert {sample.n_subscriptions for sample in samples} == {5}
    assert {sample.n_live for sample in samples} == {n_live}
    assert samples[0].live_weight == n_live / 5
    np.testing.assert_array_equal(samples[0].bounds, samples[1].bounds, err_msg="the seed decides")
    assert len({tuple(sample.bounds.tolist()) for sample in samples}) > 1
    evidence = CellEvidence(recent, deployment.registrar, 0)
    assert evidence(busiest) is evidence(busiest), "asked again it says the same"


@given(st.lists(points, min_size=1, max_size=20), st.integers(0, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_publications_are_found_in_the_cells_that_the_kernels_put_them_in(
    drawn: list[tuple[float, float]], bits: int, data: st.DataObject
) -> None:
    bounds = data.draw(st.sampled_from([WORLD, (-10.0, -10.0, 10.0, 10.0), (5.0, 5.0, 5.0, 5.0)]))
    grid = Grid.over(bounds, bits)
    rows = [{"lon": lon, "lat": lat, "terms": []} for lon, lat in drawn]
    recent = RecentSample()
    recent.add([pa.RecordBatch.from_pylist(rows, SAMPLED)], len(rows), 0)
    found = recent_module._cells_of(grid, recent.sample(NOBODY, 0))
    assert found.tolist() == [grid.cell(lon, lat) for lon, lat in drawn]
