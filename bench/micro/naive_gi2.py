"""The naive version of GI2, to measure what its layout is worth.

The same idea without the care: one grid level, a hash table of (cell, term) to growing
lists of clause numbers, and for every candidate a look at the subscription's seqs, region and
terms wherever they lie. No bounds and no Bloom filter in the postings, so nothing is turned down
before it has cost several cache misses. Storage, term order and the rule for reporting once are GI2's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, UInt32s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.matching.layout import Found, Probes, Subscriptions
from ps2stream.model.space import Grid, cell_seed, cell_term_key, column_of, contains, cover, row_of

N_LISTS, N_POSTINGS, N_CANDIDATES, N_DONE = range(4)
_ONE_LEVEL = 1 << 62


class NaiveArrays(NamedTuple):
    """The lists; what they point at are the subscriptions as they came."""

    head: Int64s
    seq_to: Int64s
    clause_sub: UInt32s
    list_key: UInt64s
    list_start: UInt32s
    list_length: UInt32s
    postings: UInt32s  # clause numbers


@kernel
def find(list_key: UInt64s, key: np.uint64) -> int:
    """Return the place of a key in the table, or the free place where it belongs."""
    last = np.uint64(len(list_key) - 1)
    place = key & last
    while list_key[place] != np.uint64(0) and list_key[place] != key:
        place = (place + np.uint64(1)) & last
    return np.int64(place)


@kernel
def _append(arrays: NaiveArrays, key: np.uint64, clause: int) -> None:
    """Add a clause to a list; one of a power of two is full and moves to twice the room."""
    head = arrays.head
    place = find(arrays.list_key, key)
    if arrays.list_key[place] == np.uint64(0):
        arrays.list_key[place] = key
        head[N_LISTS] += 1
    start, length = np.int64(arrays.list_start[place]), np.int64(arrays.list_length[place])
    if length & (length - 1) == 0:
        end = head[N_POSTINGS]
        for i in range(length):
            arrays.postings[end + i] = arrays.postings[start + i]
        start = end
        arrays.list_start[place] = start
        head[N_POSTINGS] = end + max(1, 2 * length)
    arrays.postings[start + length] = clause
    arrays.list_length[place] = length + 1


@kernel
def insert(arrays: NaiveArrays, grid: Grid, subs: Subscriptions) -> bool:
    """Insert from ``head[N_DONE]`` on; False when the arrays are full, to be called again with more room."""
    head = arrays.head
    for sub in range(head[N_DONE], len(subs.seq_from)):
        place = cover(grid, subs.bounds, sub, _ONE_LEVEL)
        first_clause, last_clause = subs.clause_offsets[sub], subs.clause_offsets[sub + 1]
        n_new = place.n_columns * place.n_rows * (last_clause - first_clause)
        if 10 * (head[N_LISTS] + n_new) > 7 * len(arrays.list_key):
            return False
        # What its lists need, should all of them move, is bounded by the longest one's double.
        if head[N_POSTINGS] + 2 * n_new * (1 + sub) > len(arrays.postings) and _needed(
            arrays, grid, subs, sub
        ) > len(arrays.postings):
            return False
        for clause in range(first_clause, last_clause):
            arrays.clause_sub[clause] = sub
            for r in range(place.n_rows):
                for c in range(place.n_columns):
                    column = (place.column + c) & ((1 << grid.bits) - 1)
                    seed = cell_seed(0, column, place.row + r)
                    _append(arrays, cell_term_key(seed, subs.terms[subs.term_offsets[clause]]), clause)
        head[N_DONE] = sub + 1
    return True
