"""The inline engine gives the oracle's matches, also where it compacts between batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from engines.streams import batches_of, events_of, plan_for, publish, random_stream, subscribe, unsubscribe
from ps2stream.adjusting.controller import Adjusted, Observed
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.inline import InlineEngine
from ps2stream.matching.index import GI2
from ps2stream.registry.index import Registry
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import WorkerHost
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_expression, random_text

SETTINGS = Settings(n_workers=3, n_dispatchers=2, grid_bits=6, max_cells=8)


@pytest.fixture
def eager_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GI2, "should_compact", lambda self: True)
    monkeypatch.setattr(Registry, "should_compact", lambda self: True)


@pytest.mark.usefixtures("eager_compaction")
@pytest.mark.parametrize("seed", range(4))
def test_compacting_before_every_batch_loses_no_match(seed: int) -> None:
    events = random_stream(250, seed, n_subscription_ids=15)
    engine = InlineEngine(plan_for(events, SETTINGS), SETTINGS)
    outcomes = [engine.process(batch) for batch in batches_of(events, 20)]
    expected = oracle.run(events)
    found = [tuple(row.values()) for outcome in outcomes for row in outcome.matches.to_pylist()]
    assert found == [tuple(match) for match in expected.matches]
    rejected = [row["seq"] for outcome in outcomes for row in outcome.rejected.to_pylist()]
    assert sorted(rejected) == sorted(each.seq or 0 for each in expected.rejected)
    assert any(worker.index.counts().n_matches for worker in engine.workers)


def test_what_comes_late_is_rejected_and_changes_nothing() -> None:
    engine = InlineEngine(plan_for(events_of(), SETTINGS), SETTINGS)
    engine.process(events_of(subscribe(5, "a"), publish(9, "p")))
    outcome = engine.process(events_of(unsubscribe(6, "a"), publish(10, "q")))
    assert outcome.rejected.column("reason").to_pylist() == ["seq must be above 9, the one before it; got 6"]
    assert outcome.matches.column("publication_id").to_pylist() == ["q"]


def test_a_batch_of_nothing_is_processed() -> None:
    engine = InlineEngine(plan_for(events_of(), SETTINGS), SETTINGS)
    outcome = engine.process(events_of())
    assert (outcome.matches.num_rows, outcome.rejected.num_rows) == (0, 0)
    engine.process(events_of(subscribe(1, "a")))
    engine.process(events_of())
    assert engine.process(events_of(publish(2, "p"))).matches.num_rows == 1


#: Adjusts as soon as it can.
EAGER = AdjustmentSettings(window=60, sigma=1.05, target=1.0, check_every=150, margin=0.0, drain_limit=60)


def _drifting(n_batches: int, seed: int) -> list[pa.RecordBatch]:
    """Let what is published and asked for go round the world."""
    rng = random.Random(seed)
    batches, seq = [], 0
    for number in range(n_batches):
        west = -180.0 + 300.0 * number / n_batches
        rows = []
        for _ in range(60):
            seq += 1
            lon, lat = west + rng.uniform(0, 60), rng.uniform(-60, 60)
            if rng.random() < 0.3:
                bounds = {
                    "min_lon": max(lon - 20, -180.0),
                    "max_lon": lon,
                    "min_lat": lat,
                    "max_lat": lat + 20,
                }
                rows.append(subscribe(seq, f"s{rng.randrange(200)}", random_expression(rng), **bounds))
            else:
                rows.append(publish(seq, f"p{seq}", random_text(rng), lon, lat))
        batches.append(events_of(*rows))
    return batches


@pytest.mark.parametrize("seed", range(2))
def test_a_drifting_stream_is_adjusted_and_matched_all_the_same(seed: int) -> None:
    batches = _drifting(20, seed)
    chosen = replace(SETTINGS, adjustment=EAGER)
    engine = InlineEngine(plan_for(batches[0], chosen), chosen)
    outcomes = [engine.process(batch) for batch in batches]
    found = [tuple(row.values()) for outcome in outcomes for row in outcome.matches.to_pylist()]
    assert found == [tuple(match) for match in oracle.run(pa.Table.from_batches(batches)).matches]
    assert len(found) > 50
    made = engine.tally.adjustments
    assert {"local", "switch", "unite"} <= {record.kind for record in made}
    assert [record.batch_id for record in made] == sorted({record.batch_id for record in made})
    assert engine.plan.number == max(record.plan_after for record in made)
    for record in made:
        assert record.migration_s == record.pause_s > 0.0
        assert record.n_delayed > 20, "the publications of the batch that waited"
    assert any(record.loads_after for record in made)
    assert sum(record.n_subscriptions for record in made) > 0
    for worker in engine.workers:
        assert worker.index.settings.counters == engine.plan.grid, (
            "loads are counted in the cells of the plan"
        )
    tally = engine.tally
    assert sum(worker.n_matches for worker in tally.workers) == len(found)
    assert tally.n_matches == len(found)
    assert all(worker.n_publications >= 0 for worker in tally.workers)


def test_without_adjustment_the_plan_stays() -> None:
    batches = _drifting(8, 1)
    chosen = replace(SETTINGS, adjustment=replace(EAGER, scope="off"))
    engine = InlineEngine(plan_for(batches[0], chosen), chosen)
    for batch in batches:
        engine.process(batch)
    assert engine.controller is None
    assert engine.tally.adjustments == []
    assert engine.plan.number == 1


class Watching:
    """Adjust nothing, and remember what was told."""

    def __init__(self) -> None:
        self.observed: list[Observed] = []
        self.asked: list[int] = []

    def observe(self, observed: Observed) -> Adjustment | None:
        self.observed.append(observed)
        return None

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        live = registrar.registry.live_seqs()
        assert [host.worker_id for host in hosts] == list(range(registrar.plan.n_workers))
        for host in hosts:
            stored = host.fetch(live)
            assert (host.contents().sum() > 0) == (len(stored.seq_from) > 0)
            assert len(host.contents()) == registrar.plan.grid.n_cells
        self.asked.append(batch_id)
        return None

    def completed(self, record: Adjustment) -> None:
        pytest.fail("nothing was adjusted")


def test_a_controller_is_told_what_every_batch_was_like() -> None:
    batches = [*_drifting(5, 3), events_of()]
    watching = Watching()
    engine = InlineEngine(plan_for(batches[0], SETTINGS), SETTINGS, watching)
    n_matches = [engine.process(batch).matches.num_rows for batch in batches]
    assert watching.asked == list(range(6))
    for batch, observed, n in zip(batches, watching.observed, n_matches, strict=True):
        ops = batch.column("op").to_pylist()
        assert (observed.n_publications, observed.n_updates) == (ops.count("publish"), ops.count("subscribe"))
        assert sum(part.num_rows for part in observed.sampled) == observed.n_publications
        assert set(observed.cells) == set(observed.busy_s) == set(range(3))
        assert sum(sum(cells.column("matches").to_pylist()) for cells in observed.cells.values()) == n
        assert all(seconds >= 0.0 for seconds in observed.busy_s.values())
