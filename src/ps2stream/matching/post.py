"""Kernels that post a record: into the cells of its region, and into finer ones where they are crowded.

A cell is divided term by term: when the list of a frequent keyword in a dense area has grown long, what
touches no more than two quarters of its cell moves to the lists of these, and a publication looks there
too. What touches all four stays, so a region takes at most twice the postings for each time that its cell
is divided. Only the finest level of the grid is divided: what lies above are regions too large to gain.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Int64s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.matching.layout import FINER_LEVELS, N_POOL, N_POSTINGS, N_SPLITS
from ps2stream.matching.lists import (
    LIST,
    SPLIT,
    Lists,
    add_key,
    append,
    chunk_size,
    class_for,
    fills_chunk,
    find_list,
    has_key,
    is_empty,
    leave_chunk,
    list_key,
    list_value,
    range_of,
)
from ps2stream.matching.posting import (
    STEPS,
    bounds_in_cell,
    fingerprint_in,
    fingerprint_of,
    posting_of,
    record_of,
)
from ps2stream.matching.records import REGION, Records, n_terms_at, terms_at
from ps2stream.model.space import Cover, Grid, cell_seed, column_of, row_of

_NO_FINGERPRINT = np.uint64(0)
_HALF = STEPS // 2


@kernel
def quarters_of(steps: tuple[int, int, int, int]) -> int:
    """Return the quarters of a cell that a region touches, a bit each: 1 << (2 * north + east)."""
    columns = int(steps[0] < _HALF) | int(steps[1] >= _HALF) << 1
    rows = int(steps[2] < _HALF) | int(steps[3] >= _HALF) << 1
    return (columns if rows & 1 else 0) | (columns << 2 if rows & 2 else 0)


@kernel
def _n_quarters(quarters: int) -> int:
    return (quarters & 1) + (quarters >> 1 & 1) + (quarters >> 2 & 1) + (quarters >> 3)


@kernel
def post_record(
    lists: Lists, records: Records, record: int, grid: Grid, area: Cover, split_at: int, cells: Int64s
) -> bool:
    """Post all clauses of a record; False when it needs more capacity and has to be posted again.

    ``cells`` is scratch memory. Clauses that begin with the same term share a posting: which of them
    is satisfied is found out in the record.
    """
    at = terms_at(records.words, record)
    clause = 0
    while True:
        n_terms = n_terms_at(records.words, record, clause)
        if n_terms == 0:
            return True
        if not _begins_before(records.words, record, at):
            fingerprint = _NO_FINGERPRINT
            if n_terms > 1 and not _begins_after(records.words, record, clause, at):
                fingerprint = fingerprint_of(records.words[at + 1])
            for cell in range(area.n_rows * area.n_columns):
                cells[0] = area.level
                cells[1] = (area.column + cell % area.n_columns) & ((1 << (grid.bits - area.level)) - 1)
                cells[2] = area.row + cell // area.n_columns
                if not _post_in_cell(lists, records, record, grid, at, fingerprint, split_at, cells):
                    return False
        at += n_terms
        clause += 1


@kernel
def _begins_before(words: UInt64s, record: int, at: int) -> bool:
    """Say whether a clause before the one at ``at`` begins with the same term."""
    earlier = terms_at(words, record)
    clause = 0
    while earlier < at:
        if words[earlier] == words[at]:
            return True
        earlier += n_terms_at(words, record, clause)
        clause += 1
    return False


@kernel
def _begins_after(words: UInt64s, record: int, clause: int, at: int) -> bool:
    """Say whether a clause after the one at ``at`` begins with the same term."""
    later = at
    while True:
        later += n_terms_at(words, record, clause)
        clause += 1
        if n_terms_at(words, record, clause) == 0:
            return False
        if words[later] == words[at]:
            return True


@kernel
def _post_in_cell(
    lists: Lists,
    records: Records,
    record: int,
    grid: Grid,
    at: int,
    fingerprint: np.uint64,
    split_at: int,
    cells: Int64s,
) -> bool:
    """Post a record under the term at ``at`` in the cell ``cells[:3]``, or where that was divided into."""
    table = lists.table
    term = records.words[at]
    n = 1
    while n > 0:
        n -= 1
        level, column, row = cells[3 * n], cells[3 * n + 1], cells[3 * n + 2]
        steps = bounds_in_cell(records.floats, record + REGION, grid, level, column, row)
        key = list_key(cell_seed(level, column, row), term)
        slot = find_list(table, key)
        quarters = quarters_of(steps)
        # On other levels it is another list of the same key that was divided.
        is_split = 0 < level <= FINER_LEVELS and has_key(table, slot, key) and table[2 * slot] & SPLIT
        if is_split and _n_quarters(quarters) <= 2:
            for quarter in range(4):
                if quarters >> quarter & 1:
                    cells[3 * n] = level - 1
                    cells[3 * n + 1] = 2 * column + (quarter & 1)
                    cells[3 * n + 2] = 2 * row + (quarter >> 1)
                    n += 1
            continue
        if not append(lists, key, posting_of(record, fingerprint, steps)):
            return False
        if 0 < level <= FINER_LEVELS:
            slot = find_list(table, key)
            if table[2 * slot] & LIST and not table[2 * slot] & SPLIT:
                length = range_of(table[2 * slot + 1])[1]
                is_crowded = length >= split_at and fills_chunk(length)
                if is_crowded and not _split(lists, records, grid, term, level, column, row):
                    return False
    return True


@kernel
def _quarters_to_move(
    records: Records, posting: np.uint64, grid: Grid, term: np.uint64, level: int, column: int, row: int
) -> int:
    """Return the quarters of a cell that a posting of its list moves to, or 0 if it stays.

    A posting that another cell or term has put here, because both have one key, stays: only from there can
    everybody who looks for it find it.
    """
    record = record_of(posting)
    at = record + REGION
    bounds = records.floats
    if not row_of(grid, bounds[at + 1]) >> level <= row <= row_of(grid, bounds[at + 3]) >> level:
        return 0
    west, east = column_of(grid, bounds[at]) >> level, column_of(grid, bounds[at + 2]) >> level
    if bounds[at] <= bounds[at + 2] and not west <= column <= east:
        return 0
    first = terms_at(records.words, record)
    clause = 0
    while True:
        n_terms = n_terms_at(records.words, record, clause)
        if n_terms == 0:
            return 0
        if records.words[first] == term:
            break
        first += n_terms
        clause += 1
    quarters = quarters_of(bounds_in_cell(bounds, at, grid, level, column, row))
    return quarters if _n_quarters(quarters) <= 2 else 0


@kernel
def _split(
    lists: Lists, records: Records, grid: Grid, term: np.uint64, level: int, column: int, row: int
) -> bool:
    """Divide the list of a cell if at least half of it can move; False when there is no capacity to do so."""
    head, table, postings = lists
    key = list_key(cell_seed(level, column, row), term)
    start, length = range_of(table[2 * find_list(table, key) + 1])
    quarters = np.empty(length, np.int64)
    counts = np.zeros(4, np.int64)
    n_moving = 0
    for i in range(length):
        quarters[i] = _quarters_to_move(records, postings[start + i], grid, term, level, column, row)
        n_moving += int(quarters[i] != 0)
        for quarter in range(4):
            counts[quarter] += quarters[i] >> quarter & 1
    if 2 * n_moving < length:
        return True
    n_pool = 0
    for quarter in range(4):
        n_pool += chunk_size(class_for(counts[quarter])) if counts[quarter] > 1 else 0
    if head[N_POOL] + n_pool > len(postings):
        return False
    for quarter in range(4):
        child = _quarter_key(term, level, column, row, quarter)
        slot = find_list(table, child)
        if counts[quarter] == 0:
            continue
        # Where a later one finds no capacity, an empty list that nobody looks for stays behind.
        if not has_key(table, slot, child):
            if not add_key(head, table, slot, child):
                return False
        elif not is_empty(table[2 * slot], table[2 * slot + 1]):
            return True  # the list of another cell and term, which have the same key: it must not be lost
    for quarter in range(4):
        if counts[quarter] == 0:
            continue
        chunk = head[N_POOL]
        n = 0
        only = np.uint64(0)
        for i in range(length):
            if quarters[i] >> quarter & 1:
                record = record_of(postings[start + i])
                steps = bounds_in_cell(
                    records.floats,
                    record + REGION,
                    grid,
                    level - 1,
                    2 * column + (quarter & 1),
                    2 * row + (quarter >> 1),
                )
                only = posting_of(record, fingerprint_in(postings[start + i]), steps)
                if counts[quarter] > 1:
                    postings[chunk + n] = only
                n += 1
        slot = find_list(table, _quarter_key(term, level, column, row, quarter))
        if n > 1:
            head[N_POOL] += chunk_size(class_for(n))
            table[2 * slot + 1] = list_value(chunk, n)
        else:
            table[2 * slot] &= ~LIST
            table[2 * slot + 1] = only
        head[N_POSTINGS] += n
    kept = start
    for i in range(length):
        if quarters[i] == 0:
            postings[kept] = postings[start + i]
            kept += 1
    slot = find_list(table, key)
    table[2 * slot] |= SPLIT
    table[2 * slot + 1] = list_value(start, kept - start)
    if kept == start:
        leave_chunk(head, postings, start, class_for(length))
    head[N_POSTINGS] -= n_moving
    head[N_SPLITS] += 1
    return True


@kernel
def _quarter_key(term: np.uint64, level: int, column: int, row: int, quarter: int) -> np.uint64:
    return list_key(cell_seed(level - 1, 2 * column + (quarter & 1), 2 * row + (quarter >> 1)), term)
