"""Kernels that read grid^t: find the workers of publications (Sec. IV-C)."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.model.space import Grid, cell_seed, cell_term_key, column_of, row_of
from ps2stream.partitioning.plan import H1, owner
from ps2stream.routing.layout import H2, LEVELS
from ps2stream.routing.update import find_key

#: Owner of a term that no live subscription is posted under.
NOBODY = -1


@kernel
def is_live(h2: H2, grid: Grid, column: int, row: int, term: np.uint64) -> bool:
    """Say whether a live subscription is posted under a term in a cell, on any level."""
    for level in range(grid.bits + 1):
        if h2.head[LEVELS + level] > 0:
            seed = cell_seed(level, column >> level, row >> level)
            if h2.counts[find_key(h2.keys, cell_term_key(seed, term))] > 0:
                return True
    return False


@kernel
def route(
    h2: H2,
    h1: H1,
    grids: tuple[Grid, Grid],
    points: tuple[Float64s, Float64s],
    offsets: Int64s,
    terms: UInt64s,
    owners: Int32s,
) -> None:
    """Write for every term of every publication the worker that has to look it up, or NOBODY.

    ``grids`` are those of H1 and of H2.
    """
    (lon, lat), (h1_grid, grid) = points, grids
    for publication in range(len(lon)):
        column, row = column_of(grid, lon[publication]), row_of(grid, lat[publication])
        cell = row_of(h1_grid, lat[publication]) << h1_grid.bits | column_of(h1_grid, lon[publication])
        for i in range(offsets[publication], offsets[publication + 1]):
            if is_live(h2, grid, column, row, terms[i]):
                owners[i] = owner(h1, cell, terms[i])
            else:
                owners[i] = NOBODY


@kernel
def fan_out(offsets: Int64s, owners: Int32s, n_workers: int) -> tuple[Int64s, Int64s, int]:
    """List the publications of every worker; return (rows, offsets by worker, number that nobody gets)."""
    starts = np.zeros(n_workers + 1, np.int64)
    newest = np.full(n_workers, -1, np.int64)
    n_discarded = 0
    for publication in range(len(offsets) - 1):
        discarded = True
        for version in range(len(owners)):
            for i in range(offsets[publication], offsets[publication + 1]):
                worker = owners[version, i]
                if worker != NOBODY:
                    discarded = False
                    if newest[worker] != publication:
                        newest[worker] = publication
                        starts[worker + 1] += 1
        n_discarded += discarded
    for worker in range(n_workers):
        starts[worker + 1] += starts[worker]
    rows = np.empty(starts[n_workers], np.int64)
    ends = starts[:-1].copy()
    for publication in range(len(offsets) - 1):
        for version in range(len(owners)):
            for i in range(offsets[publication], offsets[publication + 1]):
                worker = owners[version, i]
                if worker == NOBODY:
                    continue
                if ends[worker] == starts[worker] or rows[ends[worker] - 1] != publication:
                    rows[ends[worker]] = publication
                    ends[worker] += 1
    return rows, starts, n_discarded
