"""The registrar decides in the order of seqs, and what it decided can be restored from the log."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.streams import (
    SETTINGS,
    TOKENIZER,
    batches_of,
    events_of,
    plan_for,
    publications_of,
    publish,
    random_stream,
    seqs_of,
    subscribe,
    unsubscribe,
    updates_of,
)
from ps2stream.matching.layout import FOREVER
from ps2stream.model.events import split
from ps2stream.partitioning.plan import Plan
from ps2stream.pipeline.dispatcher import Dispatcher
from ps2stream.pipeline.registrar import COMPILED, Registrar, compile_updates
from ps2stream.registry.segments import SEGMENT
from ps2stream.routing.layout import LEVELS

NO_UPDATES = pa.RecordBatch.from_pylist([], COMPILED)


def _ends(segment: pa.RecordBatch) -> list[tuple[int, int]]:
    rows = segment.select(["seq_from", "seq_to"]).to_pylist()
    return [(row["seq_from"], row["seq_to"]) for row in rows if row["seq_to"] != FOREVER]


def _begins(segment: pa.RecordBatch) -> list[tuple[int, str]]:
    rows = segment.select(["seq_from", "seq_to", "id"]).to_pylist()
    return [(row["seq_from"], row["id"]) for row in rows if row["seq_to"] == FOREVER]


def _registrar(plan: Plan | None = None) -> Registrar:
    return Registrar(plan or plan_for(events_of()))


def _sent(registrar: Registrar, publications: pa.RecordBatch) -> dict[int, list[Any]]:
    packets = Dispatcher(registrar.grid_t, TOKENIZER).dispatch(publications).packets
    return {worker: packet.to_pylist() for worker, packet in packets.items()}


def _assert_alike(one: Registrar, other: Registrar, publications: pa.RecordBatch) -> None:
    assert one.registry.live_seqs().tolist() == other.registry.live_seqs().tolist()
    live = one.registry.live_seqs()
    assert one.registry.ids(live).to_pylist() == other.registry.ids(live).to_pylist()
    versions = np.arange(one.registry.n_live + one.registry.n_ended)
    for mine, others in zip(one.registry.postings(versions), other.registry.postings(versions), strict=True):
        np.testing.assert_array_equal(mine, others)
    assert one.grid_t.n_live == other.grid_t.n_live
    np.testing.assert_array_equal(one.grid_t._h2.head[LEVELS:], other.grid_t._h2.head[LEVELS:])
    assert _sent(one, publications) == _sent(other, publications)


@given(st.integers(0, 1 << 32), st.sampled_from([1, 7, 25, 120]))
@settings(max_examples=12, deadline=None)
def test_a_registrar_restored_from_segments_goes_on_like_the_one_that_wrote_them(
    seed: int, size: int
) -> None:
    events = random_stream(120, seed, publication_share=0.2, n_subscription_ids=8)
    plan, publications = plan_for(events), publications_of(events)
    first, second = Registrar(plan), Registrar(plan)
    for batch in batches_of(events, size):
        segment = first.decide(updates_of(batch)).segment
        assert segment.schema == SEGMENT
        second.restore(segment)
        _assert_alike(first, second, publications)
    # What had ended in the last batch leaves H2 in both; then both take the same next batch.
    for registrar in (first, second):
        registrar.decide(NO_UPDATES)
    _assert_alike(first, second, publications)
    last = max(seqs_of(events))
    more = events_of(
        *(subscribe(last + 1 + i, f"s{i}", "fire OR rain") for i in range(8)), unsubscribe(last + 20, "s3")
    )
    assert first.decide(updates_of(more)).segment.equals(second.decide(updates_of(more)).segment)
    _assert_alike(first, second, publications)


@given(st.integers(0, 1 << 32))
@settings(max_examples=12, deadline=None)
def test_updates_of_a_batch_may_come_in_any_order(seed: int) -> None:
    events = random_stream(80, seed, publication_share=0.2, n_subscription_ids=5)
    plan = plan_for(events)
    compiled = updates_of(events)
    order = list(range(compiled.num_rows))
    random.Random(seed).shuffle(order)
    sorted_first, shuffled = Registrar(plan), Registrar(plan)
    one = sorted_first.decide(compiled)
    other = shuffled.decide(compiled.take(pa.array(order, pa.int64())))
    assert one.segment.equals(other.segment)
    assert one.rejected.equals(other.rejected)
    _assert_alike(sorted_first, shuffled, publications_of(events))


def test_a_subscription_may_begin_be_replaced_and_end_within_one_batch() -> None:
    rows = (
        subscribe(1, "a"),
        subscribe(3, "a", "rain"),
        unsubscribe(5, "a"),
        unsubscribe(6, "a"),
        subscribe(8, "a"),
    )
    decided = _registrar().decide(updates_of(events_of(*rows)))
    assert _begins(decided.segment) == [(1, "a"), (3, "a"), (8, "a")]
    assert _ends(decided.segment) == [(1, 3), (3, 5)]
    assert decided.rejected.to_pylist() == [
        {"seq": 6, "op": "unsubscribe", "id": "a", "reason": "no live subscription has the id 'a'"}
    ]


def test_a_seq_that_is_used_twice_is_rejected_the_second_time() -> None:
    rows = (subscribe(1, "a"), subscribe(2, "b"), subscribe(2, "c"), unsubscribe(2, "a"), subscribe(3, "d"))
    registrar = _registrar()
    decided = registrar.decide(updates_of(events_of(*rows)))
    assert [(row["seq"], row["op"], row["id"]) for row in decided.rejected.to_pylist()] == [
        (2, "subscribe", "c"),
        (2, "unsubscribe", "a"),
    ]
    assert set(decided.rejected.column("reason").to_pylist()) == {"seq 2 was used before"}
    assert registrar.registry.live_seqs().tolist() == [1, 2, 3]


def test_what_ends_in_a_batch_is_still_routed_to_in_that_batch_and_not_in_the_next() -> None:
    registrar = _registrar()
    registrar.decide(updates_of(events_of(subscribe(1, "a", "fire"), subscribe(2, "b", "rain"))))
    here = publications_of(events_of(publish(9, "p", "fire"), publish(10, "q", "rain")))
    registrar.decide(updates_of(events_of(unsubscribe(3, "a"))))
    assert [row["seq"] for packet in _sent(registrar, here).values() for row in packet] == [9, 10]
    registrar.decide(NO_UPDATES)
    assert [row["seq"] for packet in _sent(registrar, here).values() for row in packet] == [10]
    registrar.decide(updates_of(events_of(unsubscribe(4, "b"))))
    registrar.decide(NO_UPDATES)
    assert _sent(registrar, here) == {}
    assert registrar.grid_t.n_live == 0


def test_an_end_is_sent_where_the_begin_was_sent() -> None:
    events = random_stream(150, 5, publication_share=0.3, n_subscription_ids=20)
    registrar = Registrar(plan_for(events))
    workers: dict[int, list[int]] = {}
    n_ends = 0
    for batch in batches_of(events, 20):
        for row in registrar.decide(updates_of(batch)).segment.to_pylist():
            if row["seq_to"] == FOREVER:
                workers[row["seq_from"]] = row["workers"]
            else:
                n_ends += 1
                assert row["workers"] == workers[row["seq_from"]]
    assert n_ends > 10


def test_clauses_begin_with_their_rarest_term() -> None:
    common = [publish(seq, "p", "fire") for seq in range(1, 20)]
    registrar = Registrar(plan_for(events_of(*common, publish(30, "q", "rain"))))
    segment = registrar.decide(updates_of(events_of(subscribe(40, "a", "fire AND rain AND storm")))).segment
    sent = [TOKENIZER.tokenize(pa.array([word])).values[0] for word in ("storm", "rain", "fire")]
    assert segment.column("clauses").to_pylist() == [[[int(term) for term in sent]]]


def test_compaction_moves_the_registry_and_changes_no_answer() -> None:
    registrar = _registrar()
    rows = [subscribe(seq, f"s{seq}") for seq in range(1, 1201)]
    registrar.decide(updates_of(events_of(*rows)))
    ends = [unsubscribe(2000 + seq, f"s{seq}") for seq in range(1, 1101)]
    registrar.decide(updates_of(events_of(*ends)))
    assert registrar.registry_name == "registry-0"
    live = registrar.registry.live_seqs().tolist()
    registrar.compact(3000)
    assert registrar.registry_name == "registry-1"
    assert registrar.registry.live_seqs().tolist() == live
    assert registrar.registry.n_ended == len([seq for seq in range(1, 1101) if 2000 + seq > 3000])
    registrar.compact(3000)
    assert registrar.registry_name == "registry-1", "not again before it is due"
    decided = registrar.decide(updates_of(events_of(subscribe(5000, "s1150"), unsubscribe(5001, "s1"))))
    assert _ends(decided.segment) == [(1150, 5000)]
    assert decided.rejected.column("id").to_pylist() == ["s1"]


def test_updates_that_do_not_compile_are_rejected_and_the_others_kept() -> None:
    rows = (
        subscribe(1, "a"),
        subscribe(2, "b", "fire AND"),
        subscribe(3, "c", min_lat=80.0, max_lat=10.0),
        unsubscribe(4, "a"),
        {"seq": 5, "op": "delete", "id": "a"},
    )
    compiled, rejected = compile_updates(split(events_of(*rows))[1], TOKENIZER)
    assert compiled.schema == COMPILED
    assert seqs_of(compiled) == [1, 4]
    assert sorted(rejected.column("seq").to_pylist()) == [2, 3, 5]
    reasons = dict(
        zip(rejected.column("seq").to_pylist(), rejected.column("reason").to_pylist(), strict=True)
    )
    assert "at position" in reasons[2]
    assert reasons[3] == "the region must have min_lat <= max_lat; got 80.0 > 10.0"
    assert set(rejected.column("op").to_pylist()) == {"subscribe", "delete"}


def test_stop_words_leave_the_clauses_and_alone_are_no_subscription() -> None:
    stopping = SETTINGS.__class__(stop_words=("the",)).tokenizer()
    rows = (subscribe(1, "a", "the AND fire"), subscribe(2, "b", "the"))
    compiled, rejected = compile_updates(split(events_of(*rows))[1], stopping)
    fire = int(stopping.tokenize(pa.array(["fire"])).values[0])
    assert compiled.column("clauses").to_pylist() == [[[fire]]]
    assert rejected.column("id").to_pylist() == ["b"]


def test_a_batch_of_nothing_decides_nothing() -> None:
    decided = _registrar().decide(NO_UPDATES)
    assert decided.segment.schema == SEGMENT
    assert (decided.segment.num_rows, decided.rejected.num_rows) == (0, 0)
