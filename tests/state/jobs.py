"""Jobs whose log is written, and what their workers should find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from engines.deployments import Deployment
from engines.streams import (
    SETTINGS,
    TOKENIZER,
    batches_of,
    matches_of,
    plan_for,
    publications_of,
    random_stream,
    updates_of,
)
from ps2stream.arrays import frozen
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.partitioning.plan import Plan
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker import Worker
from ps2stream.roles.worker_host import Standing
from ps2stream.state.mapped_host import MappedHost
from ps2stream.state.state import State

N_BATCHES = 8
WORKER = 0

Matches = list[tuple[int, str, int]]


@dataclass(frozen=True, slots=True)
class Job:
    """A state whose log has all updates of a stream, and what a worker should find at its end."""

    state: State
    plan: Plan
    segments: list[pa.RecordBatch]
    packet: pa.RecordBatch
    expected: Matches

    @property
    def arrays(self) -> Path:
        """Return where the files of the worker's index are."""
        return self.state.host.directory / "index" / f"worker-{WORKER:03}" / "arrays"

    def host(self, batch_id: int = N_BATCHES - 1, state: State | None = None) -> MappedHost:
        standing = Standing(batch_id, SETTINGS.index_settings(self.plan))
        return (state or self.state).worker_host(WORKER, standing)

    def matches(self, batch_id: int = N_BATCHES - 1, state: State | None = None) -> Matches:
        """Let the worker match all publications, with what it has seen up to a batch."""
        (found,) = self.host(batch_id, state).match([self.packet]).found
        return matches_of(found)

    def restored(self, n_segments: int) -> Registrar:
        """Build a registrar that has decided on the first batches."""
        registrar = Registrar(self.plan)
        registrar.restore(self.segments[:n_segments])
        return registrar


def job_at(state: State, seed: int = 7) -> Job:
    """Make a job in a state that does not exist yet."""
    events = random_stream(400, seed, n_subscription_ids=30)
    plan = plan_for(events)
    state.create(plan, SETTINGS)
    registrar, segments = Registrar(plan), []
    for batch_id, batch in enumerate(batches_of(events, 50)):
        segments.append(registrar.decide(updates_of(batch)).segment)
        state.ledger.decide(batch_id, segments[-1], registrar.plan_numbers)
    assert len(segments) == N_BATCHES
    router = Registrar(plan)
    router.decide(updates_of(events))
    packet = Dispatcher(router.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets[WORKER]
    expected = expected_matches(plan, segments, packet)
    assert len(expected) > 20
    return Job(state, plan, segments, packet, expected)


def expected_matches(plan: Plan, segments: list[pa.RecordBatch], packet: pa.RecordBatch) -> Matches:
    """Let a worker that never saw a disk match all publications."""
    worker = Worker(WORKER, GI2.create(SETTINGS.index_settings(plan)))
    for segment in segments:
        worker.update(segment)
    return matches_of(worker.match(packet, BEFORE_ALL_SEQS))


@dataclass(slots=True)
class AdjustedJob:
    """A state whose log has moves, switches and unions, next to workers that never saw a disk."""

    deployment: Deployment
    state: State
    events: pa.RecordBatch

    def settings(self) -> IndexSettings:
        return SETTINGS.index_settings(self.deployment.registrar.plan)

    def host(self, worker_id: int, batch_id: int) -> MappedHost:
        return self.state.worker_host(worker_id, Standing(batch_id, self.settings()))

    def process(self, batch_id: int, batch: pa.RecordBatch) -> None:
        segment = self.deployment.process(batch)
        written = self.state.plans.store.list()
        for plan in self.deployment.plans.values():
            if f"plan-{plan.number:06}.npz" not in written:
                self.state.plans.add(plan)
        self.state.ledger.decide(batch_id, segment, self.deployment.registrar.plan_numbers)

    def assert_same_workers(self, batch_id: int) -> None:
        """See that the workers of the state store what the others do."""
        live = frozen(np.array(sorted(self.deployment.live()), np.int64))
        for like in self.deployment.hosts:
            host = self.host(like.worker_id, batch_id)
            for mine, others in zip(host.fetch(live), like.fetch(live), strict=True):
                np.testing.assert_array_equal(mine, others)
            np.testing.assert_array_equal(host.contents(), like.contents())
            with host.lent() as worker:
                counted = worker.index.cell_counters()["subscriptions"]
            expected = like.worker.index.cell_counters()["subscriptions"]
            np.testing.assert_array_equal(counted, expected)
