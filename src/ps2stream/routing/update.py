"""Kernels that change grid^t: count a subscription in and out of H2 (Sec. IV-C)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.model.space import NO_LIMIT, Grid, cell_seed, cell_term_key, cover
from ps2stream.partitioning.plan import H1, owner
from ps2stream.routing.layout import H2, LEVELS, N_KEYS, N_LIVE, Postings

Destinations = npt.NDArray[np.bool_]


@kernel
def find_key(keys: UInt64s, key: np.uint64) -> int:
    """Return the place of a key in the table, or the free place where it belongs."""
    last = np.uint64(len(keys) - 1)
    place = key & last
    while keys[place] != np.uint64(0) and keys[place] != key:
        place = (place + np.uint64(1)) & last
    return signed(place)


@kernel
def count_in(h2: H2, grid: Grid, max_cells: int, postings: Postings, start: int, sign: int) -> int:
    """Add (``sign`` 1) or take away (-1) subscriptions; return the first one there was no room for."""
    head = h2.head
    for row in range(start, len(postings.offsets) - 1):
        first, stop = postings.offsets[row], postings.offsets[row + 1]
        place = cover(grid, postings.bounds, 4 * row, max_cells)
        n_entries = (stop - first) * place.n_columns * place.n_rows
        if 10 * (head[N_KEYS] + n_entries) > 7 * len(h2.keys):
            return row
        last = (1 << (grid.bits - place.level)) - 1
        for r in range(place.n_rows):
            for c in range(place.n_columns):
                seed = cell_seed(place.level, (place.column + c) & last, place.row + r)
                for i in range(first, stop):
                    key = cell_term_key(seed, postings.terms[i])
                    at = find_key(h2.keys, key)
                    if h2.keys[at] == np.uint64(0):
                        h2.keys[at] = key
                        head[N_KEYS] += 1
                    if h2.counts[at] == 0:
                        head[N_LIVE] += 1
                    h2.counts[at] += sign
                    if h2.counts[at] == 0:
                        head[N_LIVE] -= 1
        head[LEVELS + place.level] += sign * n_entries
    return len(postings.offsets) - 1


@kernel
def rehash(h2: H2, keys: UInt64s, counts: Int32s) -> None:
    """Move what is live into another table."""
    n = 0
    for old in range(len(h2.keys)):
        if h2.counts[old] != 0:
            place = find_key(keys, h2.keys[old])
            keys[place] = h2.keys[old]
            counts[place] = h2.counts[old]
            n += 1
    h2.head[N_KEYS] = n


@kernel
def destinations(h1: H1, grid: Grid, postings: Postings, workers: Destinations) -> None:
    """Mark, a row a subscription, the workers that own one of its terms in one of its cells."""
    last = (1 << grid.bits) - 1
    for row in range(len(postings.offsets) - 1):
        place = cover(grid, postings.bounds, 4 * row, NO_LIMIT)
        entered = False
        before = np.int32(0)
        for r in range(place.n_rows):
            for c in range(place.n_columns):
                cell = (place.row + r) << grid.bits | ((place.column + c) & last)
                # A large region covers hundreds of cells, and most have the owners of their neighbour.
                if entered and h1.cell_owner[cell] == before:
                    continue
                entered, before = True, h1.cell_owner[cell]
                for i in range(postings.offsets[row], postings.offsets[row + 1]):
                    workers[row, owner(h1, cell, postings.terms[i])] = True
                    if h1.cell_owner[cell] >= 0:
                        break  # all terms of this cell have one owner


@kernel
def group(workers: Destinations, offsets: Int64s, values: Int32s) -> None:
    """Turn a table of marks into ragged rows of worker numbers."""
    at = 0
    for row in range(workers.shape[0]):
        for worker in range(workers.shape[1]):
            if workers[row, worker]:
                values[at] = worker
                at += 1
        offsets[row + 1] = at
