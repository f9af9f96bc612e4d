"""Kernels that read a GI2: probe the lists of a publication, verify what they hold (Sec. IV-D)."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.matching.insert import LENGTH, bloom_of, find_list, quantise, remove_posting
from ps2stream.matching.layout import LEVELS, OWNED_BEFORE, OWNED_NOW, Found, GI2Arrays, Probes
from ps2stream.matching.records import (
    CLAUSES,
    SEQ_FROM,
    SEQ_TO,
    SLOT_WORDS,
    Records,
    n_terms_at,
    start_of,
    views_of,
)
from ps2stream.model.space import Grid, cell_seed, cell_term_key, column_of, contains, row_of


@kernel
def holds(terms: UInt64s, start: int, stop: int, term: np.uint64) -> bool:
    """Say whether a sorted stretch of terms has a term."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low < stop and terms[low] == term


@kernel
def satisfied(records: Records, clause: int, probes: Probes, row: int) -> bool:
    """Say whether a publication has all terms of a clause."""
    start, stop = probes.term_offsets[row], probes.term_offsets[row + 1]
    for i in range(clause + 1, clause + 1 + n_terms_at(records, clause)):
        if not holds(probes.terms, start, stop, records.words[i]):
            return False
    return True


@kernel
def verify(records: Records, start: int, clause: int, probes: Probes, row: int, term: int) -> bool:
    """Say whether this clause, found under a term of the publication, is the one that reports a match.

    Every clause is posted, and several may be satisfied; only the first in stored order
    reports. So each match is found once, by the one worker that owns that clause's term under the
    plan that the subscription is stored by.
    """
    is_older = records.ints[start + SEQ_FROM] <= probes.switch_seq
    if not probes.owned[term] & (OWNED_BEFORE if is_older else OWNED_NOW):
        return False
    if not records.ints[start + SEQ_FROM] < probes.seq[row] < records.ints[start + SEQ_TO]:
        return False
    if not contains(records.floats, start // SLOT_WORDS, probes.lon[row], probes.lat[row]):
        return False
    if not satisfied(records, clause, probes, row):
        return False
    earlier = start + CLAUSES
    while earlier < clause:
        if satisfied(records, earlier, probes, row):
            return False
        earlier += 1 + n_terms_at(records, earlier)
    return True


@kernel
def probe(
    arrays: GI2Arrays, grids: tuple[Grid, Grid], probes: Probes, start: int, horizon: int, found: Found
) -> tuple[int, int]:
    """Match the publications from row ``start`` on; return (first row not done, matches written).

    Stops before the publication whose matches do not fit into ``found``. Postings of
    subscriptions that ended at or before ``horizon`` are removed on the way: no publication
    that can still come, replays included, has a seq below it.
    """
    grid, counters = grids
    records = views_of(arrays.records)
    n_found = 0
    for row in range(start, len(probes.seq)):
        lon, lat = probes.lon[row], probes.lat[row]
        column, line = column_of(grid, lon), row_of(grid, lat)
        x, y = (lon - grid.min_lon) * grid.columns_per_degree, (lat - grid.min_lat) * grid.rows_per_degree
        first, stop = probes.term_offsets[row], probes.term_offsets[row + 1]
        missing = ~bloom_of(probes.terms, first, stop)
        n_before = n_found
        n_candidates = n_lookups = 0
        for level in range(grid.bits + 1):
            if arrays.head[LEVELS + level] == 0:
                continue
            seed = cell_seed(level, column >> level, line >> level)
            at_x, at_y = quantise(x, level, column >> level), quantise(y, level, line >> level)
            for i in range(first, stop):
                if probes.owned[i] == 0:
                    continue
                n_lookups += 1
                place = find_list(arrays.list_table, cell_term_key(seed, probes.terms[i]))
                entry = arrays.list_table[2 * place + 1]
                position = signed(entry >> np.uint64(32))
                list_end = position + signed(entry & LENGTH)
                n_candidates += list_end - position
                while position < list_end:
                    word = arrays.postings[2 * position + 1]
                    if (
                        arrays.postings[2 * position] & missing != np.uint64(0)
                        or at_x < signed(word & np.uint64(255))
                        or at_x > signed(word >> np.uint64(8) & np.uint64(255))
                        or at_y < signed(word >> np.uint64(16) & np.uint64(255))
                        or at_y > signed(word >> np.uint64(24) & np.uint64(255))
                    ):
                        position += 1
                        continue
                    clause = signed(word >> np.uint64(32))
                    record = start_of(records, clause)
                    if records.ints[record + SEQ_TO] <= horizon:
                        remove_posting(arrays, place, position)
                        list_end -= 1
                        continue
                    if verify(records, record, clause, probes, row, i):
                        if n_found == len(found.publication):
                            return row, n_before
                        found.publication[n_found] = row
                        found.subscription[n_found] = records.ints[record + SEQ_FROM]
                        n_found += 1
                    position += 1
        cell = row_of(counters, lat) << counters.bits | column_of(counters, lon)
        arrays.cell_publications[cell] += 1
        arrays.cell_lookups[cell] += n_lookups
        arrays.cell_candidates[cell] += n_candidates
        arrays.cell_matches[cell] += n_found - n_before
    return len(probes.seq), n_found
