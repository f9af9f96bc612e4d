"""The grid partitioner (space; SpatialHadoop): equal cells, dealt out by their load.

Eldawy and Mokbel, SpatialHadoop: A MapReduce framework for spatial data, ICDE 2015. What is
counted here on the cells of a grid and how loads are dealt out serves the other baselines as well.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s
from ps2stream.kernels import kernel
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.kdt_tree import Box
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, Rates, rates_of
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.partitioning.sample import Cells, Digest, Sample, cells_of, digest_of
from ps2stream.partitioning.space_split import Held, weights_of

#: Columns and rows, as a power of two, of the grid that plans are flattened to.
PLAN_BITS = 8
#: Share of the publications that a plan's grid spans in either direction; the others lie in its outer cells.
DENSE = 0.9


class GridPartitioner:
    """Divide the space of the sample into ``2**bits x 2**bits`` cells of whole workers.

    The paper found 2^6 x 2^6 cells to be best (Sec. VI-B). The grid spans where nearly all
    publications are, not their bounding box: one stray point on the other side of the world
    would otherwise leave a city in a single cell. What lies outside is clamped to the outer
    cells, which is as correct and only less even.
    """

    name = "grid"

    def __init__(self, costs: Costs = STANDARD_COSTS, bits: int = 6, dense: float = DENSE) -> None:
        self.costs = costs
        self.bits = bits
        self.dense = dense

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.dense), self.bits)
        rates = rates_of(self.costs, digest.live_weight, digest.churn_weight)
        h1 = owners_of_cells(deal_out(cell_loads(grid, digest, rates), n_workers))
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies)


def dense_bounds(sample: Sample | Digest, share: float) -> tuple[float, float, float, float]:
    """Return the shortest ranges of longitudes and latitudes that each hold a share of the publications.

    A stream about one country has some of its publications anywhere; quantiles would still span the world.
    """
    if not sample.n_publications:
        return WORLD
    west, east = _shortest_range(sample.lon, share)
    south, north = _shortest_range(sample.lat, share)
    return west, south, east, north


def _shortest_range(values: Float64s, share: float) -> tuple[float, float]:
    ordered = np.sort(values)
    n = max(1, math.ceil(share * len(ordered)))
    first = int(np.argmin(ordered[n - 1 :] - ordered[: len(ordered) - n + 1]))
    return float(ordered[first]), float(ordered[first + n - 1])


def all_held(grid: Grid, digest: Digest) -> Held:
    """Return the box of all cells with all of the sample in it."""
    side = 1 << grid.bits
    return Held(Box(0, 0, side, side), np.arange(digest.n_publications), np.arange(digest.n_subscriptions))


class CellCounts(NamedTuple):
    """How many publications lie in each cell, and how many regions touch it; by row, then column."""

    publications: Int64s
    subscriptions: Int64s


def count_cells(cells: Cells) -> CellCounts:
    """Count publications and regions a cell, in a time that does not depend on the size of regions."""
    publications, changes = _count(cells)
    return CellCounts(publications, changes.cumsum(axis=0).cumsum(axis=1)[:-1, :-1])


@kernel
def _count(cells: Cells) -> tuple[Int64s, Int64s]:
    """Count publications, and by how much the number of regions changes from cell to cell on both axes."""
    n = cells.grid_columns
    publications = np.zeros((n, n), np.int64)
    for i in range(len(cells.column)):
        publications[cells.row[i], cells.column[i]] += 1
    changes = np.zeros((n + 1, n + 1), np.int64)
    for i in range(len(cells.first_column)):
        low, high = cells.first_row[i], cells.first_row[i] + cells.n_rows[i]
        first, stop = cells.first_column[i], cells.first_column[i] + cells.n_columns[i]
        _change(changes, low, high, first, min(stop, n))
        if stop > n:  # round the antimeridian
            _change(changes, low, high, 0, stop - n)
    return publications, changes


@kernel
def _change(changes: Int64s, low: int, high: int, first: int, stop: int) -> None:
    changes[low, first] += 1
    changes[low, stop] -= 1
    changes[high, first] -= 1
    changes[high, stop] += 1


def cell_loads(grid: Grid, digest: Digest, rates: Rates) -> Float64s:
    """Charge every cell, as if it had a worker of its own, by Definition 1."""
    cells = cells_of(grid, digest.lon, digest.lat, digest.bounds)
    counts = count_cells(cells)
    publications, subscriptions = counts.publications.reshape(-1), counts.subscriptions.reshape(-1)
    if rates.is_paper:
        arriving = publications * (rates.match * subscriptions + rates.publication)
    else:
        weights = weights_of(digest, all_held(grid, digest), rates.match, rates.publication)
        at = cells.row.astype(np.int64) << grid.bits | cells.column
        arriving = np.bincount(at, weights, grid.n_cells)
    return np.asarray(arriving + rates.subscription * subscriptions)


def deal_out(load: Float64s, n_workers: int) -> Int32s:
    """Give each load, heaviest first, to the worker with the least; those that are nothing in turn."""
    owners = np.empty(len(load), np.int32)
    totals = np.zeros(n_workers)
    heavy = np.argsort(-load, kind="stable")
    n_loaded = int(np.count_nonzero(load))
    for i in heavy[:n_loaded]:
        worker = int(totals.argmin())
        owners[i] = worker
        totals[worker] += load[i]
    lightest = np.argsort(totals, kind="stable")
    owners[heavy[n_loaded:]] = np.resize(lightest, len(load) - n_loaded)
    return owners
