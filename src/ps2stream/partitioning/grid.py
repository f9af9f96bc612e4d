"""The grid partitioner (space; SpatialHadoop): equal cells, dealt out by their load."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s, Int32s
from ps2stream.kernels import kernel
from ps2stream.model.space import NO_LIMIT, WORLD, Grid, column_of, cover, row_of
from ps2stream.partitioning.plan import Plan, Sample, owners_of_cells
from ps2stream.text.frequencies import count_terms


class GridPartitioner:
    """Divide the space of the sample into ``2**bits x 2**bits`` cells of whole workers.

    The grid spans where nearly all publications are, not their bounding box: one stray
    point on the other side of the world would otherwise leave a city in a single cell.
    What lies outside is clamped to the outer cells, which is as correct and only less even.
    """

    name = "grid"

    def __init__(self, bits: int = 6, tail: float = 0.005) -> None:
        self.bits = bits
        self.tail = tail

    def plan(self, sample: Sample, n_workers: int, *, version: int = 1, seed: int = 0) -> Plan:
        grid = Grid.over(dense_bounds(sample, self.tail), self.bits)
        load = cell_loads(grid, sample.lon, sample.lat, sample.bounds)
        h1 = owners_of_cells(deal_out(load, n_workers))
        return Plan(version, self.name, n_workers, grid, h1, count_terms(sample.terms))


def dense_bounds(sample: Sample, tail: float) -> tuple[float, float, float, float]:
    """Return the rectangle that holds all but ``tail`` of the publications on each side."""
    if not sample.n_publications:
        return WORLD
    west, east = np.quantile(sample.lon, [tail, 1 - tail])
    south, north = np.quantile(sample.lat, [tail, 1 - tail])
    return float(west), float(south), float(east), float(north)


@kernel
def cell_loads(grid: Grid, lon: Float64s, lat: Float64s, bounds: Float64s) -> Float64s:
    """Estimate the load of every cell by Definition 1 with all constants 1."""
    n_cells = 1 << (2 * grid.bits)
    publications = np.zeros(n_cells)
    subscriptions = np.zeros(n_cells)
    last = (1 << grid.bits) - 1
    for i in range(len(lon)):
        row = row_of(grid, lat[i])
        column = column_of(grid, lon[i])
        publications[row << grid.bits | column] += 1.0
    for slot in range(len(bounds) // 4):
        place = cover(grid, bounds, slot, NO_LIMIT)
        for r in range(place.n_rows):
            for c in range(place.n_columns):
                subscriptions[(place.row + r) << grid.bits | ((place.column + c) & last)] += 1.0
    return publications * subscriptions + publications + subscriptions


def deal_out(load: Float64s, n_workers: int) -> Int32s:
    """Give each cell, heaviest first, to the worker with the least load; empty ones in turn."""
    owners = np.empty(len(load), np.int32)
    totals = np.zeros(n_workers)
    heavy = np.argsort(-load, kind="stable")
    n_loaded = int(np.count_nonzero(load))
    for cell in heavy[:n_loaded]:
        worker = int(totals.argmin())
        owners[cell] = worker
        totals[worker] += load[cell]
    lightest = np.argsort(totals, kind="stable")
    owners[heavy[n_loaded:]] = np.resize(lightest, len(load) - n_loaded)
    return owners
