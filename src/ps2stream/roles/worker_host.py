"""Where a worker lives: what an engine and the controller need of one, wherever its index is.

An engine lets its hosts *stand* at a batch. Whatever they are asked then, they answer with an index that has
all that was decided up to that batch, so nobody has to care who brings it up to date, or when. Nobody maps
or holds the index itself: what goes in and out is Arrow or flat arrays, and could go to another host.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.matching.contract import IndexCounts, IndexSettings, Subscriptions, WorkerIndex
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.roles.migration import Fetch
from ps2stream.roles.packets import CELL_LOADS
from ps2stream.roles.reports import WorkerReport
from ps2stream.roles.worker import Worker

_Index = TypeVar("_Index", bound=WorkerIndex)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where workers stand: the same for all of them.

    ``batch_id``: what was decided up to this batch is in the index.
    ``settings``: of the index, by the newest plan; work is counted in the cells of that plan's grid.
    ``horizon``: below it no publication will come any more, so what ended up to it may be forgotten.
    ``switch_seq``: subscriptions that began up to it are stored by an older plan.
    """

    batch_id: int
    settings: IndexSettings
    horizon: int = BEFORE_ALL_SEQS
    switch_seq: int = BEFORE_ALL_SEQS


class Served(NamedTuple):
    """What came of the packets of a batch: matches (schema FOUND), loads of cells, a report."""

    found: list[pa.RecordBatch]
    loads: pa.RecordBatch
    report: WorkerReport


class WorkerHost(Protocol):
    """One worker; each call is whole, and brings the index to where the host stands."""

    @property
    def worker_id(self) -> int: ...

    def apply(self) -> None:
        """Apply what was decided up to where the host stands; calls that need it do so by themselves."""
        ...

    def match(self, packets: Iterable[pa.RecordBatch], *, with_loads: bool = False) -> Served:
        """Match packets of publications (schema ROUTED); loads of cells are only counted if asked for.

        They are those of these packets, or of all since they were asked for last where a host knows both.
        """
        ...

    def fetch(self, seqs: Int64s) -> Subscriptions:
        """Copy the subscriptions that began at these seqs, as far as they are stored here."""
        ...

    def contents(self) -> Int64s:
        """Return the bytes that are stored in each cell of the plan's grid."""
        ...


class LendingHost(ABC):
    """A worker that is lent to whoever needs it, with an index that is up to date by then."""

    __slots__ = ()

    @abstractmethod
    def lent(self) -> AbstractContextManager[Worker[GI2]]:
        """Lend the worker with an index that has the log up to where the host stands."""

    def apply(self) -> None:
        with self.lent():
            pass

    def fetch(self, seqs: Int64s) -> Subscriptions:
        with self.lent() as worker:
            return worker.index.stored(seqs)

    def contents(self) -> Int64s:
        with self.lent() as worker:
            return worker.index.cell_counters(["bytes"])["bytes"]


def told_of_host(served: Served, host: str, rebuilt_since: float | None) -> Served:
    """Say in the report where a worker was and, if it was built anew since some time, how long that took."""
    rebuild_s = 0.0 if rebuilt_since is None else served.report.ready_at - rebuilt_since
    return served._replace(report=replace(served.report, host=host, rebuild_s=rebuild_s))


def fetching(hosts: Sequence[WorkerHost]) -> Fetch:
    """Ask hosts, by the numbers of their workers, for subscriptions."""
    return lambda worker, seqs: hosts[worker].fetch(seqs)


def serve(
    worker: Worker[_Index],
    packets: Iterable[pa.RecordBatch],
    standing: Standing,
    started: float,
    *,
    with_loads: bool,
    before: IndexCounts | None = None,
) -> Served:
    """Match packets with a worker that is up to date; ``started``: CPU time before it was brought there.

    ``before``: what its index had counted then, where somebody knows.
    """
    update_s, ready_at = time.process_time() - started, time.time()
    before = before or worker.index.counts()
    counters = worker.cell_counters() if with_loads else None
    found = [worker.match(packet, standing.horizon, standing.switch_seq) for packet in packets]
    after = worker.index.counts()
    report = WorkerReport(
        worker.worker_id,
        after.n_publications - before.n_publications,
        worker.n_updates,
        after.n_candidates - before.n_candidates,
        after.n_matches - before.n_matches,
        after.n_subscriptions,
        after.n_bytes,
        time.process_time() - started,
        update_s,
        ready_at,
    )
    return Served(found, empty(CELL_LOADS) if counters is None else worker.cell_loads(counters), report)
