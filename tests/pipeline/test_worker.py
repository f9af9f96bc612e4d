"""A worker takes its own part of the updates, in whatever order and however often they come."""

from __future__ import annotations

import pyarrow as pa

from pipeline.streams import (
    SETTINGS,
    TOKENIZER,
    batches_of,
    events_of,
    matches_of,
    plan_for,
    publications_of,
    publish,
    random_stream,
    subscribe,
    unsubscribe,
    updates_of,
)
from ps2stream.matching.index import GI2
from ps2stream.partitioning.plan import Plan
from ps2stream.pipeline.dispatcher import Dispatcher
from ps2stream.pipeline.packets import FOUND, ROUTED, decode, encode
from ps2stream.pipeline.registrar import Registrar
from ps2stream.pipeline.worker import Worker
from ps2stream.routing.index import GridT

BEFORE_ALL = -(1 << 63)


def test_applying_segments_twice_changes_no_match() -> None:
    events = random_stream(200, 4, n_subscription_ids=20)
    plan = plan_for(events)
    registrar = Registrar(plan)
    segments = [registrar.decide(updates_of(batch)).segment for batch in batches_of(events, 40)]
    packets = Dispatcher(_everything(plan, events), TOKENIZER).dispatch(publications_of(events)).packets
    for worker_id, packet in packets.items():
        once, twice = (Worker(worker_id, GI2.create(SETTINGS.index_settings(plan))) for _ in range(2))
        for segment in segments:
            once.update(segment)
            twice.update(segment)
            twice.update(segment)
        for segment in segments:
            twice.update(segment)
        found = matches_of(once.match(packet, BEFORE_ALL))
        assert found
        assert matches_of(twice.match(packet, BEFORE_ALL)) == found
        assert once.index.counts() == twice.index.counts()


def _everything(plan: Plan, events: pa.RecordBatch) -> GridT:
    """Route by everything that was ever subscribed, so that publications of the whole log are sent."""
    registrar = Registrar(plan)
    registrar.decide(updates_of(events))
    return registrar.grid_t


def test_a_worker_counts_and_keeps_only_what_concerns_it() -> None:
    plan = plan_for(events_of(*(publish(seq, "p", "fire", lon=float(seq)) for seq in range(1, 50))))
    segment = (
        Registrar(plan)
        .decide(
            updates_of(
                events_of(
                    subscribe(100, "a", min_lon=1.0, max_lon=1.0, min_lat=0.0, max_lat=0.0),
                    subscribe(101, "b", min_lon=2.0, max_lon=40.0),
                    unsubscribe(102, "a"),
                )
            )
        )
        .segment
    )
    concerned = [set(row) for row in segment.column("workers").to_pylist()]
    for worker_id in range(3):
        worker = Worker(worker_id, GI2.create(SETTINGS.index_settings(plan)))
        worker.update(segment)
        assert worker.n_updates == sum(worker_id in workers for workers in concerned)
        counts = worker.index.counts()
        assert counts.n_subscriptions + counts.n_ended == sum(
            worker_id in workers for workers in concerned[:2]
        )


def test_a_publication_of_the_same_batch_sees_what_was_there_at_its_seq() -> None:
    rows = (publish(1, "p1"), subscribe(2, "a"), publish(3, "p3"), unsubscribe(4, "a"), publish(5, "p5"))
    events = events_of(*rows)
    plan = plan_for(events)
    registrar = Registrar(plan)
    segment = registrar.decide(updates_of(events)).segment
    dispatched = Dispatcher(registrar.grid_t, TOKENIZER).dispatch(publications_of(events))
    found = []
    for worker_id, packet in dispatched.packets.items():
        worker = Worker(worker_id, GI2.create(SETTINGS.index_settings(plan)))
        worker.update(segment)
        found += matches_of(worker.match(decode(encode(packet)), 0))
    assert found == [(3, "p3", 2)]


def test_a_packet_of_nothing_matches_nothing() -> None:
    worker = Worker(0, GI2.create(SETTINGS.index_settings(plan_for(events_of()))))
    found = worker.match(pa.RecordBatch.from_pylist([], ROUTED), 0)
    assert found.schema == FOUND
    assert found.num_rows == 0
