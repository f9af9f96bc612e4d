"""The registrar decides in the order of seqs, and what it decided can be restored from the log."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.deployments import Deployment, local_stream, random_edit, random_plan
from engines.streams import (
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
from ps2stream.arrays import frozen
from ps2stream.errors import StateError
from ps2stream.matching.index import GI2
from ps2stream.model.events import split
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import BEGIN, END, SEGMENT, changes
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.update_compiler import COMPILED_UPDATES, compile_updates
from ps2stream.roles.worker import Worker
from ps2stream.routing.layout import LEVELS
from ps2stream.routing.routing import Routing

NO_UPDATES = pa.RecordBatch.from_pylist([], COMPILED_UPDATES)


def _ends(segment: pa.RecordBatch) -> list[tuple[int, int]]:
    return [(row["seq_from"], row["seq_to"]) for row in changes(segment, END).to_pylist()]


def _begins(segment: pa.RecordBatch) -> list[tuple[int, str]]:
    return [(row["seq_from"], row["id"]) for row in changes(segment, BEGIN).to_pylist()]


def _registrar(plan: Plan | None = None) -> Registrar:
    return Registrar(plan or plan_for(events_of()))


def _sent(registrar: Registrar, publications: pa.RecordBatch) -> dict[int, list[Any]]:
    packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications).packets
    return {worker: packet.to_pylist() for worker, packet in packets.items()}


def _assert_alike(one: Registrar, other: Registrar, publications: pa.RecordBatch) -> None:
    assert one.registry.n_ended == other.registry.n_ended
    versions = np.arange(one.registry.n_live + one.registry.n_ended)
    for mine, others in zip(one.registry.postings(versions), other.registry.postings(versions), strict=True):
        np.testing.assert_array_equal(mine, others)
    _assert_alike_in_what_lives(one, other, publications)


def _assert_alike_in_what_lives(one: Registrar, other: Registrar, publications: pa.RecordBatch) -> None:
    assert one.registry.live_seqs().tolist() == other.registry.live_seqs().tolist()
    live = one.registry.live_seqs()
    assert one.registry.ids(live).to_pylist() == other.registry.ids(live).to_pylist()
    postings = [each.registry.postings(each.registry.live_versions()) for each in (one, other)]
    for mine, others in zip(*postings, strict=True):
        np.testing.assert_array_equal(mine, others)
    assert one.plan_numbers == other.plan_numbers
    for grid_t, like in zip(one.grid_ts.parts, other.grid_ts.parts, strict=True):
        assert grid_t.n_live == like.n_live
        np.testing.assert_array_equal(grid_t._h2.head[LEVELS:], like._h2.head[LEVELS:])
    assert _sent(one, publications) == _sent(other, publications)


def _restored(plan: Plan, segments: list[pa.RecordBatch]) -> Registrar:
    registrar = Registrar(plan)
    registrar.restore(iter(segments))
    return registrar


@given(st.integers(0, 1 << 32), st.sampled_from([1, 7, 25, 120]))
@settings(max_examples=12, deadline=None)
def test_a_registrar_restored_from_segments_goes_on_like_the_one_that_wrote_them(
    seed: int, size: int
) -> None:
    events = random_stream(120, seed, publication_share=0.2, n_subscription_ids=8)
    plan, publications = plan_for(events), publications_of(events)
    first, segments = Registrar(plan), []
    for batch in batches_of(events, size):
        segments.append(first.decide(updates_of(batch)).segment)
        assert segments[-1].schema == SEGMENT
        if size == 1 and len(segments) % 40:
            continue  # now and then is enough
        _assert_alike(first, _restored(plan, segments), publications)
    second = _restored(plan, segments)
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


@given(st.integers(0, 1 << 32), st.sampled_from([7, 120]))
@settings(max_examples=12, deadline=None)
def test_a_registrar_without_h2_decides_the_same_and_routes_nothing(seed: int, size: int) -> None:
    events = random_stream(120, seed, publication_share=0.2, n_subscription_ids=8)
    plan, segments = plan_for(events), []
    counting, bare = Registrar(plan), Registrar(plan, has_h2=False)
    for batch in batches_of(events, size):
        one, other = (registrar.decide(updates_of(batch)) for registrar in (counting, bare))
        assert one.segment.equals(other.segment)
        assert one.rejected.equals(other.rejected)
        segments.append(one.segment)
    again = Registrar(plan, has_h2=False)
    again.restore(iter(segments))
    last = max(seqs_of(events))
    more = events_of(subscribe(last + 1, "s1", "fire OR rain"), unsubscribe(last + 2, "s2"))
    assert again.decide(updates_of(more)).segment.equals(counting.decide(updates_of(more)).segment)
    with pytest.raises(StateError, match="nothing to route publications by"):
        _ = bare.grid_ts


def test_what_unsubscribes_has_no_clauses() -> None:
    rows = (
        subscribe(1, "a", "fire"),
        unsubscribe(2, "a"),
        subscribe(3, "b", "fire OR rain"),
        unsubscribe(4, "b"),
    )
    clauses = updates_of(events_of(*rows)).column("clauses").to_pylist()
    assert [len(each) for each in clauses] == [1, 0, 2, 0]


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
    assert registrar.grid_ts.newest.n_live == 0


def test_an_end_is_sent_where_the_begin_was_sent() -> None:
    events = random_stream(150, 5, publication_share=0.3, n_subscription_ids=20)
    registrar = Registrar(plan_for(events))
    workers: dict[int, list[int]] = {}
    n_ends = 0
    for batch in batches_of(events, 20):
        for row in registrar.decide(updates_of(batch)).segment.to_pylist():
            if row["change"] == BEGIN:
                workers[row["seq_from"]] = row["workers"]
            else:
                n_ends += 1
                assert row["change"] == END
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
    before = registrar.registry_name
    live = registrar.registry.live_seqs().tolist()
    assert registrar.compact(3000) == before, "what is of no use any more"
    after = registrar.registry_name
    assert after != before
    assert registrar.registry.live_seqs().tolist() == live
    assert registrar.registry.n_ended == len([seq for seq in range(1, 1101) if 2000 + seq > 3000])
    assert registrar.compact(3000) is None, "not again before it is due"
    assert registrar.registry_name == after
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
    assert compiled.schema == COMPILED_UPDATES
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


@given(st.integers(0, 1 << 32), st.sampled_from([8, 25]))
@settings(max_examples=10, deadline=None)
def test_a_registrar_is_restored_from_a_log_with_moves_switches_and_unions(seed: int, size: int) -> None:
    rng = random.Random(seed)
    events = local_stream(100, seed)
    publications = publications_of(events)
    deployment = Deployment(random_plan(rng))
    for batch in batches_of(events, size):
        deployment.disturb(rng)
        deployment.process(batch)
        _assert_alike(deployment.registrar, deployment.restored(), publications)
    _assert_goes_on_alike(rng, deployment, deployment.restored(), publications)


@given(st.integers(0, 1 << 32))
@settings(max_examples=10, deadline=None)
def test_a_snapshot_stands_for_the_log_whatever_was_moved_before_it_and_is_after_it(seed: int) -> None:
    rng = random.Random(seed)
    events = local_stream(120, seed)
    publications = publications_of(events)
    deployment = Deployment(random_plan(rng))
    since: list[pa.RecordBatch] = []
    for batch in batches_of(events, 15):
        deployment.disturb(rng)
        since.append(deployment.process(batch))
        if rng.random() < 0.5:
            since = [deployment.snapshot()]
            assert since[0].schema == SEGMENT
            assert set(since[0].column("change").to_pylist()) <= {BEGIN}
            assert seqs_of(since[0], "seq_from") == sorted(deployment.live())
            assert _holders(since[0]) == deployment.holders()
            _assert_stored_like(deployment, since[0])
        restored = deployment.restored(since)
        # What ended in the batch of a snapshot is not in it; all else leaves with the next batch.
        for registrar in (deployment.registrar, restored):
            registrar.decide(NO_UPDATES)
        _assert_alike_in_what_lives(deployment.registrar, restored, publications)
    _assert_goes_on_alike(rng, deployment, deployment.restored(since), publications)


def _holders(snapshot: pa.RecordBatch) -> dict[int, set[int]]:
    return {row["seq_from"]: set(row["workers"]) for row in snapshot.to_pylist()}


def _assert_stored_like(deployment: Deployment, snapshot: pa.RecordBatch) -> None:
    """See that a worker built from a snapshot stores what the worker that saw everything stores."""
    live = frozen(np.array(sorted(deployment.live()), np.int64))
    for worker in deployment.workers:
        again = Worker(worker.worker_id, GI2.create(worker.index.settings))
        again.update(snapshot)
        for mine, others in zip(worker.index.stored(live), again.index.stored(live), strict=True):
            np.testing.assert_array_equal(mine, others)


def _assert_goes_on_alike(
    rng: random.Random, deployment: Deployment, restored: Registrar, publications: pa.RecordBatch
) -> None:
    """Let both take the same updates and the same adjustments, and compare all that comes of them."""
    first = deployment.registrar
    seq = max([first.registry.newest_seq(), 0, *deployment.live()]) + 1000
    for _ in range(2):
        more = events_of(
            *(subscribe(seq + i, f"s{i}", rng.choice(["fire OR rain", "storm", "a fire"])) for i in range(4)),
            *(unsubscribe(seq + 10 + i, f"s{i}") for i in rng.sample(range(12), 5)),
        )
        one, other = (registrar.decide(updates_of(more)) for registrar in (first, restored))
        assert one.segment.equals(other.segment)
        assert one.rejected.equals(other.rejected)
        _assert_alike_in_what_lives(first, restored, publications)
        for worker in deployment.workers:
            worker.update(one.segment)
        seq += 100
    edited = random_edit(rng, first.plan)
    plan = edited.plan(first.plan.number + 1)
    rows = [
        registrar.relocate(plan, edited.changed_cells, deployment.fetch).rows
        for registrar in (first, restored)
    ]
    assert rows[0].equals(rows[1])
    for worker in deployment.workers:
        worker.update(rows[0])
    if first.routing.older is not None:
        rows = [registrar.unite(deployment.fetch)[0].rows for registrar in (first, restored)]
        assert rows[0].equals(rows[1])
    for registrar in (first, restored):
        registrar.decide(NO_UPDATES)
    _assert_alike_in_what_lives(first, restored, publications)


def _two_versions() -> Deployment:
    rng = random.Random(3)
    deployment = Deployment(random_plan(rng))
    deployment.process(events_of(*(subscribe(seq, f"s{seq}", "fire OR rain") for seq in range(1, 11))))
    deployment.switch(random_plan(rng))
    deployment.process(events_of(*(subscribe(seq, f"s{seq}", "fire OR rain") for seq in range(11, 16))))
    return deployment


def test_subscriptions_up_to_the_switch_go_by_the_older_plan_and_later_ones_by_the_newer() -> None:
    registrar = _two_versions().registrar
    newer, older = registrar.routing.parts
    assert registrar.plan is newer.plan
    assert registrar.grid_ts.parts == (newer.grid_t, older.grid_t)
    assert registrar.plan_numbers == Routing(2, 1, 10)
    assert registrar.n_older() == 10
    assert newer.name != older.name
    registrar.decide(
        updates_of(events_of(unsubscribe(20, "s3"), subscribe(21, "s4"), unsubscribe(22, "s12")))
    )
    assert registrar.n_older() == 8, "a subscription that is replaced goes by the newer plan"


def test_the_routing_has_two_plans_at_most() -> None:
    deployment = _two_versions()
    with pytest.raises(StateError, match="plan 1 must be dropped before plan 3 is adopted"):
        deployment.switch(deployment.plan)
    assert deployment.registrar.routing.older is not None
    deployment.unite()
    deployment.switch(deployment.plan)
    assert deployment.registrar.plan_numbers.parts == (3, 2)


def test_the_older_plan_only_loses_and_its_index_goes_when_the_plans_are_united() -> None:
    deployment = _two_versions()
    registrar = deployment.registrar
    older = registrar.routing.parts[1]
    n_before = older.grid_t.n_live
    assert n_before > 0
    deployment.process(events_of(*(unsubscribe(20 + i, f"s{i}") for i in range(1, 11))))
    assert older.grid_t.n_live == n_before, "publications of this batch may still want them"
    deployment.process()
    assert older.grid_t.n_live == 0
    assert registrar.n_older() == 0
    migrated, dropped = registrar.unite(deployment.fetch)
    assert dropped == older.name
    assert migrated.rows.num_rows == 0
    assert registrar.plan_numbers == Routing(2)
    fresh = Registrar(registrar.plan)
    fresh.restore([deployment.snapshot()])
    assert registrar.grid_ts.newest.n_live == fresh.grid_ts.newest.n_live


def test_a_switch_before_anybody_has_subscribed_leaves_nothing_to_the_older_plan() -> None:
    rng = random.Random(7)
    deployment = Deployment(random_plan(rng))
    deployment.switch(random_plan(rng))
    assert deployment.registrar.n_older() == 0
    deployment.process(events_of(subscribe(1, "a"), subscribe(2, "b", "rain")))
    assert deployment.registrar.n_older() == 0
    assert deployment.holders() == deployment.expected_holders()
    assert deployment.registrar.routing.parts[1].grid_t.n_live == 0
    assert deployment.unite().rows.num_rows == 0
    assert deployment.process().num_rows == 0


def test_compaction_between_switch_and_union_changes_no_answer() -> None:
    rng = random.Random(8)
    one, other = (Deployment(random_plan(random.Random(8))) for _ in range(2))
    renewed = random_plan(rng)
    rows = [subscribe(seq, f"s{seq}", "fire OR rain") for seq in range(1, 1301)]
    ends = [unsubscribe(2000 + seq, f"s{seq}") for seq in range(40, 1251)]
    for deployment in (one, other):
        deployment.process(events_of(*rows))
        deployment.switch(renewed)
        deployment.process(events_of(*ends, subscribe(4000, "a"), subscribe(4001, "s1", "smoke")))
    before = one.registrar.registry_name
    assert one.registrar.compact(4001) == before
    assert one.registrar.registry.n_ended == 0
    assert one.registrar.n_older() == other.registrar.n_older() == 1300 - len(ends) - 1
    for deployment in (one, other):
        deployment.process(events_of(unsubscribe(5000, "s2"), subscribe(5001, "s3")))
        deployment.unite()
        deployment.process()
    assert one.holders() == other.holders() == one.expected_holders()
    assert one.segments[-1].equals(other.segments[-1])


def test_live_subscriptions_are_drawn_from_those_who_store_them() -> None:
    deployment = _two_versions()
    registrar = deployment.registrar
    drawn = registrar.some_live(100, np.random.default_rng(1), deployment.fetch)
    assert sorted(drawn.seq_from.tolist()) == list(range(1, 16))
    some = [registrar.some_live(6, np.random.default_rng(seed), deployment.fetch) for seed in (1, 1, 2)]
    assert [len(set(each.seq_from.tolist())) for each in some] == [6, 6, 6]
    assert some[0].seq_from.tolist() == some[1].seq_from.tolist() != some[2].seq_from.tolist()
    live = deployment.live()
    bounds = drawn.bounds.reshape(-1, 4)
    for row, seq in enumerate(drawn.seq_from.tolist()):
        names = ("min_lon", "min_lat", "max_lon", "max_lat")
        assert bounds[row].tolist() == [live[seq][name] for name in names]
    assert len(_registrar().some_live(5, np.random.default_rng(1), deployment.fetch).seq_from) == 0
