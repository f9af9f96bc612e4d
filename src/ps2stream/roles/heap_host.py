"""A worker whose index is on the heap of this process."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.matching.contract import Subscriptions
from ps2stream.matching.index import GI2
from ps2stream.roles.worker import Worker
from ps2stream.roles.worker_host import Served, Standing, serve


class HeapHost:
    """Keep a worker; segments are handed over as they are decided, and forgotten once they are applied."""

    def __init__(self, worker_id: int, standing: Standing) -> None:
        self.worker = Worker(worker_id, GI2.create(standing.settings))
        self._standing = standing
        self._pending: list[pa.RecordBatch] = []
        self._n_reported = 0

    @property
    def worker_id(self) -> int:
        return self.worker.worker_id

    def take(self, segment: pa.RecordBatch) -> None:
        """Take what was decided next."""
        self._pending.append(segment)

    def stand(self, standing: Standing) -> None:
        """Stand at a batch; its segment has been taken."""
        self._standing = standing

    def apply(self) -> None:
        worker, settings = self.worker, self._standing.settings
        if worker.index.settings.counters != settings.counters:
            worker.index = worker.index.counted_in(settings.counters)
        for segment in self._pending:
            worker.update(segment)
        self._pending.clear()
        if worker.index.should_compact():
            worker.index = worker.index.compacted(self._standing.horizon)

    def match(self, packets: Iterable[pa.RecordBatch], *, with_loads: bool = False) -> Served:
        started = time.process_time()
        self.apply()
        served = serve(self.worker, packets, self._standing, started, with_loads=with_loads)
        n_updates, self._n_reported = self.worker.n_updates - self._n_reported, self.worker.n_updates
        return served._replace(report=replace(served.report, n_updates=n_updates))

    def fetch(self, seqs: Int64s) -> Subscriptions:
        self.apply()
        return self.worker.index.stored(seqs)

    def contents(self) -> Int64s:
        self.apply()
        return self.worker.index.cell_counters(["bytes"])["bytes"]
