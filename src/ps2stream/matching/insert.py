"""Kernels that change a GI2: insert, end, rehash (Sec. IV-D)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt32s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.matching.layout import (
    FOREVER,
    FREE,
    GONE,
    LAST_SLOT,
    LEVELS,
    N_ENDED,
    N_LISTS,
    N_POSTINGS,
    N_ROOM,
    N_SUBS,
    N_WORDS,
    STEP,
    GI2Arrays,
    Subscriptions,
)
from ps2stream.matching.records import (
    CLAUSES,
    SEQ_FROM,
    SEQ_TO,
    SLOT_WORDS,
    Records,
    end_of,
    is_last,
    n_terms_at,
    pack,
    size_at,
    views_of,
)
from ps2stream.model.space import (
    NO_LIMIT,
    Cover,
    Grid,
    cell_seed,
    cell_term_key,
    column_of,
    cover,
    mix,
    row_of,
)

LENGTH = np.uint64(0xFFFFFFFF)


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
def quantised_bounds(
    bounds: Float64s, slot: int, grid: Grid, place: Cover, column: int, row: int
) -> np.uint64:
    """Pack a region's bounds within one cell: min x, max x, min y, max y, 8 bits each."""
    at = 4 * slot
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
def find_list(list_table: UInt64s, key: np.uint64) -> int:
    """Return the place of a key in the table, or the free place where it belongs."""
    last = np.uint64(len(list_table) // 2 - 1)
    place = key & last
    while True:
        stored = list_table[2 * signed(place)]
        if stored == np.uint64(0) or stored == key:
            return signed(place)
        place = (place + np.uint64(1)) & last


@kernel
def find_slot(map_slot: UInt32s, records: Records, seq_from: int) -> int:
    """Return the place of a subscription in the map, or the free place where it belongs.

    The map holds no seqs of its own: comparing with the record costs a cache miss on a collision and
    saves 16 bytes a subscription.
    """
    last = np.uint64(len(map_slot) - 1)
    place = mix(np.uint64(seq_from)) & last
    while map_slot[place] != 0:
        slot = signed(map_slot[place]) - 1
        if records.ints[SLOT_WORDS * slot + SEQ_FROM] == seq_from:
            break
        place = (place + np.uint64(1)) & last
    return signed(place)


class _Lists(NamedTuple):
    """The part of the arrays that posting works on.

    numba takes a struct apart on every call: with all of :class:`GI2Arrays` an insert took half as
    long again (docs/performance.md).
    """

    head: Int64s
    table: UInt64s
    postings: UInt64s


@kernel
def is_table_full(head: Int64s, list_table: UInt64s) -> bool:
    """Say whether one more list would make look-ups slow."""
    return bool(10 * (head[N_LISTS] + 1) > 7 * (len(list_table) // 2))


@kernel
def _take_room(head: Int64s, postings: UInt64s, size_class: int) -> int:
    """Return the start of room for ``2**size_class`` postings, or -1 when the pool is full."""
    free = head[FREE + size_class] - 1
    if free >= 0:
        head[FREE + size_class] = signed(postings[2 * free])
        return signed(free)
    start = head[N_ROOM]
    if 2 * (start + (1 << size_class)) > len(postings):
        return -1
    head[N_ROOM] = start + (1 << size_class)
    return signed(start)


@kernel
def _append_posting(lists: _Lists, key: np.uint64, bloom: np.uint64, word: np.uint64) -> bool:
    """Add a posting to the list of a key; False, and nothing changed, when there is no room.

    A list of a power of two counts as full and moves to twice the room; the next list of its size moves into
    what it leaves. After removals a list may have more room than its length tells; that part is
    lost until compaction. Keeping capacities in the table would cost four bytes a list.
    """
    head, table, postings = lists
    place = find_list(table, key)
    is_new = table[2 * place] == np.uint64(0)
    if is_new and is_table_full(head, table):
        return False
    entry = table[2 * place + 1]
    start, length = signed(entry >> np.uint64(32)), signed(entry & LENGTH)
    if length & (length - 1) == 0:
        size_class = 0
        while 1 << size_class <= length:
            size_class += 1
        room = _take_room(head, postings, size_class)
        if room < 0:
            return False
        for i in range(2 * length):
            postings[2 * room + i] = postings[2 * start + i]
        if length > 0:
            postings[2 * start] = np.uint64(head[FREE + size_class - 1])
            head[FREE + size_class - 1] = start + 1
        start = room
    if is_new:
        table[2 * place] = key
        head[N_LISTS] += 1
    postings[2 * (start + length)] = bloom
    postings[2 * (start + length) + 1] = word
    table[2 * place + 1] = np.uint64(start) << np.uint64(32) | np.uint64(length + 1)
    head[N_POSTINGS] += 1
    return True


@kernel
def count_cells(cells: tuple[Int64s, Int64s], counters: Grid, records: Records, slot: int, sign: int) -> None:
    """Add (or subtract) a subscription to the counters of the grid^t cells it overlaps."""
    n_subscriptions, n_bytes = cells
    place = cover(counters, records.floats, slot, NO_LIMIT)
    size = size_at(records, slot)
    last = (1 << counters.bits) - 1
    for r in range(place.n_rows):
        for c in range(place.n_columns):
            cell = (place.row + r) << counters.bits | ((place.column + c) & last)
            n_subscriptions[cell] += sign
            n_bytes[cell] += sign * size


@kernel
def _post(lists: _Lists, records: Records, grid: Grid, place: Cover, slot: int) -> bool:
    """Post a subscription from ``head[STEP]`` on; False when it needs more room to go on."""
    head = lists.head
    clause = SLOT_WORDS * slot + CLAUSES
    step = 0
    while True:
        n_terms = n_terms_at(records, clause)
        bloom = bloom_of(records.words, clause + 1, clause + 1 + n_terms)
        for cell in range(place.n_rows * place.n_columns):
            step += 1
            if step < head[STEP]:
                continue
            row = place.row + cell // place.n_columns
            column = (place.column + cell % place.n_columns) & ((1 << (grid.bits - place.level)) - 1)
            # The rarest term of the clause comes first: it is the one that is posted.
            key = cell_term_key(cell_seed(place.level, column, row), records.words[clause + 1])
            word = np.uint64(clause) << np.uint64(32)
            word |= quantised_bounds(records.floats, slot, grid, place, column, row)
            if not _append_posting(lists, key, bloom, word):
                head[STEP] = step
                return False
        if is_last(records, clause):
            return True
        clause += 1 + n_terms


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
    between two of them, remembers where), and goes on when it is called again with more room. A
    subscription that is already there is left alone: inserting twice changes nothing.
    """
    grid, counters = grids
    head = arrays.head
    records = views_of(arrays.records)
    lists = _Lists(head, arrays.list_table, arrays.postings)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    for position in range(start, len(rows)):
        row = rows[position]
        if head[STEP] == 0:
            at = find_slot(arrays.map_slot, records, subs.seq_from[row])
            if arrays.map_slot[at] != 0:
                continue
            slot = head[N_WORDS] // SLOT_WORDS
            head[N_WORDS] = SLOT_WORDS * pack(records, slot, subs, row)
            arrays.map_slot[at] = slot + 1
            head[N_SUBS] += 1
            count_cells(cells, counters, records, slot, 1)
            head[LAST_SLOT] = slot
            head[STEP] = 1
        slot = head[LAST_SLOT]
        place = cover(grid, records.floats, slot, max_cells)
        if not _post(lists, records, grid, place, slot):
            return position
        head[STEP] = 0
        head[LEVELS + place.level] += 1
    return len(rows)


@kernel
def end(arrays: GI2Arrays, counters: Grid, seq_from: Int64s, seq_to: Int64s) -> int:
    """Set seq_to of subscriptions; return how many were found. Ending twice changes nothing.

    This is the paper's lazy deletion: the postings stay until a probe walks over them.
    """
    records = views_of(arrays.records)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    n_found = 0
    for i in range(len(seq_from)):
        stored = arrays.map_slot[find_slot(arrays.map_slot, records, seq_from[i])]
        if stored == 0:
            continue
        n_found += 1
        slot = signed(stored) - 1
        if records.ints[SLOT_WORDS * slot + SEQ_TO] > seq_to[i]:
            records.ints[SLOT_WORDS * slot + SEQ_TO] = seq_to[i]
            arrays.head[N_ENDED] += 1
            count_cells(cells, counters, records, slot, -1)
    return n_found


@kernel
def drop(arrays: GI2Arrays, counters: Grid, seq_from: Int64s) -> int:
    """Forget subscriptions that this worker does not own any more; return how many were found.

    Their postings stay until a probe walks over them, as if they had ended before all publications. Their
    seqs are free again: the same subscription may come back.
    """
    records = views_of(arrays.records)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    n_found = 0
    for i in range(len(seq_from)):
        stored = arrays.map_slot[find_slot(arrays.map_slot, records, seq_from[i])]
        if stored == 0:
            continue
        n_found += 1
        slot = signed(stored) - 1
        if records.ints[SLOT_WORDS * slot + SEQ_TO] == FOREVER:
            arrays.head[N_ENDED] += 1
            count_cells(cells, counters, records, slot, -1)
        # The map still leads here, but to a seq that nobody asks for.
        records.ints[SLOT_WORDS * slot + SEQ_FROM] = GONE
        records.ints[SLOT_WORDS * slot + SEQ_TO] = GONE
    return n_found


@kernel
def find_slots(arrays: GI2Arrays, seq_from: Int64s) -> Int64s:
    """List the slots of those subscriptions that are stored here."""
    records = views_of(arrays.records)
    slots = np.empty(len(seq_from), np.int64)
    n = 0
    for i in range(len(seq_from)):
        stored = arrays.map_slot[find_slot(arrays.map_slot, records, seq_from[i])]
        if stored != 0:
            slots[n] = signed(stored) - 1
            n += 1
    return slots[:n]


@kernel
def recount_cells(arrays: GI2Arrays, counters: Grid) -> None:
    """Count what is stored in the cells of another grid; the arrays come empty."""
    records = views_of(arrays.records)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    slot = 0
    for _ in range(arrays.head[N_SUBS]):
        if records.ints[SLOT_WORDS * slot + SEQ_TO] == FOREVER:
            count_cells(cells, counters, records, slot, 1)
        slot = end_of(records, slot)


@kernel
def rehash_lists(arrays: GI2Arrays, list_table: UInt64s) -> None:
    """Move the lists that are not empty into a larger table."""
    n = 0
    for old in range(len(arrays.list_table) // 2):
        entry = arrays.list_table[2 * old + 1]
        if entry & LENGTH != np.uint64(0):
            place = find_list(list_table, arrays.list_table[2 * old])
            list_table[2 * place] = arrays.list_table[2 * old]
            list_table[2 * place + 1] = entry
            n += 1
    arrays.head[N_LISTS] = n


@kernel
def refill_map(arrays: GI2Arrays) -> None:
    """Enter every subscription into an emptied map."""
    records = views_of(arrays.records)
    slot = 0
    for _ in range(arrays.head[N_SUBS]):
        seq_from = records.ints[SLOT_WORDS * slot + SEQ_FROM]
        if seq_from != GONE:
            arrays.map_slot[find_slot(arrays.map_slot, records, seq_from)] = slot + 1
        slot = end_of(records, slot)


@kernel
def remove_posting(arrays: GI2Arrays, place: int, position: int) -> None:
    """Fill the hole of a dead posting with the last one of its list."""
    entry = arrays.list_table[2 * place + 1] - np.uint64(1)
    last = signed(entry >> np.uint64(32)) + signed(entry & LENGTH)
    arrays.postings[2 * position] = arrays.postings[2 * last]
    arrays.postings[2 * position + 1] = arrays.postings[2 * last + 1]
    arrays.list_table[2 * place + 1] = entry
    arrays.head[N_POSTINGS] -= 1
