"""Kernels that change grid^t: count a subscription in and out of H2 (Sec. IV-C)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.model.space import NO_LIMIT, Grid, cell_seed, cell_term_key, cover, mix
from ps2stream.partitioning.plan import H1, owner
from ps2stream.routing.layout import H2, LEVELS, N_KEYS, N_TERM_KEYS, Postings
from ps2stream.routing.tiles import Tiles, mark_by_tiles

_COUNT_BITS = np.uint64(28)
#: The bits of an entry that count.
COUNT = (np.uint64(1) << _COUNT_BITS) - np.uint64(1)

#: Up to this many cells of a region are looked at one by one, or more of a plan with many tiles: a cell takes
#: 2 ns or, where it differs from its neighbour, 50; a tile takes 2 ns, and few of many have to be looked at.
_FEW_CELLS, _TILES_PER_CELL = 64, 16

Destinations = npt.NDArray[np.bool_]


@kernel
def short_key(hashed: np.uint64) -> np.uint64:
    """Return the 36 bits of a hash that a counted set keeps; never 0."""
    return max(hashed >> _COUNT_BITS, np.uint64(1))


@kernel
def term_key(term: np.uint64) -> np.uint64:
    """Return the key of a term in the set of terms."""
    return short_key(mix(term))


@kernel
def find_key(table: UInt64s, key: np.uint64) -> int:
    """Return the slot of a key in a counted set, or the free slot where it belongs."""
    last = np.uint64(len(table) - 1)
    slot = key & last
    while table[slot] != np.uint64(0) and table[slot] >> _COUNT_BITS != key:
        slot = (slot + np.uint64(1)) & last
    return signed(slot)


@kernel
def count_of(table: UInt64s, key: np.uint64) -> int:
    """Return how often a key is counted."""
    return signed(table[find_key(table, key)] & COUNT)


@kernel
def _count(table: UInt64s, key: np.uint64, sign: int, head: Int64s, n_keys: int) -> int:
    """Count a key once more or less; ``head[n_keys]`` counts keys, and the next entry live ones.

    A count that has reached its limit stays there, and none goes below 0: either would change the key.
    Return by how much the count changed.
    """
    at = find_key(table, key)
    count = table[at] & COUNT
    if count == COUNT or (count == np.uint64(0) and sign < 0):
        return 0
    if table[at] == np.uint64(0):
        table[at] = key << _COUNT_BITS
        head[n_keys] += 1
    table[at] = table[at] + np.uint64(1) if sign > 0 else table[at] - np.uint64(1)
    head[n_keys + 1] += int(table[at] & COUNT != np.uint64(0)) - int(count != np.uint64(0))
    return sign


@kernel
def has_capacity(table: UInt64s, n_keys: int) -> bool:
    return 10 * n_keys <= 7 * len(table)


@kernel
def count_in(h2: H2, grid: Grid, max_cells: int, postings: Postings, start: int, sign: int) -> int:
    """Add (``sign`` 1) or take away (-1) subscriptions; return the first one there was no capacity for."""
    head = h2.head
    for row in range(start, len(postings.offsets) - 1):
        first, stop = postings.offsets[row], postings.offsets[row + 1]
        area = cover(grid, postings.bounds, 4 * row, max_cells)
        n_entries = (stop - first) * area.n_columns * area.n_rows
        if not has_capacity(h2.cells, head[N_KEYS] + n_entries):
            return row
        if not has_capacity(h2.terms, head[N_TERM_KEYS] + stop - first):
            return row
        last = (1 << (grid.bits - area.level)) - 1
        n_counted = 0
        for r in range(area.n_rows):
            for c in range(area.n_columns):
                seed = cell_seed(area.level, (area.column + c) & last, area.row + r)
                for i in range(first, stop):
                    key = short_key(cell_term_key(seed, postings.terms[i]))
                    n_counted += _count(h2.cells, key, sign, head, N_KEYS)
        for i in range(first, stop):
            _count(h2.terms, term_key(postings.terms[i]), sign, head, N_TERM_KEYS)
        head[LEVELS + area.level] += n_counted
    return len(postings.offsets) - 1


@kernel
def rehash(old: UInt64s, new: UInt64s) -> int:
    """Move what is live into another table; return the number of its keys."""
    n = 0
    for entry in old:
        if entry & COUNT != np.uint64(0):
            new[find_key(new, entry >> _COUNT_BITS)] = entry
            n += 1
    return n


@kernel
def destinations(h1: H1, tiles: Tiles, grid: Grid, postings: Postings, workers: Destinations) -> None:
    """Mark, a row a subscription, the workers that own one of its terms in one of its cells."""
    side = 1 << grid.bits
    n_few = max(_FEW_CELLS, len(tiles.tiles) // _TILES_PER_CELL)
    for row in range(len(postings.offsets) - 1):
        area = cover(grid, postings.bounds, 4 * row, NO_LIMIT)
        first, stop = postings.offsets[row], postings.offsets[row + 1]
        if area.n_rows * area.n_columns > n_few:
            mark_by_tiles(h1, tiles, grid.bits, area, postings.terms[first:stop], workers[row])
            continue
        entered = False
        before = np.int32(0)
        for r in range(area.n_rows):
            for c in range(area.n_columns):
                cell = (area.row + r) << grid.bits | ((area.column + c) & (side - 1))
                # Most cells have the owners of their neighbour.
                if entered and h1.cell_owner[cell] == before:
                    continue
                entered, before = True, h1.cell_owner[cell]
                for i in range(first, stop):
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
