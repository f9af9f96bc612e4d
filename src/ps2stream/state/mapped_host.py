"""A worker whose index is in mapped files of this host, and which reads the log by itself."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ps2stream.matching.index import GI2
from ps2stream.registry.log import SubscriptionLog
from ps2stream.roles.worker import Worker
from ps2stream.roles.worker_host import LendingHost, Served, Standing, serve, told_of_host
from ps2stream.state.ledger import BEFORE_ALL, Ledger
from ps2stream.state.worker_home import WorkerHome


@dataclass(frozen=True, slots=True)
class MappedHost(LendingHost):
    """A worker that any process of the host may serve."""

    worker_id: int
    standing: Standing
    home: WorkerHome
    ledger: Ledger
    log: SubscriptionLog

    def match(self, packets: Iterable[pa.RecordBatch], *, with_loads: bool = False) -> Served:
        started = time.process_time()
        rebuilt_since = None if self.home.is_clean() else time.time()
        with self.lent() as worker:
            served = serve(worker, packets, self.standing, started, with_loads=with_loads)
        return told_of_host(served, socket.gethostname(), rebuilt_since)

    @contextlib.contextmanager
    def lent(self) -> Iterator[Worker[GI2]]:
        """Lend the worker with an index that has the log up to where the host stands.

        Nobody else touches the index meanwhile: a task that Spark gave up on may still run.
        """
        standing, home = self.standing, self.home
        self.ledger.check_decided(standing.batch_id)
        with home.locked():
            index, upto = opened_index(home, self.log, standing)
            # Read before the mark goes: a log that cannot be read costs no index.
            pending = [segment for _, segment in self.log.read(after=upto, upto=standing.batch_id)]
            home.mark_dirty()
            worker = brought_up(Worker(self.worker_id, index), pending, home, standing)
            yield worker
            home.mark_clean(max(upto, standing.batch_id), standing.settings.counters)


def opened_index(home: WorkerHome, log: SubscriptionLog, standing: Standing) -> tuple[GI2, int]:
    """Return the index of a home, and the batch up to which it has the log; a new one where need be."""
    opened = home.open(standing.settings)
    if opened is None or opened[1] < log.base():  # what it lacks is only left in the snapshot
        opened = home.rebuild(standing.settings), BEFORE_ALL
    return opened


def brought_up(
    worker: Worker[GI2], pending: Iterable[pa.RecordBatch], home: WorkerHome, standing: Standing
) -> Worker[GI2]:
    """Apply what a worker lacks; its home is marked dirty."""
    for segment in pending:
        worker.update(segment)
    if worker.index.should_compact():
        worker.index = home.replace(worker.index, standing.horizon)
    return worker
