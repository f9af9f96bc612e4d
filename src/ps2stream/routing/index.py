"""grid^t, the dispatcher's index (Sec. IV-C): a thin class around the kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import (
    Flags,
    Float64s,
    HeapStorage,
    Int32s,
    Int64s,
    MappedStorage,
    Ragged,
    Storage,
    UInt64s,
    create_struct,
    n_bytes,
    open_struct,
)
from ps2stream.partitioning.plan import Plan
from ps2stream.routing.layout import (
    DTYPES,
    H2,
    HEAD_SIZE,
    N_KEYS,
    N_LIVE,
    N_PLACES,
    N_TERM_KEYS,
    N_TERM_PLACES,
    Postings,
    needed_sizes,
)
from ps2stream.routing.route import fan_out, find_owners, mark_asked
from ps2stream.routing.routing import Routing
from ps2stream.routing.tiles import Tiles, tiles_of
from ps2stream.routing.update import Destinations, count_in, destinations, group, has_capacity, rehash

#: Up to this many cells a region is counted on the finest level of H2.
MAX_CELLS = 64
#: H2 has a grid of its own, no finer than this. A finer one discards more, but its larger table and further
#: levels cost dispatchers and the registrar more than that saves workers (docs/performance.md).
H2_BITS = 6


@dataclass(frozen=True, slots=True)
class Routed:
    """For every term of a batch of publications its worker, and for every worker its publications.

    ``owners`` has a row for each part of the routing, the newest first.
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
        sizes = {"head": HEAD_SIZE, "cells": 1 << 12, "terms": 1 << 10}
        h2 = create_struct(H2, DTYPES, sizes, storage)
        h2.head[N_PLACES], h2.head[N_TERM_PLACES] = len(h2.cells), len(h2.terms)
        return cls(plan, storage, h2)

    @classmethod
    def open(cls, plan: Plan, storage: MappedStorage, *, shared: bool = False) -> GridT:
        """Map what a registrar wrote: to read it, or ``shared``, to go on writing it."""
        return cls(plan, storage, open_struct(H2, DTYPES, storage, needed_sizes, shared=shared))

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
        self.mark(postings, marks)
        return marks

    def mark(self, postings: Postings, marks: Destinations) -> None:
        """Mark the same in a table that is there already."""
        destinations(self.plan.h1, self._tiles, self.plan.grid, postings, marks)

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

    def mark_asked(self, terms: Ragged, asked: Flags) -> None:
        """Mark the publications that have a term of a live subscription, wherever that is; unmark none."""
        mark_asked(self._h2, terms, asked)

    def find_owners(self, lon: Float64s, lat: Float64s, terms: Ragged, owners: Int32s) -> None:
        """Write for every term of every publication the worker that has to look it up, or NOBODY."""
        find_owners(self._h2, self.plan.h1, (self.h2_grid, self.plan.grid), (lon, lat), terms, owners)

    @functools.cached_property
    def _tiles(self) -> Tiles:
        # Whoever routes only publications does without.
        return tiles_of(self.plan.h1, self.plan.grid.bits)

    def _count(self, postings: Postings, sign: int) -> None:
        row = 0
        while True:
            row = count_in(self._h2, self.h2_grid, MAX_CELLS, postings, row, sign)
            if row == len(postings.offsets) - 1:
                return
            n_clauses = int(postings.offsets[row + 1] - postings.offsets[row])
            cells = self._with_capacity("cells", N_KEYS, MAX_CELLS * n_clauses)
            terms = self._with_capacity("terms", N_TERM_KEYS, n_clauses)
            self._h2 = self._h2._replace(cells=cells, terms=terms)

    def _with_capacity(self, name: str, n_keys: int, n_new: int) -> UInt64s:
        """Return a table with capacity for more keys: the present one, or another with what is live in it."""
        head = self._h2.head
        table: UInt64s = getattr(self._h2, name)
        n_live, n_slots = n_keys + 1, n_keys + 2
        if has_capacity(table, int(head[n_keys]) + n_new):
            return table
        # Dead keys may be what fills the table: double only where live ones do.
        needed = int(head[n_live]) + n_new
        larger = self._storage.create(name, np.uint64, max(len(table), 1 << (2 * needed).bit_length()))
        head[n_keys], head[n_slots] = rehash(table, larger), len(larger)
        return larger


def asked_by(grid_ts: Routing[GridT], terms: Ragged) -> Flags:
    """Mark the publications that anybody may wait for; their terms need not be sorted yet."""
    asked = np.zeros(terms.n_rows, np.bool_)
    for grid_t in grid_ts.parts:
        grid_t.mark_asked(terms, asked)
    return asked


def route_by(grid_ts: Routing[GridT], lon: Float64s, lat: Float64s, terms: Ragged) -> Routed:
    """Send publications to the workers that own one of their live terms by any plan."""
    owners = np.empty((len(grid_ts.parts), len(terms.values)), np.int32)
    for grid_t, row in zip(grid_ts.parts, owners, strict=True):
        grid_t.find_owners(lon, lat, terms, row)
    rows, starts, n_discarded = fan_out(terms.offsets, owners, grid_ts.newest.plan.n_workers)
    return Routed(owners, Ragged(rows, starts), int(n_discarded))
