"""The loads of cells and workers in the recent past, as the workers report them (Definition 3).

The paper's load of a cell is the number of publications in it times the number of subscriptions
stored there. An index looks at far fewer; what it looks at is counted, and charged by what each look
costs. Both are sums over batches, so a window of batches is as easily kept as one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s
from ps2stream.partitioning.load import LoadFunction


class WorkCosts(NamedTuple):
    """What a worker's index pays for, in nanoseconds each."""

    publication: float
    lookup: float
    candidate: float
    match: float


#: Fitted to the busy time of workers on Q1, Q2 and Q3 with 300,000 and 400,000 subscriptions, and rounded:
#: the time of a worker comes within 7 % of it (docs/performance.md). What a match costs is mostly to send it.
WORK_COSTS = WorkCosts(publication=700.0, lookup=150.0, candidate=15.0, match=300.0)


class CellTable(NamedTuple):
    """The cells of one worker that had publications in a window; a row each, cells ascending.

    ``subscriptions`` is the average over the batches that the cell had publications in, ``sizes`` are the
    bytes that would move with it now.
    """

    cells: Int64s
    loads: Float64s
    sizes: Int64s
    publications: Int64s
    candidates: Int64s
    matches: Int64s
    subscriptions: Float64s


class _Batch(NamedTuple):
    n_publications: int
    reports: list[pa.RecordBatch]
    loads: list[Float64s]
    totals: Float64s
    busy_s: Float64s


def loads_of(report: pa.RecordBatch, load: LoadFunction) -> Float64s:
    """Charge the work of every cell of a report (schema CELL_LOADS)."""
    columns = {name: report.column(name).to_numpy() for name in report.schema.names}
    if load == "paper":
        return np.asarray(columns["publications"] * columns["subscriptions"], np.float64)
    costs = WORK_COSTS
    return np.asarray(
        costs.publication * columns["publications"]
        + costs.lookup * columns["lookups"]
        + costs.candidate * columns["candidates"]
        + costs.match * columns["matches"]
    )


class Window:
    """Keep the reports of the newest batches that hold at least ``size`` publications together."""

    def __init__(self, n_workers: int, size: int, load: LoadFunction, nothing: pa.RecordBatch) -> None:
        self._n_workers = n_workers
        self._size = size
        self._load = load
        self._nothing = nothing
        self._batches: deque[_Batch] = deque()
        self.n_publications = 0

    @property
    def is_full(self) -> bool:
        return self.n_publications >= self._size

    def add(
        self, n_publications: int, reports: Mapping[int, pa.RecordBatch], busy_s: Mapping[int, float]
    ) -> None:
        """Enter a batch: what each worker reports of its cells, and the time that it was busy."""
        if not n_publications:
            return
        ordered = [reports.get(worker, self._nothing) for worker in range(self._n_workers)]
        loads = [loads_of(report, self._load) for report in ordered]
        totals = np.array([each.sum() for each in loads])
        busy = np.array([busy_s.get(worker, 0.0) for worker in range(self._n_workers)])
        self._batches.append(_Batch(n_publications, ordered, loads, totals, busy))
        self.n_publications += n_publications
        while self.n_publications - self._batches[0].n_publications >= self._size:
            self.n_publications -= self._batches.popleft().n_publications

    def clear(self) -> None:
        """Forget all: what was counted under another plan says nothing about this one."""
        self._batches.clear()
        self.n_publications = 0

    def totals(self) -> Float64s:
        """Return the load of each worker."""
        return self._sum([batch.totals for batch in self._batches])

    def halves(self) -> tuple[Float64s, Float64s]:
        """Return the loads of the workers in the older and in the newer half of the publications."""
        n = 0
        older: list[Float64s] = []
        newer: list[Float64s] = []
        for batch in self._batches:
            (older if 2 * n < self.n_publications else newer).append(batch.totals)
            n += batch.n_publications
        if not newer:  # one batch is all there is
            newer = older
        return self._sum(older), self._sum(newer)

    def busy_s(self) -> Float64s:
        return self._sum([batch.busy_s for batch in self._batches])

    def table(self, worker: int) -> CellTable:
        """Add up what a worker reported, cell by cell."""
        reports = [batch.reports[worker] for batch in self._batches]
        if not reports:
            reports = [self._nothing]
        columns = {
            name: np.concatenate([report.column(name).to_numpy() for report in reports])
            for name in self._nothing.schema.names
        }
        loads = np.concatenate([np.empty(0), *(batch.loads[worker] for batch in self._batches)])
        cells, row = np.unique(columns["cell"], return_inverse=True)
        sizes = np.zeros(len(cells), np.int64)
        sizes[row] = columns["bytes"]  # of several the last one stays, which is the newest
        n_batches = np.bincount(row, minlength=len(cells))

        def total(values: Int64s | Float64s) -> Float64s:
            return np.bincount(row, weights=values, minlength=len(cells)).astype(np.float64)

        return CellTable(
            cells.astype(np.int64),
            total(loads),
            sizes,
            total(columns["publications"]).astype(np.int64),
            total(columns["candidates"]).astype(np.int64),
            total(columns["matches"]).astype(np.int64),
            total(columns["subscriptions"]) / np.maximum(n_batches, 1),
        )

    def _sum(self, rows: list[Float64s]) -> Float64s:
        total: Float64s = np.sum(rows, axis=0) if rows else np.zeros(self._n_workers)
        return total
