"""Sound, once, free: on every engine exactly the oracle's matches, however the work is divided."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.engines import ALL_AT_ONCE, Engine, Inline, Run, sorted_outcome
from ps2stream.config import Settings
from ps2stream.partitioning import PARTITIONERS
from ps2stream.testing import oracle
from ps2stream.testing.generators import VOCABULARY, random_events
from strategies import event_logs

N_WORKERS = [1, 2, 8]
N_DISPATCHERS = [1, 3]


def assert_as_the_oracle_says(run: Run, events: pa.Table, stop_words: tuple[str, ...] = ()) -> None:
    expected = sorted_outcome(oracle.run(events, stop_words))
    delivered = Counter(run.outcome.matches)
    assert set(expected.matches) - set(delivered) == set(), "lost"
    assert set(delivered) - set(expected.matches) == set(), "invented"
    assert max(delivered.values(), default=1) == 1, "doubled"
    # The merger has nothing to remove: exactly one worker reports each match.
    assert run.work.n_found == len(expected.matches)
    assert run.outcome.rejected == expected.rejected


@given(
    events=event_logs(max_size=40),
    n_workers=st.sampled_from(N_WORKERS),
    n_dispatchers=st.sampled_from(N_DISPATCHERS),
    batch_events=st.sampled_from([1, 7, 100]),
)
@settings(max_examples=100, deadline=None)
def test_any_log_gives_what_the_oracle_says(
    events: pa.Table, n_workers: int, n_dispatchers: int, batch_events: int
) -> None:
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers)
    assert_as_the_oracle_says(Inline().run(events, chosen, batch_events), events)


@given(
    events=event_logs(max_size=30),
    partitioner=st.sampled_from(list(PARTITIONERS)),
    n_workers=st.sampled_from([2, 5, 70]),
    sample_events=st.sampled_from([2, 12, 50_000]),
)
@settings(max_examples=100, deadline=None)
def test_any_log_gives_what_the_oracle_says_by_any_partitioner(
    events: pa.Table, partitioner: str, n_workers: int, sample_events: int
) -> None:
    chosen = Settings(n_workers=n_workers, partitioner=partitioner, sample_events=sample_events)
    assert_as_the_oracle_says(Inline().run(events, chosen, 7), events)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_every_partitioner_gives_what_the_oracle_says(engine: Engine, partitioner: str) -> None:
    events = random_events(1_500, seed=77)
    chosen = Settings(n_workers=6, n_dispatchers=2, partitioner=partitioner)
    assert_as_the_oracle_says(engine.run(events, chosen, 800), events)


@given(events=event_logs(max_size=30), grid_bits=st.integers(1, 14), max_cells=st.sampled_from([1, 4, 64]))
@settings(max_examples=60, deadline=None)
def test_the_grid_of_the_workers_changes_nothing(events: pa.Table, grid_bits: int, max_cells: int) -> None:
    chosen = Settings(n_workers=2, grid_bits=grid_bits, max_cells=max_cells)
    assert_as_the_oracle_says(Inline().run(events, chosen, 7), events)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch_events", [7, 100, ALL_AT_ONCE])
@pytest.mark.parametrize("n_dispatchers", N_DISPATCHERS)
@pytest.mark.parametrize("n_workers", N_WORKERS)
def test_division_of_the_work_changes_nothing_inline(
    n_workers: int, n_dispatchers: int, batch_events: int, seed: int
) -> None:
    events = random_events(700 if batch_events >= 100 else 350, seed)
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers)
    assert_as_the_oracle_says(Inline().run(events, chosen, batch_events), events)


def test_a_batch_for_every_event_changes_nothing_inline() -> None:
    events = random_events(250, seed=11)
    for n_workers in N_WORKERS:
        run = Inline().run(events, Settings(n_workers=n_workers, n_dispatchers=3), 1)
        assert_as_the_oracle_says(run, events)


# A micro-batch costs about a second, so the default group has each division once, with a log of its own.
@pytest.mark.parametrize(
    ("n_workers", "n_dispatchers", "batch_events"),
    [(1, 1, 700), (1, 3, 500), (2, 1, ALL_AT_ONCE), (2, 3, 300), (8, 1, 600), (8, 3, 400)],
)
def test_division_of_the_work_changes_nothing(
    engine: Engine, n_workers: int, n_dispatchers: int, batch_events: int
) -> None:
    events = random_events(1_200, seed=100 * n_workers + 10 * n_dispatchers)
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers)
    assert_as_the_oracle_says(engine.run(events, chosen, batch_events), events)


@pytest.mark.slow
@pytest.mark.parametrize("batch_events", [60, 500, ALL_AT_ONCE])
@pytest.mark.parametrize("n_dispatchers", N_DISPATCHERS)
@pytest.mark.parametrize("n_workers", N_WORKERS)
def test_every_division_of_the_work_with_every_size_of_batches_changes_nothing(
    engine: Engine, n_workers: int, n_dispatchers: int, batch_events: int
) -> None:
    events = random_events(1_500, seed=n_workers + n_dispatchers + batch_events, invalid_share=0.1)
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers)
    assert_as_the_oracle_says(engine.run(events, chosen, batch_events), events)


def test_subscriptions_that_come_and_go_are_forgotten_without_losing_others(engine: Engine) -> None:
    # Enough endings that the registry and every worker's index are compacted on the way.
    events = random_events(9_000, seed=5, publication_share=0.3, n_subscription_ids=60)
    chosen = Settings(n_workers=2, n_dispatchers=3)
    assert_as_the_oracle_says(engine.run(events, chosen, 1_500), events)


def test_stop_words_are_no_terms_on_any_engine(engine: Engine) -> None:
    stop_words = VOCABULARY[:3]
    events = random_events(800, seed=21)
    chosen = Settings(n_workers=2, stop_words=stop_words)
    run = engine.run(events, chosen, 400)
    assert_as_the_oracle_says(run, events, stop_words)
    assert len(run.outcome.rejected) > len(oracle.run(events).rejected)


def test_a_log_of_nothing_but_invalid_events_is_rejected_whole(engine: Engine) -> None:
    events = random_events(200, seed=8, invalid_share=1.0)
    run = engine.run(events, Settings(n_workers=2), ALL_AT_ONCE)
    assert len(run.outcome.rejected) == 200
    assert_as_the_oracle_says(run, events)


def test_an_empty_log_gives_nothing(engine: Engine) -> None:
    run = engine.run(random_events(0, seed=1), Settings(), 10)
    assert run.outcome == ([], [])
