"""A sample is uniform for either kind of event, the same for a seed, and knows the mix of the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.streams import batches_of, events_of, publish, random_stream, seqs_of, subscribe, unsubscribe
from ps2stream.model.schemas import EVENTS
from ps2stream.partitioning.sample import CHURN
from ps2stream.planning.sampling import Reservoir, draw


def _publications(n: int, first_seq: int = 0) -> pa.RecordBatch:
    return events_of(*(publish(seq, f"p{seq}") for seq in range(first_seq, first_seq + n)))


def _subscriptions(n: int, first_seq: int = 0) -> pa.RecordBatch:
    return events_of(*(subscribe(seq, f"s{seq}") for seq in range(first_seq, first_seq + n)))


def _kinds(events: pa.RecordBatch) -> Counter[str]:
    return Counter(events.column("op").to_pylist())


@pytest.mark.parametrize("batch_size", [7, 200])
def test_every_row_is_as_likely_as_any_other(batch_size: int) -> None:
    events, n, size, n_draws = _publications(200), 200, 20, 500
    counts = np.zeros(n)
    for seed in range(n_draws):
        reservoir = Reservoir(size, seed)
        for batch in batches_of(events, batch_size):
            reservoir.add(batch)
        counts[seqs_of(reservoir.rows())] += 1
    expected = n_draws * size / n
    # Rows of one draw exclude each other, which scales the variance of a count by 1 - size/n.
    chi_square = float((((counts - expected) ** 2) / (expected * (1 - size / n))).sum())
    # 200 degrees of freedom: beyond 300 with a probability of 1 in 100,000, and the seeds are fixed.
    assert 120 < chi_square < 300


def test_pairs_of_rows_meet_as_often_as_they_should() -> None:
    events, n_draws = _publications(10), 3_000
    pairs: Counter[tuple[int, ...]] = Counter()
    for seed in range(n_draws):
        reservoir = Reservoir(2, seed)
        for batch in batches_of(events, 3):
            reservoir.add(batch)
        pairs[tuple(seqs_of(reservoir.rows()))] += 1
    expected = n_draws / 45
    counts = np.array([pairs[(a, b)] for a in range(10) for b in range(a + 1, 10)])
    # 44 degrees of freedom: beyond 95 with a probability of 1 in 100,000.
    assert float((((counts - expected) ** 2) / expected).sum()) < 95


@given(st.integers(0, 60), st.integers(1, 70), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_batches_do_not_matter_and_the_order_stays(size: int, batch_size: int, seed: int) -> None:
    events = _publications(50)
    at_once, in_parts = Reservoir(size, seed), Reservoir(size, seed)
    at_once.add(events)
    for batch in batches_of(events, batch_size):
        in_parts.add(batch)
    seqs = seqs_of(at_once.rows())
    assert seqs == seqs_of(in_parts.rows())
    assert seqs == sorted(set(seqs))
    assert len(seqs) == min(size, 50)
    assert at_once.is_full == (size <= 50)


def test_a_sample_is_half_publications_and_half_subscriptions_in_the_order_of_seq() -> None:
    events = random_stream(2_000, seed=1, publication_share=0.8)
    drawn = draw(batches_of(events, 300), 101, seed=5).events
    assert drawn.schema == EVENTS
    assert _kinds(drawn) == {"publish": 51, "subscribe": 50}
    seqs = seqs_of(drawn)
    assert seqs == sorted(seqs)
    assert seqs[0] < np.quantile(seqs_of(events), 0.2)
    assert seqs[-1] > np.quantile(seqs_of(events), 0.8)


def test_the_same_seed_draws_the_same_sample_and_another_one_another() -> None:
    events = random_stream(500, seed=2)
    first, again, other = (draw([events], 40, seed=seed).events for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_a_stream_smaller_than_the_sample_is_taken_whole() -> None:
    events = random_stream(60, seed=3, invalid_share=0.0)
    drawn = draw(batches_of(events, 7), 1_000, seed=0, prefix=30).events
    kept = [op in ("publish", "subscribe") for op in events.column("op").to_pylist()]
    assert drawn == events.filter(pa.array(kept))


def test_only_the_prefix_is_looked_at_if_it_holds_enough_of_both() -> None:
    events = random_stream(1_000, seed=4, publication_share=0.5, invalid_share=0.0)
    read: list[int] = []

    def reading() -> Iterator[pa.RecordBatch]:
        for batch in batches_of(events, 100):
            read.append(batch.num_rows)
            yield batch

    drawn = draw(reading(), 20, seed=0, prefix=250).events
    assert max(seqs_of(drawn)) <= seqs_of(events)[249]
    assert sum(read) == 300
    assert drawn == draw([events.slice(0, 250)], 20, seed=0).events


def test_a_kind_that_the_prefix_lacks_is_looked_for_beyond_it() -> None:
    loaded, stream = _subscriptions(1_000), _publications(500, first_seq=1_000)
    drawn = draw([*batches_of(loaded, 100), *batches_of(stream, 10)], 40, seed=0, prefix=150)
    assert _kinds(drawn.events) == {"publish": 20, "subscribe": 20}
    assert seqs_of(drawn.events)[-1] < 1_020, "no further than needed"
    assert drawn.mix.n_live == 1_000
    assert drawn.mix.churn == 0.0


def test_the_mix_counts_what_lives_and_what_comes_and_goes_after_the_first_publication() -> None:
    events = events_of(
        *(subscribe(seq, f"s{seq}") for seq in range(1, 11)),
        publish(11, "p1"),
        subscribe(12, "t"),
        unsubscribe(13, "s1"),
        unsubscribe(14, "s2"),
        *(publish(seq, f"p{seq}") for seq in range(15, 24)),
    )
    for size in (1, 4, 100):
        mix = draw(batches_of(events, size), 10, seed=0).mix
        assert mix.n_live == 10 + 1 - 2
        assert mix.churn == pytest.approx(3 / 10 / 2)


def test_without_publications_the_churn_is_that_of_the_paper() -> None:
    assert draw([_subscriptions(20)], 10, seed=0).mix == (20, CHURN)
    assert draw([], 10, seed=0).mix == (0, CHURN)


def test_more_ends_than_begins_leave_nothing_alive() -> None:
    assert draw([events_of(unsubscribe(1, "a"), publish(2, "p"))], 10, seed=0).mix == (0, 0.0)


@pytest.mark.parametrize("n_events", [0, 1, 10])
def test_nothing_gives_an_empty_sample(n_events: int) -> None:
    for batches in ([], [events_of()]):
        drawn = draw(batches, n_events, seed=0, prefix=100)
        assert drawn.events.schema == EVENTS
        assert drawn.events.num_rows == 0


def test_a_sample_of_nothing_reads_nothing() -> None:
    batches = iter([_publications(10)])
    assert draw(batches, 0, seed=0).events.num_rows == 0
    assert next(batches).num_rows == 10


def test_operations_that_nobody_knows_are_passed_over() -> None:
    events = events_of(publish(1, "p"), {"seq": 2, "op": "explode"}, {"seq": 3}, subscribe(4, "s"))
    assert seqs_of(draw([events], 10, seed=0).events) == [1, 4]
