"""Kernels that change a GI2: insert, end, drop (Sec. IV-D)."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Int64s
from ps2stream.kernels import kernel
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.matching.layout import (
    FINER_LEVELS,
    LAST_RECORD,
    LEVELS,
    N_ENDED,
    N_ENDS,
    N_RECORDS,
    N_WORDS,
    PENDING,
    GI2Arrays,
)
from ps2stream.matching.lists import Lists, list_key, prefetch_list
from ps2stream.matching.post import post_record
from ps2stream.matching.records import (
    REGION,
    Records,
    is_live,
    needed_for,
    next_record,
    seqs_at,
    set_end,
    set_gone,
    size_at,
    views_of,
    write_record,
)
from ps2stream.matching.seq_map import find_seq, is_map_full, prefetch_seq, record_at, set_record
from ps2stream.model.space import NO_LIMIT, Grid, cell_seed, cover

#: This many subscriptions ahead the memory they will need is prefetched.
_AHEAD = 8
#: Instead of a position: nothing was done for lack of capacity.
NOT_BEGUN = -1


@kernel
def count_in_cells(
    cells: tuple[Int64s, Int64s], counters: Grid, records: Records, record: int, sign: int
) -> None:
    """Add (or subtract) a subscription to the counters of the grid^t cells it overlaps.

    It is entered at the corners of these cells only (see ``sum_cells``).
    """
    area = cover(counters, records.floats, record + REGION, NO_LIMIT)
    n_bytes = sign * size_at(records.words, record)
    side = 1 << counters.bits
    stop = area.column + area.n_columns
    for edge in range(2):
        step = 1 - 2 * edge
        row = (area.row + edge * area.n_rows) << counters.bits
        if row == side << counters.bits:
            continue
        _count_at(cells, row + area.column, step * sign, step * n_bytes)
        if stop < side:
            _count_at(cells, row + stop, -step * sign, -step * n_bytes)
        elif stop > side:
            _count_at(cells, row, step * sign, step * n_bytes)
            _count_at(cells, row + stop - side, -step * sign, -step * n_bytes)


@kernel
def _count_at(cells: tuple[Int64s, Int64s], cell: int, n_subscriptions: int, n_bytes: int) -> None:
    cells[0][cell] += n_subscriptions
    cells[1][cell] += n_bytes


@kernel
def sum_cells(bits: int, corners: Int64s, counters: Int64s) -> None:
    """Turn what was entered at corners into counters of cells: each is the sum of all to its south-west."""
    side = 1 << bits
    for row in range(side):
        in_row = 0
        for cell in range(row << bits, (row + 1) << bits):
            in_row += corners[cell]
            counters[cell] = in_row + (counters[cell - side] if row else 0)


@kernel
def _prefetch(arrays: GI2Arrays, grid: Grid, max_cells: int, subs: Subscriptions, row: int) -> None:
    """Ask for the memory that a subscription to come will be entered at."""
    prefetch_seq(arrays.map_record, subs.seq_from[row])
    area = cover(grid, subs.bounds, 4 * row, max_cells, FINER_LEVELS)
    last = (1 << (grid.bits - area.level)) - 1
    for clause in range(subs.clause_offsets[row], subs.clause_offsets[row + 1]):
        term = subs.terms[subs.term_offsets[clause]]
        for r in range(area.n_rows):
            for c in range(area.n_columns):
                seed = cell_seed(area.level, (area.column + c) & last, area.row + r)
                prefetch_list(arrays.list_table, list_key(seed, term))


@kernel
def insert(
    arrays: GI2Arrays,
    grids: tuple[Grid, Grid],
    limits: tuple[int, int],
    subs: Subscriptions,
    rows: Int64s,
    start: int,
) -> int:
    """Insert the subscriptions ``rows[start:]``; return the position of the first not yet done.

    ``limits`` are the most cells of a region and the length of lists that are divided. Where anything else
    lacks capacity, it does not begin. Where postings or lists are full it stops, and the next call posts that
    subscription again from its start (``head[PENDING]``), which adds what is missing. A subscription that is
    already there is left alone: inserting twice changes nothing.
    """
    grid, counters = grids
    max_cells = limits[0]
    head = arrays.head
    records = views_of(arrays.records, arrays.ends)
    lists = Lists(head, arrays.list_table, arrays.postings)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    scratch = np.empty(3 * (FINER_LEVELS + 3), np.int64)
    if start == 0 and not _has_capacity(arrays, subs, rows):
        return NOT_BEGUN
    # It may be of an earlier insert, which found no capacity and was given up.
    if head[PENDING] and not _post_last(lists, records, grid, limits, scratch):
        return start
    for position in range(start, min(start + _AHEAD, len(rows))):
        _prefetch(arrays, grid, max_cells, subs, rows[position])
    for position in range(start, len(rows)):
        if position + _AHEAD < len(rows):
            _prefetch(arrays, grid, max_cells, subs, rows[position + _AHEAD])
        row = rows[position]
        at = find_seq(arrays.map_record, records, subs.seq_from[row])
        if record_at(arrays.map_record, records, at) >= 0:
            continue
        record = head[N_WORDS]
        head[N_WORDS] = write_record(records, record, subs, row)
        if subs.seq_to[row] != FOREVER:
            set_end(head, records, record, subs.seq_to[row])
            head[N_ENDED] += 1
        else:
            count_in_cells(cells, counters, records, record, 1)
        set_record(arrays.map_record, records, at, subs.seq_from[row], record)
        head[N_RECORDS] += 1
        head[LAST_RECORD] = record
        head[PENDING] = 1
        if not _post_last(lists, records, grid, limits, scratch):
            return position
    return len(rows)


@kernel
def _has_capacity(arrays: GI2Arrays, subs: Subscriptions, rows: Int64s) -> bool:
    """Say whether all but postings and lists, whose number is not known yet, have capacity."""
    head = arrays.head
    n_words, n_ends = needed_for(subs, rows)
    return (
        head[N_WORDS] + n_words <= len(arrays.records)
        and 2 * (head[N_ENDS] + n_ends) <= len(arrays.ends)
        and not is_map_full(head[N_RECORDS] + len(rows), len(arrays.map_record))
    )


@kernel
def _post_last(lists: Lists, records: Records, grid: Grid, limits: tuple[int, int], scratch: Int64s) -> bool:
    """Post the last record, all of it or what is missing; False when there is no capacity."""
    head = lists.head
    max_cells, split_at = limits
    record = head[LAST_RECORD]
    area = cover(grid, records.floats, record + REGION, max_cells, FINER_LEVELS)
    if not post_record(lists, records, record, grid, area, split_at, scratch):
        return False
    head[PENDING] = 0
    head[LEVELS + area.level] += 1
    return True


@kernel
def end(arrays: GI2Arrays, counters: Grid, seq_from: Int64s, seq_to: Int64s) -> int:
    """Set seq_to of subscriptions; return how many were found. Ending twice changes nothing.

    This is the paper's lazy deletion: the postings stay until a probe comes upon the record.
    """
    records = views_of(arrays.records, arrays.ends)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    n_found = 0
    for i in range(len(seq_from)):
        if i + _AHEAD < len(seq_from):
            prefetch_seq(arrays.map_record, seq_from[i + _AHEAD])
        slot = find_seq(arrays.map_record, records, seq_from[i])
        record = record_at(arrays.map_record, records, slot)
        if record < 0:
            continue
        n_found += 1
        if seqs_at(records, record)[1] <= seq_to[i]:
            continue
        if is_live(records, record):
            arrays.head[N_ENDED] += 1
            count_in_cells(cells, counters, records, record, -1)
        set_end(arrays.head, records, record, seq_to[i])
    return n_found


@kernel
def drop(arrays: GI2Arrays, counters: Grid, seq_from: Int64s) -> int:
    """Forget subscriptions that this worker does not own any more; return how many were found.

    Their postings stay until a probe comes upon the record, as if they had ended before all publications.
    Their seqs are free again: the same subscription may come back.
    """
    records = views_of(arrays.records, arrays.ends)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    n_found = 0
    for i in range(len(seq_from)):
        slot = find_seq(arrays.map_record, records, seq_from[i])
        record = record_at(arrays.map_record, records, slot)
        if record < 0:
            continue
        n_found += 1
        if is_live(records, record):
            arrays.head[N_ENDED] += 1
            count_in_cells(cells, counters, records, record, -1)
        # The map still leads here, but whoever comes sees that it is gone.
        set_gone(records, record)
    return n_found


@kernel
def recount_cells(arrays: GI2Arrays, counters: Grid) -> None:
    """Count what is stored in the cells of another grid; the arrays come empty."""
    records = views_of(arrays.records, arrays.ends)
    cells = (arrays.cell_subscriptions, arrays.cell_bytes)
    record = 0
    for _ in range(arrays.head[N_RECORDS]):
        if is_live(records, record):
            count_in_cells(cells, counters, records, record, 1)
        record = next_record(records.words, record)
