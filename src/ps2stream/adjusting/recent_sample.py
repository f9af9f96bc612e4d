"""What the stream was like recently: the sample that load adjustment decides on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, Ragged, frozen
from ps2stream.arrow import ragged_of
from ps2stream.matching.contract import Subscriptions
from ps2stream.model.schemas import empty
from ps2stream.model.space import Grid
from ps2stream.partitioning.sample import Sample, some_of
from ps2stream.roles.migration import touching_cells
from ps2stream.roles.packets import SAMPLED
from ps2stream.roles.registrar import Registrar

#: This many publications are kept. One in some dozens is sampled, so they are the last million or so.
KEPT = 40_000
#: At most this many subscriptions of a cell are looked at.
_CELL_SUBSCRIPTIONS = 5_000


class RecentSample:
    """Keep a sample of the newest publications, and count how the stream is mixed."""

    def __init__(self) -> None:
        self._batches: deque[pa.RecordBatch] = deque()
        self._n_kept = 0
        self._n_publications = 0
        self._n_updates = 0

    def add(self, sampled: Iterable[pa.RecordBatch], n_publications: int, n_updates: int) -> None:
        for batch in sampled:
            if batch.num_rows:
                self._batches.append(batch)
                self._n_kept += batch.num_rows
        while self._batches and self._n_kept - self._batches[0].num_rows >= KEPT:
            self._n_kept -= self._batches.popleft().num_rows
        # Older events count less and less, so that the mix is that of the recent past, too.
        keep = 0.9 if self._n_publications else 1.0
        self._n_publications = round(keep * self._n_publications) + n_publications
        self._n_updates = round(keep * self._n_updates) + n_updates

    def sample(self, subs: Subscriptions, n_live: int) -> Sample:
        """Put the publications together with some of the live subscriptions."""
        rows = pa.concat_batches([empty(SAMPLED), *self._batches])
        terms = ragged_of(rows.column("terms"))
        return Sample(
            frozen(rows.column("lon").to_numpy()),
            frozen(rows.column("lat").to_numpy()),
            Ragged(frozen(terms.values), frozen(terms.offsets)),
            frozen(subs.bounds),
            frozen(subs.clause_offsets),
            frozen(subs.term_offsets),
            frozen(subs.terms),
            n_live=n_live,
            churn=self._n_updates / max(self._n_publications, 1) / 2,
        )


class CellEvidence:
    """Show local adjustment what is in a cell (``balance.local_adjustment.Evidence``)."""

    def __init__(self, recent: RecentSample, registrar: Registrar, seed: int) -> None:
        self._registrar = registrar
        self._random = np.random.default_rng(seed)
        self._publications = recent.sample(_nothing(), 0)
        grid: Grid = registrar.plan.grid
        self._cells = _cells_of(grid, self._publications)
        self._live = registrar.registry.live_versions()
        self._bounds = registrar.registry.bounds(self._live)
        self._known: dict[int, Sample] = {}

    def __call__(self, cell: int) -> Sample:
        if cell not in self._known:
            self._known[cell] = self._sample(cell)
        return self._known[cell]

    def _sample(self, cell: int) -> Sample:
        live = self._live[touching_cells(self._registrar.plan.grid, self._bounds, np.array([cell]))]
        chosen = live
        if len(live) > _CELL_SUBSCRIPTIONS:
            chosen = np.sort(self._random.choice(live, _CELL_SUBSCRIPTIONS, replace=False))
        postings = self._registrar.registry.postings(chosen)
        inside = some_of(self._publications, np.flatnonzero(self._cells == cell), np.empty(0, np.int64))
        # Where a subscription is posted is decided already: each clause is its posting term, and no more.
        return inside._replace(
            bounds=postings.bounds,
            clause_offsets=postings.offsets,
            term_offsets=frozen(np.arange(len(postings.terms) + 1)),
            clause_terms=postings.terms,
            n_live=len(live),
        )


def _cells_of(grid: Grid, sample: Sample) -> Int64s:
    columns = (sample.lon - grid.min_lon) * grid.columns_per_degree
    rows = (sample.lat - grid.min_lat) * grid.rows_per_degree
    last = (1 << grid.bits) - 1
    clamped = [np.clip(each, 0, last).astype(np.int64) for each in (columns, rows)]
    cells: Int64s = clamped[1] << grid.bits | clamped[0]
    return cells


def _nothing() -> Subscriptions:
    none, start = np.empty(0, np.int64), np.zeros(1, np.int64)
    return Subscriptions(none, none, np.empty(0), start, start, np.empty(0, np.uint64))
