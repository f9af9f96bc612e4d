"""Kernels that change a GI2: insert, end, rehash, export (Sec. IV-D)."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Int64s, UInt32s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.matching.layout import (
    LEVELS,
    N_CLAUSES,
    N_DEAD_POSTINGS,
    N_ENDED,
    N_LISTS,
    N_POSTINGS,
    N_SUBS,
    N_TERMS,
    STEP,
    GI2Arrays,
    Subscriptions,
)
from ps2stream.model.space import (
    Cover,
    Grid,
    cell_seed,
    cell_term_key,
    column_of,
    cover,
    mix,
    row_of,
)


@kernel
def bloom_of(terms: UInt64s, start: int, stop: int) -> np.uint64:
    """Set one bit of 64 for every term."""
    bloom = np.uint64(0)
    for i in range(start, stop):
        bloom |= np.uint64(1) << (terms[i] & np.uint64(63))
    return bloom


@kernel
def quantise(position: float, level: int, cell: int) -> int:
    """Return where in a cell of a level a grid position lies, in 1/256 of its side.

    Monotone in the position, so comparing quantised bounds never turns down a point inside.
    """
    side = float(1 << level)
    part = int((position - cell * side) / side * 256.0)
    return min(max(part, 0), 255)


@kernel
def quantised_bounds(arrays: GI2Arrays, grid: Grid, sub: int, place: Cover, column: int, row: int) -> np.uint64:
    """Pack a subscription's bounds within one cell: min x, max x, min y, max y, 8 bits each."""
    at = 4 * sub
    bounds = arrays.sub_bounds
    level = place.level
    min_x, max_x, min_y, max_y = 0, 255, 0, 255
    if bounds[at] <= bounds[at + 2]:  # one that crosses the antimeridian keeps the full width
        if column_of(grid, bounds[at]) >> level == column:
            min_x = quantise((bounds[at] - grid.min_lon) * grid.columns_per_degree, level, column)
        if column_of(grid, bounds[at + 2]) >> level == column:
            max_x = quantise((bounds[at + 2] - grid.min_lon) * grid.columns_per_degree, level, column)
    if row_of(grid, bounds[at + 1]) >> level == row:
        min_y = quantise((bounds[at + 1] - grid.min_lat) * grid.rows_per_degree, level, row)
    if row_of(grid, bounds[at + 3]) >> level == row:
        max_y = quantise((bounds[at + 3] - grid.min_lat) * grid.rows_per_degree, level, row)
    return np.uint64(min_x | max_x << 8 | min_y << 16 | max_y << 24)


@kernel
def find_list(list_key: UInt64s, key: np.uint64) -> int:
    """Return the place of a key in the table, or the free place where it belongs."""
    last = np.uint64(len(list_key) - 1)
    place = key & last
    while list_key[place] != np.uint64(0) and list_key[place] != key:
        place = (place + np.uint64(1)) & last
    return np.int64(place)


@kernel
def find_slot(arrays: GI2Arrays, seq_from: int) -> int:
    """Return the place of a subscription in the map, or the free place where it belongs."""
    last = np.uint64(len(arrays.map_seq) - 1)
    place = mix(np.uint64(seq_from)) & last
    while arrays.map_slot[place] != 0 and arrays.map_seq[place] != seq_from:
        place = (place + np.uint64(1)) & last
    return np.int64(place)


@kernel
def _append_posting(arrays: GI2Arrays, key: np.uint64, bloom: np.uint64, word: np.uint64) -> bool:
    """Add a posting to the list of a key; False, and nothing changed, when there is no room.

    A list of a power of two is full and moves to twice the room at the end of the pool; what
    it leaves is reclaimed by compaction. Keeping capacities in the table would save a few
    moves after removals and cost four bytes a list.
    """
    head = arrays.head
    place = find_list(arrays.list_key, key)
    is_new = arrays.list_key[place] == np.uint64(0)
    if is_new and 10 * (head[N_LISTS] + 1) > 7 * len(arrays.list_key):
        return False
    length = np.int64(arrays.list_length[place])
    start = np.int64(arrays.list_start[place])
    if length & (length - 1) == 0:
        room = max(1, 2 * length)
        end = head[N_POSTINGS]
        if 2 * (end + room) > len(arrays.postings):
            return False
        for i in range(2 * length):
            arrays.postings[2 * end + i] = arrays.postings[2 * start + i]
        start = end
        head[N_POSTINGS] = end + room
        arrays.list_start[place] = start
    if is_new:
        arrays.list_key[place] = key
        head[N_LISTS] += 1
    arrays.postings[2 * (start + length)] = bloom
    arrays.postings[2 * (start + length) + 1] = word
    arrays.list_length[place] = length + 1
    return True


@kernel
def _append_subscription(arrays: GI2Arrays, subs: Subscriptions, row: int) -> None:
    """Copy a subscription, its clauses and terms behind the last ones; the caller made room."""
    head = arrays.head
    sub = head[N_SUBS]
    arrays.sub_seq_from[sub] = subs.seq_from[row]
    arrays.sub_seq_to[sub] = subs.seq_to[row]
    for i in range(4):
        arrays.sub_bounds[4 * sub + i] = subs.bounds[4 * row + i]
    for clause in range(subs.clause_offsets[row], subs.clause_offsets[row + 1]):
        to = head[N_CLAUSES]
        arrays.clause_sub[to] = sub
        for term in range(subs.term_offsets[clause], subs.term_offsets[clause + 1]):
            arrays.terms[head[N_TERMS]] = subs.terms[term]
            head[N_TERMS] += 1
        head[N_CLAUSES] = to + 1
        arrays.clause_first_term[to + 1] = head[N_TERMS]
    arrays.sub_first_clause[sub + 1] = head[N_CLAUSES]
    place = find_slot(arrays, subs.seq_from[row])
    arrays.map_seq[place] = subs.seq_from[row]
    arrays.map_slot[place] = sub + 1
    head[N_SUBS] = sub + 1


@kernel
def size_of(arrays: GI2Arrays, sub: int) -> int:
    """Count the bytes of a subscription when it is moved: seqs, region, clauses and terms (S_g)."""
    first, last = arrays.sub_first_clause[sub], arrays.sub_first_clause[sub + 1]
    n_terms = np.int64(arrays.clause_first_term[last]) - np.int64(arrays.clause_first_term[first])
    return 48 + 4 * (np.int64(last) - np.int64(first)) + 8 * n_terms


@kernel
def count_cells(arrays: GI2Arrays, counters: Grid, sub: int, sign: int) -> None:
    """Add (or subtract) a subscription to the counters of the grid^t cells it overlaps."""
    place = cover(counters, arrays.sub_bounds, sub, counters_limit())
    size = size_of(arrays, sub)
    last = (1 << counters.bits) - 1
    for r in range(place.n_rows):
        for c in range(place.n_columns):
            cell = (place.row + r) << counters.bits | ((place.column + c) & last)
            arrays.cell_subscriptions[cell] += sign
            arrays.cell_bytes[cell] += sign * size


@kernel
def counters_limit() -> int:
    """Let :func:`cover` stay on level 0 for whatever size of region."""
    return 1 << 62


@kernel
def insert(
    arrays: GI2Arrays,
    grids: tuple[Grid, Grid],
    max_cells: int,
    subs: Subscriptions,
    rows: Int64s,
    start: int,
) -> int:
    """Insert the subscriptions ``rows[start:]``; return the position of the first not yet done.

    Where postings or lists are full it stops, even within a subscription (``head[STEP]``, 0
    between two of them, remembers where), and goes on when it is called again with more room. A subscription that
    is already there is left alone: inserting twice changes nothing.
    """
    grid, counters = grids
    head = arrays.head
    for position in range(start, len(rows)):
        row = rows[position]
        if head[STEP] == 0:
            if arrays.map_slot[find_slot(arrays, subs.seq_from[row])] != 0:
                continue
            _append_subscription(arrays, subs, row)
            count_cells(arrays, counters, head[N_SUBS] - 1, 1)
            head[STEP] = 1
        sub = head[N_SUBS] - 1
        place = cover(grid, arrays.sub_bounds, sub, max_cells)
        n_cells = place.n_columns * place.n_rows
        first_clause = np.int64(arrays.sub_first_clause[sub])
        n_steps = (np.int64(arrays.sub_first_clause[sub + 1]) - first_clause) * n_cells
        while head[STEP] <= n_steps:
            clause = first_clause + (head[STEP] - 1) // n_cells
            cell = (head[STEP] - 1) % n_cells
            at_row = place.row + cell // place.n_columns
            at_column = (place.column + cell % place.n_columns) & ((1 << (grid.bits - place.level)) - 1)
            term, stop = np.int64(arrays.clause_first_term[clause]), np.int64(arrays.clause_first_term[clause + 1])
            # The rarest term of the clause comes first: it is the one that is posted.
            key = cell_term_key(cell_seed(place.level, at_column, at_row), arrays.terms[term])
            bloom = bloom_of(arrays.terms, term, stop)
            word = np.uint64(clause) << np.uint64(32)
            word |= quantised_bounds(arrays, grid, sub, place, at_column, at_row)
            if not _append_posting(arrays, key, bloom, word):
                return position
            head[STEP] += 1
        head[STEP] = 0
        head[LEVELS + place.level] += 1
    return len(rows)


@kernel
def end(arrays: GI2Arrays, counters: Grid, seq_from: Int64s, seq_to: Int64s) -> int:
    """Set seq_to of subscriptions; return how many were found. Ending twice changes nothing.

    This is the paper's lazy deletion: the postings stay until a probe walks over them.
    """
    n_found = 0
    for i in range(len(seq_from)):
        stored = arrays.map_slot[find_slot(arrays, seq_from[i])]
        if stored == 0:
            continue
        n_found += 1
        sub = np.int64(stored) - 1
        if arrays.sub_seq_to[sub] > seq_to[i]:
            arrays.sub_seq_to[sub] = seq_to[i]
            arrays.head[N_ENDED] += 1
            count_cells(arrays, counters, sub, -1)
    return n_found


@kernel
def rehash_lists(
    arrays: GI2Arrays, list_key: UInt64s, list_start: UInt32s, list_length: UInt32s
) -> None:
    """Move the lists that are not empty into a larger table."""
    n = 0
    for old in range(len(arrays.list_key)):
        if arrays.list_length[old] > 0:
            place = find_list(list_key, arrays.list_key[old])
            list_key[place] = arrays.list_key[old]
            list_start[place] = arrays.list_start[old]
            list_length[place] = arrays.list_length[old]
            n += 1
    arrays.head[N_LISTS] = n


@kernel
def refill_map(arrays: GI2Arrays) -> None:
    """Enter every subscription into an emptied map."""
    for sub in range(arrays.head[N_SUBS]):
        place = find_slot(arrays, arrays.sub_seq_from[sub])
        arrays.map_seq[place] = arrays.sub_seq_from[sub]
        arrays.map_slot[place] = sub + 1


@kernel
def remove_posting(arrays: GI2Arrays, place: int, position: int) -> None:
    """Fill the hole of a dead posting with the last one of its list."""
    length = np.int64(arrays.list_length[place]) - 1
    last = np.int64(arrays.list_start[place]) + length
    arrays.postings[2 * position] = arrays.postings[2 * last]
    arrays.postings[2 * position + 1] = arrays.postings[2 * last + 1]
    arrays.list_length[place] = length
    arrays.head[N_DEAD_POSTINGS] += 1
