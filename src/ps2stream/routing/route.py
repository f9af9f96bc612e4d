"""Kernels that read grid^t: find the workers of publications (Sec. IV-C)."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Flags, Float64s, Int32s, Int64s, Ragged, UInt64s
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.model.space import Grid, cell_seed, cell_term_key, column_of, row_of
from ps2stream.partitioning.plan import H1, default_slot, find_term
from ps2stream.routing.layout import H2, LEVELS
from ps2stream.routing.update import count_of, short_key, term_key

#: Owner of a term that no live subscription is posted under.
NOBODY = -1
#: Until it is looked up, the owner of a term that is live.
_SOMEBODY = 0
#: Publications that are looked up together.
_BLOCK = 16


@kernel
def mark_asked(h2: H2, terms: Ragged, asked: Flags) -> None:
    """Mark the publications that have a term of a live subscription, wherever that is; unmark none."""
    for publication in range(len(asked)):
        for i in range(terms.offsets[publication], terms.offsets[publication + 1]):
            if count_of(h2.terms, term_key(terms.values[i])) > 0:
                asked[publication] = True
                break


@kernel
def find_owners(
    h2: H2, h1: H1, grids: tuple[Grid, Grid], points: tuple[Float64s, Float64s], terms: Ragged, owners: Int32s
) -> None:
    """Write for every term of every publication the worker that has to look it up, or NOBODY.

    ``grids``: of H2 and of H1.
    """
    h2_grid, h1_grid = grids
    _mark_live(h2, h2_grid, points, terms.offsets, terms.values, owners)
    _name_owners(h1, h1_grid, points, terms.offsets, terms.values, owners)


@kernel
def _mark_live(
    h2: H2, grid: Grid, points: tuple[Float64s, Float64s], offsets: Int64s, terms: UInt64s, owners: Int32s
) -> None:
    """Write for every term of every publication whether a live subscription is posted under it there.

    ``grid`` is that of H2. A block of publications at a time: H2 is far larger than any cache, so the slots
    of all terms of a block are asked for before the first one is read.
    """
    lon, lat = points
    keys = np.empty(_most_terms(offsets), np.uint64)
    owners[:] = NOBODY
    for start in range(0, len(lon), _BLOCK):
        stop = min(start + _BLOCK, len(lon))
        first = offsets[start]
        for level in range(grid.bits + 1):
            if h2.head[LEVELS + level] == 0:
                continue
            for publication in range(start, stop):
                if offsets[publication] == offsets[publication + 1]:
                    continue
                column, row = column_of(grid, lon[publication]), row_of(grid, lat[publication])
                seed = cell_seed(level, column >> level, row >> level)
                for i in range(offsets[publication], offsets[publication + 1]):
                    keys[i - first] = key = short_key(cell_term_key(seed, terms[i]))
                    prefetch(h2.cells, signed(key & np.uint64(len(h2.cells) - 1)))
            for i in range(first, offsets[stop]):
                if owners[i] == NOBODY and count_of(h2.cells, keys[i - first]) > 0:
                    owners[i] = _SOMEBODY


@kernel
def _most_terms(offsets: Int64s) -> int:
    """Count the terms of the block that has most of them."""
    most = 0
    n = len(offsets) - 1
    for start in range(0, n, _BLOCK):
        most = max(most, offsets[min(start + _BLOCK, n)] - offsets[start])
    return most


@kernel
def _name_owners(
    h1: H1, grid: Grid, points: tuple[Float64s, Float64s], offsets: Int64s, terms: UInt64s, owners: Int32s
) -> None:
    """Write for every live term the worker that has to look it up, as ``partitioning.plan.owner`` says.

    ``grid`` is that of H1. All of H1 is passed once, not with every term: numba counts the references of
    each of its arrays in every call, which took longer than the search.
    """
    lon, lat = points
    table_terms, table_workers, defaults = h1.table_terms, h1.table_workers, h1.default_workers
    n_tables = len(h1.table_offsets) - 1
    for publication in range(len(lon)):
        if offsets[publication] == offsets[publication + 1]:
            continue
        table = h1.cell_owner[row_of(grid, lat[publication]) << grid.bits | column_of(grid, lon[publication])]
        renamed = -1 - table - n_tables
        listed = h1.renamed_tables[renamed] if renamed >= 0 else max(-1 - table, 0)
        for i in range(offsets[publication], offsets[publication + 1]):
            if owners[i] == NOBODY:
                continue
            if table >= 0:
                owners[i] = table
                continue
            low, stop = h1.table_offsets[listed], h1.table_offsets[listed + 1]
            slot = find_term(table_terms, low, stop, terms[i])
            if slot < stop and table_terms[slot] == terms[i]:
                worker = table_workers[slot]
            else:
                low, stop = h1.default_offsets[listed], h1.default_offsets[listed + 1]
                worker = defaults[default_slot(terms[i], low, stop)]
            owners[i] = h1.renames[renamed, worker] if renamed >= 0 else worker


@kernel
def fan_out(offsets: Int64s, owners: Int32s, n_workers: int) -> tuple[Int64s, Int64s, int]:
    """List the publications of every worker; return (rows, offsets by worker, number that nobody gets)."""
    sent_rows, sent_to = np.empty(owners.size, np.int64), np.empty(owners.size, np.int32)
    starts = np.zeros(n_workers + 1, np.int64)
    newest = np.full(n_workers, -1, np.int64)
    n_sent = n_discarded = 0
    for publication in range(len(offsets) - 1):
        n_before = n_sent
        for version in range(len(owners)):
            for i in range(offsets[publication], offsets[publication + 1]):
                worker = owners[version, i]
                if worker != NOBODY and newest[worker] != publication:
                    newest[worker] = publication
                    starts[worker + 1] += 1
                    sent_rows[n_sent], sent_to[n_sent] = publication, worker
                    n_sent += 1
        n_discarded += n_sent == n_before
    for worker in range(n_workers):
        starts[worker + 1] += starts[worker]
    rows = np.empty(n_sent, np.int64)
    ends = starts[:-1].copy()
    for i in range(n_sent):
        rows[ends[sent_to[i]]] = sent_rows[i]
        ends[sent_to[i]] += 1
    return rows, starts, n_discarded
