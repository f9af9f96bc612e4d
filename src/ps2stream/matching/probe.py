"""Kernels that read a GI2: probe the lists of publications, verify what they hold (Sec. IV-D).

Nearly all time of a probe would go by waiting for memory: for the table, the lists, the records. So
publications are taken a block at a time, in steps that each prefetch what the next one reads:

    1 keys of all terms      -> slots in the table
    2 slots in the table    -> lists
    3 lists, posting by posting, keep what may match -> records
    4 records                -> matches
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt64s
from ps2stream.kernels import copy, kernel, prefetch, signed
from ps2stream.matching.contract import FOREVER, OWNED_BEFORE, OWNED_NOW, Found, Probes
from ps2stream.matching.layout import (
    FINER_LEVELS,
    LEVELS,
    N_CANDIDATES,
    N_MATCHES,
    N_PUBLICATIONS,
    GI2Arrays,
)
from ps2stream.matching.lists import (
    LIST,
    SPLIT,
    Lists,
    find_list,
    has_key,
    list_key,
    prefetch_list,
    range_of,
    remove,
)
from ps2stream.matching.posting import FILTER_WORDS, admits, fill_filter, point_in_cell, record_of
from ps2stream.matching.records import (
    ENDED,
    LIVE,
    REGION,
    SEQ,
    STATE,
    n_terms_at,
    terms_at,
    views_of,
)
from ps2stream.model.space import Grid, cell_seed, column_of, contains, row_of

#: Publications a block, and how many postings are gone through before what they kept is verified.
_BLOCK = 32
_AT_ONCE = 4096
#: Words of a cache line.
_LINE = 8


@kernel
def holds(terms: UInt64s, start: int, stop: int, term: np.uint64) -> bool:
    """Say whether a sorted range of terms has a term."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low < stop and terms[low] == term


@kernel
def _reports(words: UInt64s, record: int, terms: UInt64s, start: int, stop: int, term: np.uint64) -> bool:
    """Say whether a record, found under one of the terms ``terms[start:stop]``, has to be reported for it.

    Several clauses may be satisfied; the first in stored order reports, under the term it begins with. So
    each match is found once, by the one worker that owns that term under the plan that the subscription is
    stored by.
    """
    at = terms_at(words, record)
    clause = 0
    while True:
        n_terms = n_terms_at(words, record, clause)
        if n_terms == 0:
            return False
        is_satisfied = words[at] == term or holds(terms, start, stop, words[at])
        for i in range(at + 1, at + n_terms):
            if not is_satisfied:
                break
            is_satisfied = holds(terms, start, stop, words[i])
        if is_satisfied:
            return bool(words[at] == term)
        at += n_terms
        clause += 1


class _Block(NamedTuple):
    """Capacity for a block of publications; all but the visits have an entry a publication."""

    x: Float64s  # grid positions
    y: Float64s
    filters: UInt64s  # of fingerprints, FILTER_WORDS each
    n_lookups: Int64s
    n_candidates: Int64s
    n_matches: Int64s


class _Visits(NamedTuple):
    """The lists that a block has to go through, in the order of its publications."""

    publication: Int64s  # in the block
    term: Int64s  # position in the probes
    slot: Int64s
    point: UInt64s
    kept: Int64s  # where behind its last posting that may match lies


@kernel
def _find_lists(
    arrays: GI2Arrays,
    grid: Grid,
    probes: Probes,
    start: int,
    stop: int,
    levels: Int64s,
    block: _Block,
    keys: UInt64s,
    visits: _Visits,
) -> int:
    """Find the lists of the publications ``start:stop`` (steps 1 and 2); return how many."""
    n = 0
    for row in range(start, stop):
        b = row - start
        lon, lat = probes.lon[row], probes.lat[row]
        column, line = column_of(grid, lon), row_of(grid, lat)
        block.x[b] = (lon - grid.min_lon) * grid.columns_per_degree
        block.y[b] = (lat - grid.min_lat) * grid.rows_per_degree
        first, last = probes.term_offsets[row], probes.term_offsets[row + 1]
        fill_filter(probes.terms, first, last, block.filters, FILTER_WORDS * b)
        block.n_lookups[b] = block.n_candidates[b] = block.n_matches[b] = 0
        for level in levels:
            seed = cell_seed(level, column >> level, line >> level)
            for i in range(first, last):
                if probes.owned[i]:
                    keys[n] = list_key(seed, probes.terms[i])
                    prefetch_list(arrays.list_table, keys[n])
                    n += 1
    table = arrays.list_table
    n_visits = n = 0
    for row in range(start, stop):
        b = row - start
        column, line = column_of(grid, probes.lon[row]), row_of(grid, probes.lat[row])
        for base in levels:
            for i in range(probes.term_offsets[row], probes.term_offsets[row + 1]):
                if not probes.owned[i]:
                    continue
                level = base
                key = keys[n]
                n += 1
                while True:
                    block.n_lookups[b] += 1
                    slot = find_list(table, key)
                    if not has_key(table, slot, key):
                        break
                    visits.publication[n_visits] = b
                    visits.term[n_visits] = i
                    visits.slot[n_visits] = slot
                    visits.point[n_visits] = point_in_cell(
                        block.x[b], block.y[b], level, column >> level, line >> level
                    )
                    n_visits += 1
                    if table[2 * slot] & LIST:
                        first, length = range_of(table[2 * slot + 1])
                        prefetch(arrays.postings, first)
                        if length > _LINE:
                            prefetch(arrays.postings, first + _LINE)
                    # On other levels it is another list of the same key that was divided.
                    if not table[2 * slot] & SPLIT or not 0 < level <= FINER_LEVELS:
                        break
                    level -= 1
                    key = list_key(cell_seed(level, column >> level, line >> level), probes.terms[i])
    return n_visits


@kernel
def _keep(
    postings: UInt64s,
    start: int,
    stop: int,
    point: np.uint64,
    filters: UInt64s,
    at: int,
    kept: UInt64s,
    n: int,
) -> int:
    """Keep the postings of a list that may match (step 3), from ``kept[n]`` on; return where they end.

    Each is written and the next one follows if it does not pass: a branch would be mispredicted
    every other time.
    """
    for i in range(start, stop):
        kept[n] = postings[i]
        n += signed(admits(kept[n], point, filters, at))
    return n


@kernel
def _add_up(arrays: GI2Arrays, counters: Grid, probes: Probes, start: int, stop: int, block: _Block) -> None:
    """Count the work of finished publications in the cells of grid^t."""
    for row in range(start, stop):
        cell = row_of(counters, probes.lat[row]) << counters.bits | column_of(counters, probes.lon[row])
        arrays.cell_publications[cell] += 1
        arrays.cell_lookups[cell] += block.n_lookups[row - start]
        arrays.cell_candidates[cell] += block.n_candidates[row - start]
        arrays.cell_matches[cell] += block.n_matches[row - start]
        arrays.head[N_CANDIDATES] += block.n_candidates[row - start]
        arrays.head[N_MATCHES] += block.n_matches[row - start]
    arrays.head[N_PUBLICATIONS] += stop - start


@kernel
def _levels_in_use(head: Int64s, grid: Grid) -> Int64s:
    levels = np.empty(grid.bits + 1, np.int64)
    n = 0
    for level in range(grid.bits + 1):
        if head[LEVELS + level] > 0:
            levels[n] = level
            n += 1
    return levels[:n]


@kernel
def _most_terms(offsets: Int64s, start: int) -> int:
    """Return the most terms that a block of publications has."""
    most = 0
    for first in range(start, len(offsets) - 1, _BLOCK):
        most = max(most, offsets[min(first + _BLOCK, len(offsets) - 1)] - offsets[first])
    return most


@kernel
def probe(
    arrays: GI2Arrays, grids: tuple[Grid, Grid], probes: Probes, start: int, horizon: int, found: Found
) -> tuple[int, int]:
    """Match the publications from row ``start`` on; return (first row not done, matches written).

    Stops before the publication whose matches do not fit into ``found``. Matches come in the order of
    publications. Postings of subscriptions that ended at or before ``horizon`` are removed on the way: no
    publication that can still come, replays included, has a seq below it.
    """
    grid, counters = grids
    records = views_of(arrays.records, arrays.ends)
    lists = Lists(arrays.head, arrays.list_table, arrays.postings)
    levels = _levels_in_use(arrays.head, grid)
    n_terms = _most_terms(probes.term_offsets, start)
    n_visits = n_terms * (len(levels) + FINER_LEVELS)
    keys = np.empty(n_terms * len(levels), np.uint64)
    block = _Block(
        np.empty(_BLOCK, np.float64),
        np.empty(_BLOCK, np.float64),
        np.empty(FILTER_WORDS * _BLOCK, np.uint64),
        np.empty(_BLOCK, np.int64),
        np.empty(_BLOCK, np.int64),
        np.empty(_BLOCK, np.int64),
    )
    visits = _Visits(
        np.empty(n_visits, np.int64),
        np.empty(n_visits, np.int64),
        np.empty(n_visits, np.int64),
        np.empty(n_visits, np.uint64),
        np.empty(n_visits, np.int64),
    )
    table, postings = arrays.list_table, arrays.postings
    kept = np.empty(2 * _AT_ONCE, np.uint64)
    n_found = 0
    for first in range(start, len(probes.seq), _BLOCK):
        stop = min(first + _BLOCK, len(probes.seq))
        n_visits = _find_lists(arrays, grid, probes, first, stop, levels, block, keys, visits)
        visit, row, n_before = 0, first, n_found
        while visit < n_visits:
            n_kept, begun = 0, visit
            while visit < n_visits and n_kept < _AT_ONCE:
                slot, b = visits.slot[visit], visits.publication[visit]
                point, at = visits.point[visit], FILTER_WORDS * b
                n = n_kept
                if table[2 * slot] & LIST:
                    begin, length = range_of(table[2 * slot + 1])
                    # One more than there are postings: what does not pass is written as well.
                    if n + length >= len(kept):
                        longer = np.empty(2 * (n + length + 1), np.uint64)
                        copy(longer, kept, n)
                        kept = longer
                    n_kept = _keep(postings, begin, begin + length, point, block.filters, at, kept, n)
                    block.n_candidates[b] += length
                else:
                    n_kept = _keep(table, 2 * slot + 1, 2 * slot + 2, point, block.filters, at, kept, n)
                    block.n_candidates[b] += 1
                for i in range(n, n_kept):
                    record = record_of(kept[i])
                    prefetch(records.words, record)
                    prefetch(records.words, record + _LINE - 1)
                visits.kept[visit] = n_kept
                visit += 1
            at = 0
            for done in range(begun, visit):
                b, i = visits.publication[done], visits.term[done]
                if first + b != row:
                    row, n_before = first + b, n_found
                lon, lat = probes.lon[row], probes.lat[row]
                first_term, last_term = probes.term_offsets[row], probes.term_offsets[row + 1]
                while at < visits.kept[done]:
                    record = record_of(kept[at])
                    state = records.words[record] & STATE
                    seq_from, seq_to = records.ints[record + SEQ], FOREVER
                    if state == ENDED:
                        seq_from, seq_to = records.ends[2 * seq_from], records.ends[2 * seq_from + 1]
                    if seq_to <= horizon or (state != LIVE and state != ENDED):
                        remove(lists, visits.slot[done], kept[at])
                    elif (
                        probes.owned[i] & (OWNED_BEFORE if seq_from <= probes.switch_seq else OWNED_NOW)
                        and seq_from < probes.seq[row] < seq_to
                        and contains(records.floats, record + REGION, lon, lat)
                        and _reports(
                            records.words, record, probes.terms, first_term, last_term, probes.terms[i]
                        )
                    ):
                        if n_found == len(found.publication):
                            _add_up(arrays, counters, probes, first, row, block)
                            return row, n_before
                        found.publication[n_found] = row
                        found.subscription[n_found] = seq_from
                        n_found += 1
                        block.n_matches[b] += 1
                    at += 1
        _add_up(arrays, counters, probes, first, stop, block)
    return len(probes.seq), n_found
