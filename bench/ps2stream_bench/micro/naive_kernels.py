"""The kernels of the naive index.

The same idea without the care: one grid level, a hash table of (cell, term) to chains of
clause numbers, and for every candidate a look at the subscription's seqs, region and terms
wherever they lie. No bounds and no fingerprint in the postings, so nothing is rejected before
it has cost several cache misses. The order of terms and the rule for reporting once are GI2's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt32s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.matching.contract import FOREVER, OWNED_BEFORE, OWNED_NOW, Found, Probes
from ps2stream.matching.probe import holds
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import Grid, cell_seed, cell_term_key, column_of, contains, cover, row_of

N_LISTS, N_NODES, N_CANDIDATES, N_DONE, N_REMOVED = range(5)
#: What an insert came to: all is posted, or what has to grow before it can go on.
POSTED, TABLE_FULL, NODES_FULL = range(3)
#: seq_to of what was dropped.
GONE = BEFORE_ALL_SEQS
_ALL_CELLS = 1 << 62


class NaiveArrays(NamedTuple):
    """A table of chains; slot and chain numbers are one too high, 0 is none."""

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
    """Return the slot of a key in the table, or the free slot where it belongs."""
    last = np.uint64(len(list_key) - 1)
    slot = key & last
    while list_key[slot] != np.uint64(0) and list_key[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return signed(slot)


@kernel
def insert(arrays: NaiveArrays, grid: Grid, max_lists: int) -> int:
    """Post from subscription ``head[N_DONE]`` on; return POSTED, or what needs more capacity to go on."""
    head = arrays.head
    for sub in range(head[N_DONE], len(arrays.seq_from)):
        area = cover(grid, arrays.bounds, 4 * sub, _ALL_CELLS)
        first, last = signed(arrays.clause_offsets[sub]), signed(arrays.clause_offsets[sub + 1])
        n_new = area.n_columns * area.n_rows * (last - first)
        if head[N_LISTS] + n_new > max_lists:
            return TABLE_FULL
        if head[N_NODES] + n_new >= len(arrays.node_next):
            return NODES_FULL
        for clause in range(first, last):
            arrays.clause_sub[clause] = sub
            term = arrays.terms[arrays.term_offsets[clause]]
            for cell in range(area.n_rows * area.n_columns):
                column = (area.column + cell % area.n_columns) & ((1 << grid.bits) - 1)
                key = cell_term_key(cell_seed(0, column, area.row + cell // area.n_columns), term)
                at = find(arrays.list_key, key)
                if arrays.list_key[at] == np.uint64(0):
                    arrays.list_key[at] = key
                    head[N_LISTS] += 1
                head[N_NODES] += 1
                arrays.node_next[head[N_NODES]] = arrays.list_first[at]
                arrays.node_clause[head[N_NODES]] = clause
                arrays.list_first[at] = head[N_NODES]
        head[N_DONE] = sub + 1
    return POSTED


@kernel
def rehash(arrays: NaiveArrays, list_key: UInt64s, list_first: UInt32s) -> None:
    """Move all chains into a larger table."""
    for old in range(len(arrays.list_key)):
        if arrays.list_key[old] != np.uint64(0):
            slot = find(list_key, arrays.list_key[old])
            list_key[slot] = arrays.list_key[old]
            list_first[slot] = arrays.list_first[old]


@kernel
def end(seq_to: Int64s, stored: Int64s, rows: Int64s, seqs: Int64s, ends: Int64s) -> int:
    """Set seq_to of subscriptions, whose seqs are stored in order; return how many were found."""
    n_found = 0
    for i in range(len(seqs)):
        at = np.searchsorted(stored, seqs[i])
        if at < len(stored) and stored[at] == seqs[i]:
            seq_to[rows[at]] = min(seq_to[rows[at]], ends[i])
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
    arrays: NaiveArrays,
    grid: Grid,
    probes: Probes,
    start: int,
    horizon: int,
    found: Found,
    n_candidates: Int64s,
) -> tuple[int, int]:
    """Match the publications from row ``start`` on; return (first row not done, matches written)."""
    n_found = 0
    for row in range(start, len(probes.seq)):
        seed = cell_seed(0, column_of(grid, probes.lon[row]), row_of(grid, probes.lat[row]))
        n_before = n_found
        n_candidates[row] = 0
        for i in range(probes.term_offsets[row], probes.term_offsets[row + 1]):
            if not probes.owned[i]:
                continue
            slot = find(arrays.list_key, cell_term_key(seed, probes.terms[i]))
            previous, node = 0, signed(arrays.list_first[slot])
            while node != 0:
                n_candidates[row] += 1
                following = signed(arrays.node_next[node])
                clause = signed(arrays.node_clause[node])
                sub = signed(arrays.clause_sub[clause])
                if arrays.seq_to[sub] <= max(horizon, GONE):
                    arrays.head[N_REMOVED] += 1
                    if previous == 0:
                        arrays.list_first[slot] = following
                    else:
                        arrays.node_next[previous] = following
                    node = following
                    continue
                owner = OWNED_BEFORE if arrays.seq_from[sub] <= probes.switch_seq else OWNED_NOW
                if probes.owned[i] & owner and is_match(arrays, clause, probes, row):
                    if n_found == len(found.publication):
                        return row, n_before
                    found.publication[n_found] = row
                    found.subscription[n_found] = arrays.seq_from[sub]
                    n_found += 1
                previous, node = node, following
        arrays.head[N_CANDIDATES] += n_candidates[row]
    return len(probes.seq), n_found


@kernel
def count_contents(arrays: NaiveArrays, grid: Grid, subscriptions: Int64s, sizes: Int64s) -> None:
    """Count the live subscriptions that touch every cell, and their bytes."""
    last = (1 << grid.bits) - 1
    for sub in range(len(arrays.seq_from)):
        if arrays.seq_to[sub] != FOREVER:
            continue
        first, stop = signed(arrays.clause_offsets[sub]), signed(arrays.clause_offsets[sub + 1])
        n_terms = signed(arrays.term_offsets[stop]) - signed(arrays.term_offsets[first])
        area = cover(grid, arrays.bounds, 4 * sub, _ALL_CELLS)
        for r in range(area.n_rows):
            for c in range(area.n_columns):
                cell = (area.row + r) << grid.bits | ((area.column + c) & last)
                subscriptions[cell] += 1
                sizes[cell] += 48 + 4 * (stop - first) + 8 * n_terms


@kernel
def fill_cells(grid: Grid, lon: Float64s, lat: Float64s, cells: Int64s) -> None:
    """Write the cell of every point."""
    for i in range(len(cells)):
        cells[i] = row_of(grid, lat[i]) << grid.bits | column_of(grid, lon[i])
