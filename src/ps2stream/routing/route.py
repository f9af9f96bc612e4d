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
    h2: H2, h1: H1, grid: Grid, lon: Float64s, lat: Float64s, offsets: Int64s, terms: UInt64s, owners: Int32s
) -> None:
    """Write for every term of every publication the worker that has to look it up, or NOBODY."""
    for publication in range(len(lon)):
        column, row = column_of(grid, lon[publication]), row_of(grid, lat[publication])
        cell = row << grid.bits | column
        for i in range(offsets[publication], offsets[publication + 1]):
            if is_live(h2, grid, column, row, terms[i]):
                owners[i] = owner(h1, cell, terms[i])
            else:
                owners[i] = NOBODY


@kernel
def fan_out(offsets: Int64s, owners: Int32s, n_workers: int, counts: Int64s) -> None:
    """Count the publications that each worker gets; ``counts[n_workers]`` are discarded."""
    seen = np.full(n_workers, -1, np.int64)
    for publication in range(len(offsets) - 1):
        discarded = True
        for i in range(offsets[publication], offsets[publication + 1]):
            worker = owners[i]
            if worker != NOBODY:
                discarded = False
                if seen[worker] != publication:
                    seen[worker] = publication
                    counts[worker] += 1
        if discarded:
            counts[n_workers] += 1


@kernel
def rows_of_worker(offsets: Int64s, owners: Int32s, worker: int, rows: Int64s) -> int:
    """List the publications that a worker gets; return the number of their terms."""
    n_rows, n_terms = 0, 0
    for publication in range(len(offsets) - 1):
        for i in range(offsets[publication], offsets[publication + 1]):
            if owners[i] == worker:
                rows[n_rows] = publication
                n_rows += 1
                n_terms += offsets[publication + 1] - offsets[publication]
                break
    return n_terms
