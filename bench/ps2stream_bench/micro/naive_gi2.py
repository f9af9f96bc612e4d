"""The naive version of GI2, to measure what its layout is worth.

The same idea without the care: one grid level, a hash table of (cell, term) to chains of
clause numbers, and for every candidate a look at the subscription's seqs, region and terms
wherever they lie. No bounds and no fingerprint in the postings, so nothing is turned down before
it has cost several cache misses. The order of terms and the rule for reporting once are GI2's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt32s, UInt64s, n_bytes
from ps2stream.kernels import kernel, signed
from ps2stream.matching.layout import Found, Probes, Subscriptions
from ps2stream.matching.probe import holds
from ps2stream.model.space import Grid, cell_seed, cell_term_key, column_of, contains, cover, row_of

N_LISTS, N_NODES, N_CANDIDATES, N_DONE = range(4)
_ALL_CELLS = 1 << 62


class NaiveArrays(NamedTuple):
    """A table of chains; place and chain numbers are one too high, 0 is none."""

    head: Int64s
    seq_from: Int64s
    seq_to: Int64s
    bounds: Float64s
    clause_offsets: UInt32s
    clause_sub: UInt32s
    term_offsets: UInt32s
    terms: UInt64s
    list_key: UInt64s
    list_first: UInt32s
    node_next: UInt32s
    node_clause: UInt32s


@kernel
def find(list_key: UInt64s, key: np.uint64) -> int:
    """Return the place of a key in the table, or the free place where it belongs."""
    last = np.uint64(len(list_key) - 1)
    place = key & last
    while list_key[place] != np.uint64(0) and list_key[place] != key:
        place = (place + np.uint64(1)) & last
    return signed(place)


@kernel
def insert(arrays: NaiveArrays, grid: Grid, max_lists: int) -> bool:
    """Post from subscription ``head[N_DONE]`` on; False when it needs more room to go on."""
    head = arrays.head
    for sub in range(head[N_DONE], len(arrays.seq_from)):
        place = cover(grid, arrays.bounds, 4 * sub, _ALL_CELLS)
        first, last = signed(arrays.clause_offsets[sub]), signed(arrays.clause_offsets[sub + 1])
        n_new = place.n_columns * place.n_rows * (last - first)
        if head[N_LISTS] + n_new > max_lists or head[N_NODES] + n_new >= len(arrays.node_next):
            return False
        for clause in range(first, last):
            arrays.clause_sub[clause] = sub
            term = arrays.terms[arrays.term_offsets[clause]]
            for cell in range(place.n_rows * place.n_columns):
                column = (place.column + cell % place.n_columns) & ((1 << grid.bits) - 1)
                key = cell_term_key(cell_seed(0, column, place.row + cell // place.n_columns), term)
                at = find(arrays.list_key, key)
                if arrays.list_key[at] == np.uint64(0):
                    arrays.list_key[at] = key
                    head[N_LISTS] += 1
                head[N_NODES] += 1
                arrays.node_next[head[N_NODES]] = arrays.list_first[at]
                arrays.node_clause[head[N_NODES]] = clause
                arrays.list_first[at] = head[N_NODES]
        head[N_DONE] = sub + 1
    return True


@kernel
def rehash(arrays: NaiveArrays, list_key: UInt64s, list_first: UInt32s) -> None:
    """Move all chains into a larger table."""
    for old in range(len(arrays.list_key)):
        if arrays.list_key[old] != np.uint64(0):
            place = find(list_key, arrays.list_key[old])
            list_key[place] = arrays.list_key[old]
            list_first[place] = arrays.list_first[old]


@kernel
def end(arrays: NaiveArrays, seq_from: Int64s, seq_to: Int64s) -> int:
    """Set seq_to of subscriptions, which are stored by ascending seq; return how many were found."""
    n_found = 0
    for i in range(len(seq_from)):
        sub = np.searchsorted(arrays.seq_from, seq_from[i])
        if sub < len(arrays.seq_from) and arrays.seq_from[sub] == seq_from[i]:
            arrays.seq_to[sub] = min(arrays.seq_to[sub], seq_to[i])
            n_found += 1
    return n_found


@kernel
def satisfied(arrays: NaiveArrays, clause: int, probes: Probes, row: int) -> bool:
    start, stop = probes.term_offsets[row], probes.term_offsets[row + 1]
    for i in range(arrays.term_offsets[clause], arrays.term_offsets[clause + 1]):
        if not holds(probes.terms, start, stop, arrays.terms[i]):
            return False
    return True


@kernel
def is_match(arrays: NaiveArrays, clause: int, probes: Probes, row: int) -> bool:
    """Say whether a clause is the first satisfied one of a subscription that sees the publication."""
    sub = signed(arrays.clause_sub[clause])
    if not arrays.seq_from[sub] < probes.seq[row] < arrays.seq_to[sub]:
        return False
    if not contains(arrays.bounds, 4 * sub, probes.lon[row], probes.lat[row]):
        return False
    if not satisfied(arrays, clause, probes, row):
        return False
    for earlier in range(signed(arrays.clause_offsets[sub]), clause):
        if satisfied(arrays, earlier, probes, row):
            return False
    return True


@kernel
def probe(
    arrays: NaiveArrays, grid: Grid, probes: Probes, start: int, horizon: int, found: Found
) -> tuple[int, int]:
    """Match the publications from row ``start`` on; return (first row not done, matches written)."""
    n_found = 0
    for row in range(start, len(probes.seq)):
        seed = cell_seed(0, column_of(grid, probes.lon[row]), row_of(grid, probes.lat[row]))
        n_before = n_found
        n_candidates = 0
        for i in range(probes.term_offsets[row], probes.term_offsets[row + 1]):
            place = find(arrays.list_key, cell_term_key(seed, probes.terms[i]))
            previous, node = 0, signed(arrays.list_first[place])
            while node != 0:
                n_candidates += 1
                following = signed(arrays.node_next[node])
                clause = signed(arrays.node_clause[node])
                sub = signed(arrays.clause_sub[clause])
                if arrays.seq_to[sub] <= horizon:
                    if previous == 0:
                        arrays.list_first[place] = following
                    else:
                        arrays.node_next[previous] = following
                    node = following
                    continue
                if is_match(arrays, clause, probes, row):
                    if n_found == len(found.publication):
                        return row, n_before
                    found.publication[n_found] = row
                    found.subscription[n_found] = arrays.seq_from[sub]
                    n_found += 1
                previous, node = node, following
        arrays.head[N_CANDIDATES] += n_candidates
    return len(probes.seq), n_found


class NaiveGI2:
    """Match publications with subscriptions that are stored once and for all, by ascending seq."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._found = Found(np.empty(4096, np.int64), np.empty(4096, np.int64))

    def insert(self, subs: Subscriptions) -> None:
        """Store subscriptions; the second call would replace the first one's."""
        n_clauses = len(subs.term_offsets) - 1
        table = 1 << max(10, n_clauses.bit_length())
        arrays = NaiveArrays(
            head=np.zeros(4, np.int64),
            seq_from=subs.seq_from.copy(),
            seq_to=subs.seq_to.copy(),
            bounds=subs.bounds.copy(),
            clause_offsets=subs.clause_offsets.astype(np.uint32),
            clause_sub=np.zeros(n_clauses, np.uint32),
            term_offsets=subs.term_offsets.astype(np.uint32),
            terms=subs.terms.copy(),
            list_key=np.zeros(table, np.uint64),
            list_first=np.zeros(table, np.uint32),
            node_next=np.zeros(table, np.uint32),
            node_clause=np.zeros(table, np.uint32),
        )
        while not insert(arrays, self._grid, 7 * len(arrays.list_key) // 10):
            arrays = _grown(arrays)
        self._arrays = arrays

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        """End subscriptions; return how many of them are stored."""
        return end(self._arrays, seq_from, seq_to)

    def probe(self, probes: Probes, horizon: int) -> Found:
        """Return all matches, as GI2 does."""
        parts: list[Found] = []
        row = 0
        while True:
            row, n = probe(self._arrays, self._grid, probes, row, horizon, self._found)
            parts.append(Found(*(column[:n].copy() for column in self._found)))
            if row == len(probes.seq):
                return Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
            if n == 0:
                size = 2 * len(self._found.publication)
                self._found = Found(np.empty(size, np.int64), np.empty(size, np.int64))

    @property
    def n_bytes(self) -> int:
        return n_bytes(self._arrays)

    @property
    def n_postings(self) -> int:
        return int(self._arrays.head[N_NODES])

    @property
    def n_candidates(self) -> int:
        return int(self._arrays.head[N_CANDIDATES])


def _grown(arrays: NaiveArrays) -> NaiveArrays:
    """Double the table of chains or lengthen the nodes by half, whichever is fuller."""
    if arrays.head[N_LISTS] / len(arrays.list_key) > 0.7 * arrays.head[N_NODES] / len(arrays.node_next):
        size = 2 * len(arrays.list_key)
        list_key, list_first = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        rehash(arrays, list_key, list_first)
        return arrays._replace(list_key=list_key, list_first=list_first)
    more = len(arrays.node_next) // 2
    return arrays._replace(
        node_next=np.concatenate([arrays.node_next, np.zeros(more, np.uint32)]),
        node_clause=np.concatenate([arrays.node_clause, np.zeros(more, np.uint32)]),
    )
