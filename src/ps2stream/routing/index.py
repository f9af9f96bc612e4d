"""grid^t, the dispatcher's index (Sec. IV-C): a thin class around the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import (
    Float64s,
    HeapStorage,
    Int32s,
    Int64s,
    MappedStorage,
    Ragged,
    Storage,
    create_struct,
    n_bytes,
    open_struct,
)
from ps2stream.partitioning.plan import Plan
from ps2stream.routing.layout import DTYPES, H2, HEAD_SIZE, N_LIVE, Postings, needed_sizes
from ps2stream.routing.route import fan_out, route
from ps2stream.routing.update import Destinations, count_in, destinations, group, rehash

#: Up to this many cells a region is counted on the finest level of H2.
MAX_CELLS = 64
#: H2 has a grid of its own, no finer than this. A finer one discards more, but its larger table and further
#: levels cost dispatchers and the registrar more than that saves workers (docs/performance.md).
H2_BITS = 6


@dataclass(frozen=True, slots=True)
class Routed:
    """For every term of a batch of publications its worker, and for every worker its publications.

    ``owners`` has a row for each version of the routing, newest first.
    """

    owners: Int32s
    rows: Ragged
    n_discarded: int

    @property
    def n_publications(self) -> Int64s:
        """Count the publications that each worker gets."""
        return np.diff(self.rows.offsets)


class GridT:
    """Route publications and subscriptions by one plan.

    H2 may hold too much, never too little: every subscription of a batch is counted in before
    its first publication is routed, and counted out only after its last one.
    """

    def __init__(self, plan: Plan, storage: Storage, h2: H2) -> None:
        self.plan = plan
        self.h2_grid = plan.grid.coarser(H2_BITS)
        self._storage = storage
        self._h2 = h2

    @classmethod
    def create(cls, plan: Plan, storage: Storage | None = None) -> GridT:
        storage = storage or HeapStorage()
        sizes = {"head": HEAD_SIZE, "keys": 1 << 12, "counts": 1 << 12}
        return cls(plan, storage, create_struct(H2, DTYPES, sizes, storage))

    @classmethod
    def open(cls, plan: Plan, storage: MappedStorage) -> GridT:
        """Map what the registrar wrote, to read it."""
        return cls(plan, storage, open_struct(H2, DTYPES, storage, needed_sizes, shared=False))

    @property
    def n_live(self) -> int:
        """Count the (cell, term) pairs that have a live subscription."""
        return int(self._h2.head[N_LIVE])

    @property
    def n_bytes(self) -> int:
        return n_bytes(self._h2) + n_bytes(self.plan.h1)

    def marks_of(self, postings: Postings) -> Destinations:
        """Mark, a row a subscription and a column a worker, who has to store it."""
        marks = np.zeros((len(postings.offsets) - 1, self.plan.n_workers), np.bool_)
        destinations(self.plan.h1, self.plan.grid, postings, marks)
        return marks

    def workers_of(self, postings: Postings) -> Ragged:
        """Return the workers that each subscription is stored at, ascending."""
        marks = self.marks_of(postings)
        offsets = np.zeros(len(marks) + 1, np.int64)
        values = np.empty(np.count_nonzero(marks), np.int32)
        group(marks, offsets, values)
        return Ragged(values, offsets)

    def add(self, postings: Postings) -> None:
        self._count(postings, 1)

    def remove(self, postings: Postings) -> None:
        """Undo :meth:`add` of the same subscriptions."""
        self._count(postings, -1)

    def adjusted(self, plan: Plan) -> GridT:
        """Return the index for a plan that differs only in who owns what; H2 holds for it as it is."""
        return GridT(plan, self._storage, self._h2)

    def find_owners(self, lon: Float64s, lat: Float64s, terms: Ragged, owners: Int32s) -> None:
        """Write for every term of every publication the worker that has to look it up, or NOBODY."""
        grids = (self.plan.grid, self.h2_grid)
        route(self._h2, self.plan.h1, grids, (lon, lat), terms.offsets, terms.values, owners)

    def _count(self, postings: Postings, sign: int) -> None:
        row = 0
        while True:
            row = count_in(self._h2, self.h2_grid, MAX_CELLS, postings, row, sign)
            if row == len(postings.offsets) - 1:
                return
            # Dead keys may be what fills the table: double only where live ones do.
            needed = self.n_live + MAX_CELLS * int(postings.offsets[row + 1] - postings.offsets[row])
            size = max(len(self._h2.keys), 1 << (2 * needed).bit_length())
            keys = self._storage.create("keys", np.uint64, size)
            counts = self._storage.create("counts", np.int32, size)
            rehash(self._h2, keys, counts)
            self._h2 = self._h2._replace(keys=keys, counts=counts)


def route_by(versions: Sequence[GridT], lon: Float64s, lat: Float64s, terms: Ragged) -> Routed:
    """Send publications to the workers that own one of their live terms under any version."""
    owners = np.empty((len(versions), len(terms.values)), np.int32)
    for grid_t, row in zip(versions, owners, strict=True):
        grid_t.find_owners(lon, lat, terms, row)
    rows, starts, n_discarded = fan_out(terms.offsets, owners, versions[0].plan.n_workers)
    return Routed(owners, Ragged(rows, starts), int(n_discarded))
