"""A worker in mapped files that one process serves for long, and to whom it hands what was decided.

The files stay mapped from batch to batch. They, the mark and the lock are those of every worker
(``worker_home.py``), so any other process of the host may serve the worker afterwards, or in between: the
mark is signed, and where it is not the one that was set here last, the index is opened again. To open the
indexes of four workers and to list the log for each costs milliseconds in every batch, however small.
"""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from ps2stream.matching.contract import IndexCounts
from ps2stream.matching.index import GI2
from ps2stream.roles.reports import WorkerReport
from ps2stream.roles.worker import CellCounters, Worker
from ps2stream.roles.worker_host import LendingHost, Served, Standing, serve, told_of_host
from ps2stream.state.mapped_host import brought_up, opened_index
from ps2stream.state.state import State


@dataclass(frozen=True, slots=True)
class _Kept:
    """An index that stays mapped, the batch up to which it has the log, and the signature of its mark."""

    index: GI2
    upto: int
    signature: str


@dataclass(slots=True)
class _Known:
    """What an index had counted after the last batch, and in its cells when their loads were told last."""

    index: GI2
    counts: IndexCounts
    cells: CellCounters


def _after(counts: IndexCounts, report: WorkerReport) -> IndexCounts:
    """Add the work of a batch: the index would have to sum up all its cells."""
    return replace(
        counts,
        n_publications=counts.n_publications + report.n_publications,
        n_candidates=counts.n_candidates + report.n_candidates,
        n_matches=counts.n_matches + report.n_matches,
    )


class KeptHost(LendingHost):
    """One worker of a job that is the only one to decide; ``take`` and ``stand`` come before each batch."""

    def __init__(self, worker_id: int, state: State, standing: Standing) -> None:
        self.worker_id = worker_id
        self._log, self._home = state.log, state.host.worker_home(worker_id)
        self._standing = standing
        self._pending: list[tuple[int, pa.RecordBatch]] = []
        self._kept: _Kept | None = None
        self._known: _Known | None = None
        self._signer, self._n_signed = uuid.uuid4().hex, 0
        self._host_name = socket.gethostname()

    def take(self, batch_id: int, segment: pa.RecordBatch) -> None:
        """Take what was decided next, and is in the log."""
        self._pending.append((batch_id, segment))

    def stand(self, standing: Standing) -> None:
        """Stand at a batch that is decided; its segment, if it has one, has been taken."""
        self._standing = standing

    def match(self, packets: Iterable[pa.RecordBatch], *, with_loads: bool = False) -> Served:
        """Match packets; loads are of all batches since they were asked for last, as far as that is known."""
        started = time.process_time()
        rebuilt_since = None if self._home.is_clean() else time.time()
        with self.lent() as worker:
            known = self._known_of(worker)
            served = serve(worker, packets, self._standing, started, with_loads=False, before=known.counts)
            known.counts = _after(known.counts, served.report)
            if with_loads:
                served = served._replace(loads=worker.cell_loads(known.cells))
                known.cells = worker.cell_counters()
        return told_of_host(served, self._host_name, rebuilt_since)

    @contextlib.contextmanager
    def lent(self) -> Iterator[Worker[GI2]]:
        """Lend the worker with an index that has the log up to where the host stands."""
        standing, home = self._standing, self._home
        with home.locked():
            index, upto, pending = self._opened()
            self._kept = None  # what fails from here on leaves files that nobody may trust
            home.mark_dirty()
            if index.settings.counters != standing.settings.counters:
                index = index.counted_in(standing.settings.counters)
            worker = brought_up(Worker(self.worker_id, index), pending, home, standing)
            yield worker
            self._n_signed += 1
            kept = _Kept(worker.index, max(upto, standing.batch_id), f"{self._signer}-{self._n_signed}")
            home.mark_clean(kept.upto, standing.settings.counters, kept.signature)
            self._kept = kept
            self._pending = [each for each in self._pending if each[0] > kept.upto]

    def _known_of(self, worker: Worker[GI2]) -> _Known:
        """Return what the index had counted when it was asked last; as it is now, if it was another."""
        if self._known is None or self._known.index is not worker.index:
            self._known = _Known(worker.index, worker.index.counts(), worker.cell_counters())
        return self._known

    def _opened(self) -> tuple[GI2, int, list[pa.RecordBatch]]:
        """Return the index, the batch up to which it has the log, and what it lacks."""
        kept, upto_now = self._kept, self._standing.batch_id
        if kept is not None and self._home.is_marked(kept.signature):
            pending = [segment for batch_id, segment in self._pending if kept.upto < batch_id <= upto_now]
            return kept.index, kept.upto, pending
        index, upto = opened_index(self._home, self._log, self._standing)
        return index, upto, [segment for _, segment in self._log.read(after=upto, upto=upto_now)]
