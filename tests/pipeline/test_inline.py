"""The inline engine gives the oracle's matches, also where it compacts between batches."""

from __future__ import annotations

import pytest

from pipeline.streams import batches_of, events_of, plan_for, publish, random_stream, subscribe, unsubscribe
from ps2stream.config import Settings
from ps2stream.matching.index import GI2
from ps2stream.pipeline.inline import InlineEngine
from ps2stream.registry.index import Registry
from ps2stream.testing import oracle

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
