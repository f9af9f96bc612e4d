"""A worker takes its own part of the updates, in whatever order and however often they come."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engines.deployments import Deployment, local_stream, random_plan
from engines.streams import (
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
from matching.scan import Stored, columns_of
from ps2stream.matching.contract import FOREVER, WORK_COUNTERS
from ps2stream.matching.index import GI2
from ps2stream.model.space import Region
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import DROP, END, MOVE, bare_rows, begin_rows, changes, move_rows
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.packets import CELL_LOADS, FOUND, ROUTED, decode, encode
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker import Worker
from ps2stream.routing.index import GridT
from ps2stream.routing.routing import Routing

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
        counts = twice.index.counts()
        assert replace(once.index.counts(), n_bytes=counts.n_bytes) == counts, "but for capacity to spare"


def _everything(plan: Plan, events: pa.RecordBatch) -> Routing[GridT]:
    """Route by everything that was ever subscribed, so that publications of the whole log are sent."""
    registrar = Registrar(plan)
    registrar.decide(updates_of(events))
    return registrar.grid_ts


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
    dispatched = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(events))
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


def test_a_worker_drops_before_it_stores_so_that_a_subscription_can_change_its_form() -> None:
    plan = plan_for(events_of())
    region = Region(0.0, 0.0, 10.0, 10.0)
    old, new = Stored(5, region, ((1, 2),)), Stored(5, region, ((2, 1),))
    ids, nobody_else = pa.array(["a"]), pa.array([[0]], pa.large_list(pa.int32()))
    begun = begin_rows(columns_of([old]), ids, pa.array(["x"]), nobody_else)
    moved = move_rows(columns_of([new]), ids, nobody_else)
    dropped = bare_rows(DROP, np.array([5]), np.array([FOREVER]), ids, nobody_else)
    ended = bare_rows(END, np.array([5]), np.array([9]), ids, nobody_else)
    for rows in ([dropped, moved], [moved, dropped]):
        worker = Worker(0, GI2.create(SETTINGS.index_settings(plan)))
        worker.update(begun)
        worker.update(pa.concat_batches(rows))
        assert worker.index.stored(np.array([5])).terms.tolist() == [2, 1]
    worker.update(pa.concat_batches([dropped, moved, ended]))
    stored = worker.index.stored(np.array([5]))
    assert stored.seq_to.tolist() == [9], "what moves and ends in one batch has ended"
    worker.update(dropped)
    assert len(worker.index.stored(np.array([5])).seq_from) == 0
    assert worker.index.counts().n_subscriptions == 0
    other = Worker(1, GI2.create(SETTINGS.index_settings(plan)))
    other.update(pa.concat_batches([begun, dropped, moved, ended]))
    assert (other.n_updates, other.index.counts().n_ended) == (0, 0)


def test_segments_with_moves_and_drops_come_to_the_same_when_one_is_applied_twice() -> None:
    rng = random.Random(2)
    deployment = Deployment(random_plan(rng))
    events = local_stream(160, 2)
    twice = [Worker(each.worker_id, GI2.create(each.index.settings)) for each in deployment.workers]
    publications = publications_of(events)
    n_moves = 0
    for batch in batches_of(events, 8):
        deployment.disturb(rng)
        segment = deployment.process(batch)
        n_moves += changes(segment, MOVE).num_rows
        for worker in twice:
            worker.update(segment)
            worker.update(segment)
        live = np.array(sorted(deployment.live()))
        for worker, like in zip(twice, deployment.workers, strict=True):
            for mine, others in zip(worker.index.stored(live), like.index.stored(live), strict=True):
                np.testing.assert_array_equal(mine, others)
            assert worker.index.counts().n_subscriptions == like.index.counts().n_subscriptions
    once = deployment.matches(publications)
    for host, worker in zip(deployment.hosts, twice, strict=True):
        host.worker = worker
    assert deployment.matches(publications) == once
    assert n_moves > 20


def test_a_worker_reports_the_work_of_a_batch_and_what_its_cells_hold_now() -> None:
    events = random_stream(300, 6, n_subscription_ids=40)
    plan = plan_for(events)
    registrar = Registrar(plan)
    worker = Worker(0, GI2.create(SETTINGS.index_settings(plan)))
    seen = 0
    for batch in batches_of(events, 60):
        worker.update(registrar.decide(updates_of(batch)).segment)
        before = worker.cell_counters()
        assert set(before) == set(WORK_COUNTERS)
        packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(batch)).packets
        packet = packets.get(0, pa.RecordBatch.from_pylist([], ROUTED))
        found = worker.match(packet, BEFORE_ALL)
        report = worker.cell_loads(before)
        assert report.schema == CELL_LOADS
        points = zip(packet.column("lon").to_pylist(), packet.column("lat").to_pylist(), strict=True)
        published = Counter(plan.grid.cell(lon, lat) for lon, lat in points)
        cells = report.column("cell").to_pylist()
        assert cells == sorted(published), "those without a publication are left out"
        assert report.column("publications").to_pylist() == [published[cell] for cell in cells]
        assert sum(report.column("matches").to_pylist()) == len(matches_of(found))
        counters = worker.index.cell_counters()
        for name in ("subscriptions", "bytes"):
            assert report.column(name).to_pylist() == counters[name][cells].tolist(), "now, not since"
        for name in WORK_COUNTERS:
            assert report.column(name).to_pylist() == (counters[name] - before[name])[cells].tolist()
        seen += len(matches_of(found))
        before = worker.cell_counters()
        assert worker.cell_loads(before).num_rows == 0
    assert seen > 10
