"""The R-tree partitioner (space; SpatialHadoop's STR): leaves of equal numbers, dealt out by load.

Eldawy and Mokbel, SpatialHadoop: A MapReduce framework for spatial data, ICDE 2015. Sort-Tile-Recursive
packing: publications sorted by x are cut into S slices, those of a slice sorted by y into S
runs, with S = ceil(sqrt(leaves)). As a partitioning the leaves are not the tight rectangles of an
R-tree but disjoint tiles that fill the map, the outer ones open to the outside.
"""

from __future__ import annotations

import math

import numpy as np

from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import DENSE, PLAN_BITS, all_held, deal_out, dense_bounds
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, load_of, rates_of
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.partitioning.sample import Cells, Sample, cells_of, digest_of
from ps2stream.partitioning.space_split import Cut, Held, count_held, cut_box


class RTreePartitioner:
    """Pack publications into tiles of cells and give every worker about ``leaves_per_worker`` of them."""

    name = "r-tree"

    def __init__(
        self,
        costs: Costs = STANDARD_COSTS,
        leaves_per_worker: int = 8,
        bits: int = PLAN_BITS,
        dense: float = DENSE,
    ) -> None:
        self.costs = costs
        self.leaves_per_worker = leaves_per_worker
        self.bits = bits
        self.dense = dense

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.dense), self.bits)
        cells = cells_of(grid, digest.lon, digest.lat, digest.bounds)
        leaves = tiles(cells, all_held(grid, digest), self.leaves_per_worker * n_workers)
        rates = rates_of(self.costs, digest.live_weight, digest.churn_weight)
        loads = [load_of(rates, *map(float, count_held(digest, leaf))) for leaf in leaves]
        owners = np.empty((cells.grid_columns, cells.grid_columns), np.int32)
        for leaf, worker in zip(leaves, deal_out(np.array(loads), n_workers), strict=True):
            box = leaf.box
            owners[box.row : box.row_stop, box.column : box.column_stop] = worker
        h1 = owners_of_cells(owners.reshape(-1))
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies)


def tiles(cells: Cells, held: Held, n_leaves: int) -> list[Held]:
    """Cut a box into slices and these into runs; hot cells cannot be cut, so there may be fewer."""
    n = math.ceil(math.sqrt(n_leaves))
    return [run for part in _cut_up(cells, held, 0, n) for run in _cut_up(cells, part, 1, n)]


def even_lines(cells: Cells, held: Held, axis: int, n_parts: int) -> list[int]:
    """Find the lines of the grid nearest to the quantiles of a box's publications.

    Counting by columns (axis 0) or rows (axis 1) does what sorting would. A line without publications on
    both sides is left out; where there are none at all, lines are evenly spaced.
    """
    first, stop = held.box[axis], held.box[axis + 2]
    at = (cells.column, cells.row)[axis][held.publications] - first
    along = np.bincount(at, minlength=stop - first) if len(at) else np.ones(stop - first, np.int64)
    below = along.cumsum()
    n = below[-1]
    inner = np.flatnonzero((below > 0) & (below < n))
    if not len(inner):
        return []
    wanted = n * np.arange(1, n_parts) / n_parts
    nearest = np.abs(below[inner, np.newaxis] - wanted).argmin(axis=0)
    return [first + int(line) + 1 for line in np.unique(inner[nearest])]


def _cut_up(cells: Cells, held: Held, axis: int, n_parts: int) -> list[Held]:
    parts = []
    for line in even_lines(cells, held, axis, n_parts):
        low, held = cut_box(cells, held, Cut(axis, line))
        parts.append(low)
    return [*parts, held]
