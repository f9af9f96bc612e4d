"""Wherever a worker lives, its host answers with all that was decided up to where it stands."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engines.deployments import local_stream, random_edit, random_plan
from engines.streams import SETTINGS, TOKENIZER, batches_of, matches_of, publications_of, updates_of
from ps2stream.arrays import frozen
from ps2stream.arrow import concat
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS, PUBLICATIONS
from ps2stream.model.space import Grid
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import MOVE, changes
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.heap_host import HeapHost
from ps2stream.roles.packets import CELL_LOADS, FOUND
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker import Worker
from ps2stream.roles.worker_host import Standing, WorkerHost, fetching
from ps2stream.routing.routing import PlanNumbers
from ps2stream.state.kept_host import KeptHost
from ps2stream.state.state import State


class Hosts(Protocol):
    """The hosts of all workers of an engine, however it tells them what was decided."""

    def decide(self, batch_id: int, segment: pa.RecordBatch, routing: PlanNumbers) -> None: ...

    def at(self, standing: Standing) -> list[WorkerHost]: ...


class OnTheHeap:
    def __init__(self, plan: Plan, directory: Path) -> None:
        standing = Standing(-1, SETTINGS.index_settings(plan))
        self._hosts = [HeapHost(worker, standing) for worker in range(plan.n_workers)]

    def decide(self, batch_id: int, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        for host in self._hosts:
            host.take(segment)

    def at(self, standing: Standing) -> list[WorkerHost]:
        for host in self._hosts:
            host.stand(standing)
        return list(self._hosts)


class InMappedFiles:
    def __init__(self, plan: Plan, directory: Path) -> None:
        self._n_workers = plan.n_workers
        self._state = State.at(directory).create(plan, replace(SETTINGS, n_workers=plan.n_workers))

    def decide(self, batch_id: int, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        self._state.ledger.decide(batch_id, segment, routing)

    def at(self, standing: Standing) -> list[WorkerHost]:
        return [self._state.worker_host(worker, standing) for worker in range(self._n_workers)]


class KeptMapped(InMappedFiles):
    def __init__(self, plan: Plan, directory: Path) -> None:
        super().__init__(plan, directory)
        standing = Standing(-1, SETTINGS.index_settings(plan))
        self._hosts = [KeptHost(worker, self._state, standing) for worker in range(plan.n_workers)]

    def decide(self, batch_id: int, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        super().decide(batch_id, segment, routing)
        for host in self._hosts:
            host.take(batch_id, segment)

    def at(self, standing: Standing) -> list[WorkerHost]:
        for host in self._hosts:
            host.stand(standing)
        return list(self._hosts)


@pytest.fixture(params=[OnTheHeap, InMappedFiles, KeptMapped])
def hosts_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Plan], Hosts]:
    """Make hosts of no subscriptions yet."""
    return lambda plan: request.param(plan, tmp_path / "state")


PLAN = random_plan(random.Random(4))


def _standing(batch_id: int, plan: Plan = PLAN, horizon: int = BEFORE_ALL_SEQS) -> Standing:
    return Standing(batch_id, SETTINGS.index_settings(plan), horizon)


def _decided(hosts: Hosts, registrar: Registrar, events: pa.RecordBatch, batch_id: int = 0) -> pa.RecordBatch:
    segment = registrar.decide(updates_of(events)).segment
    hosts.decide(batch_id, segment, registrar.plan_numbers)
    return segment


def test_hosts_find_what_a_worker_with_the_same_segments_finds(hosts_of: Callable[[Plan], Hosts]) -> None:
    events, registrar, hosts = local_stream(240, 4), Registrar(PLAN), hosts_of(PLAN)
    workers = [Worker(i, GI2.create(_standing(0).settings)) for i in range(PLAN.n_workers)]
    n_found, n_updates = 0, 0
    for batch_id, batch in enumerate(batches_of(events, 60)):
        segment = _decided(hosts, registrar, batch, batch_id)
        packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(batch)).packets
        for host, worker in zip(hosts.at(_standing(batch_id)), workers, strict=True):
            assert host.worker_id == worker.worker_id
            worker.update(segment)
            before = worker.index.counts()
            packet = packets.get(host.worker_id)
            served = host.match([] if packet is None else [packet.slice(0, 5), packet.slice(5)])
            found = [match for each in served.found for match in matches_of(each)]
            expected = [] if packet is None else matches_of(worker.match(packet, BEFORE_ALL_SEQS))
            assert sorted(found) == sorted(expected)
            assert all(each.schema == FOUND for each in served.found)
            report = served.report
            assert report.worker == host.worker_id
            assert report.n_publications == (0 if packet is None else packet.num_rows)
            after = worker.index.counts()
            assert report.n_candidates == after.n_candidates - before.n_candidates
            assert report.n_matches == len(found) <= report.n_candidates
            assert report.n_subscriptions == after.n_subscriptions
            assert report.n_bytes > 0
            assert 0.0 <= report.update_s <= report.busy_s
            n_found, n_updates = n_found + len(found), n_updates + report.n_updates
    assert n_found > 20
    assert n_updates == sum(worker.n_updates for worker in workers) > 100


def test_applying_is_enough_once_and_harmless_twice(hosts_of: Callable[[Plan], Hosts]) -> None:
    events, registrar, hosts = local_stream(100, 5), Registrar(PLAN), hosts_of(PLAN)
    _decided(hosts, registrar, events)
    packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets
    found = []
    for _ in range(2):
        for host in hosts.at(_standing(0)):
            host.apply()
            host.apply()
        for host in hosts.at(_standing(0)):
            served = host.match([packets[host.worker_id]] if host.worker_id in packets else [])
            found.append([match for each in served.found for match in matches_of(each)])
    assert found[: PLAN.n_workers] == found[PLAN.n_workers :]
    assert any(found)


def test_loads_are_counted_where_they_are_asked_for(hosts_of: Callable[[Plan], Hosts]) -> None:
    events, registrar, hosts = local_stream(200, 6), Registrar(PLAN), hosts_of(PLAN)
    _decided(hosts, registrar, events)
    packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets
    # Some hosts tell what came of all batches since they were asked.
    last = 2 if isinstance(hosts, KeptMapped) else 1
    for with_loads, times in ((True, 1), (False, 0), (True, last)):
        for host in hosts.at(_standing(0)):
            packet = packets.get(host.worker_id)
            loads = host.match([] if packet is None else [packet], with_loads=with_loads).loads
            assert loads.schema == CELL_LOADS
            counted = sum(loads.column("publications").to_pylist())
            assert counted == (0 if packet is None else times * packet.num_rows)


def test_subscriptions_are_fetched_from_those_who_store_them(hosts_of: Callable[[Plan], Hosts]) -> None:
    events, registrar, hosts = local_stream(200, 7), Registrar(PLAN), hosts_of(PLAN)
    segment = _decided(hosts, registrar, events)
    live = frozen(registrar.registry.live_seqs())
    stored = set()
    fetch = fetching(hosts.at(_standing(0)))
    for worker in range(PLAN.n_workers):
        like = Worker(worker, GI2.create(_standing(0).settings))
        like.update(segment)
        found = fetch(worker, live)
        for mine, others in zip(found, like.index.stored(live), strict=True):
            np.testing.assert_array_equal(mine, others)
        stored.update(found.seq_from.tolist())
        assert len(fetch(worker, live[:0]).seq_from) == 0
        assert len(fetch(worker, frozen(np.array([1 << 40]))).seq_from) == 0
    assert stored == set(live.tolist())


def test_contents_are_counted_in_the_grid_of_the_plan(hosts_of: Callable[[Plan], Hosts]) -> None:
    events, registrar, hosts = local_stream(200, 8), Registrar(PLAN), hosts_of(PLAN)
    segment = _decided(hosts, registrar, events)
    finer = replace(PLAN, number=2, grid=Grid.over((-180.0, -90.0, 180.0, 90.0), 4))
    for plan in (PLAN, finer, PLAN):
        settings = SETTINGS.index_settings(plan)
        for host in hosts.at(_standing(0, plan)):
            like = Worker(host.worker_id, GI2.create(settings))
            like.update(segment)
            contents = host.contents()
            assert len(contents) == plan.grid.n_cells
            np.testing.assert_array_equal(contents, like.index.cell_counters(["bytes"])["bytes"])
            assert (contents.sum() > 0) == (report_of(host) > 0)


def report_of(host: WorkerHost) -> int:
    return host.match([]).report.n_subscriptions


def test_what_moves_between_hosts_changes_no_match(hosts_of: Callable[[Plan], Hosts]) -> None:
    rng = random.Random(9)
    events, registrar, hosts = local_stream(400, 9), Registrar(PLAN), hosts_of(PLAN)
    _decided(hosts, registrar, events)
    # After all updates: what ended is not routed any more when the next batch is decided.
    publications = publications_of(events)
    later = pc.add(publications.column("seq"), events.num_rows)
    publications = publications.set_column(0, PUBLICATIONS.field("seq"), later)
    before = _matches(hosts, registrar, publications, 0)
    n_moves = 0
    for batch_id in range(1, 5):
        edited = random_edit(rng, registrar.plan)
        plan = edited.plan(registrar.plan.number + 1)
        fetch = fetching(hosts.at(_standing(batch_id - 1, registrar.plan)))
        moved = registrar.relocate(plan, edited.changed_cells, fetch)
        n_moves += changes(moved.rows, MOVE).num_rows
        segment = concat([moved.rows, registrar.decide(updates_of(events.slice(0, 0))).segment])
        hosts.decide(batch_id, segment, registrar.plan_numbers)
        assert _matches(hosts, registrar, publications, batch_id) == before
    assert n_moves > 5
    assert len(before) > 10


def _matches(
    hosts: Hosts, registrar: Registrar, publications: pa.RecordBatch, batch_id: int
) -> list[tuple[int, str, int]]:
    packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications).packets
    found: list[tuple[int, str, int]] = []
    for host in hosts.at(_standing(batch_id, registrar.plan)):
        if host.worker_id in packets:
            for each in host.match([packets[host.worker_id]]).found:
                found += matches_of(each)
    return sorted(found)


def test_what_ended_below_the_horizon_may_be_forgotten_and_nothing_else(
    hosts_of: Callable[[Plan], Hosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GI2, "should_compact", lambda self: True)
    events, registrar, hosts = local_stream(200, 10), Registrar(PLAN), hosts_of(PLAN)
    first, second = batches_of(events, 100)
    _decided(hosts, registrar, first, 0)
    horizon = int(first.column("seq")[-1].as_py())
    for host in hosts.at(_standing(0)):
        host.apply()
    _decided(hosts, registrar, second, 1)
    live = frozen(registrar.registry.live_seqs())
    standing = _standing(1, horizon=horizon)
    stored = {seq for host in hosts.at(standing) for seq in host.fetch(live).seq_from.tolist()}
    assert stored == set(live.tolist())
    whole = Registrar(PLAN)
    whole.decide(updates_of(events))
    expected = [match for match in _expected(events) if match[0] > horizon]
    packets = Dispatcher(whole.grid_ts, TOKENIZER).dispatch(publications_of(second)).packets
    found = [
        match
        for host in hosts.at(standing)
        for each in host.match([packets[host.worker_id]] if host.worker_id in packets else []).found
        for match in matches_of(each)
    ]
    assert sorted(found) == expected


def _expected(events: pa.RecordBatch) -> list[tuple[int, str, int]]:
    """Let workers that forget nothing match all publications."""
    registrar = Registrar(PLAN)
    segment = registrar.decide(updates_of(events)).segment
    packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets
    found: list[tuple[int, str, int]] = []
    for worker_id, packet in packets.items():
        worker = Worker(worker_id, GI2.create(_standing(0).settings))
        worker.update(segment)
        found += matches_of(worker.match(packet, BEFORE_ALL_SEQS))
    return sorted(found)
