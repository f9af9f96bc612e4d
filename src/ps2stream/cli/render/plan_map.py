"""The map of a plan as numbers: what area it shows, whose each pixel is, where the borders run."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s
from ps2stream.model.space import MAX_LAT, MAX_LON
from ps2stream.partitioning.grid import dense_bounds
from ps2stream.partitioning.plan import Plan, workers_of
from ps2stream.partitioning.sample import Sample

Line = list[tuple[float, float]]

#: Share of the publications that the picture shows in either direction; the strays are left out.
_SHOWN = 0.99
_MARGIN = 0.04
_LEAST_DEGREES = 0.1
#: Height over width of a map that reads well.
_FLATTEST, _TALLEST = 0.35, 0.75

_PIXELS = 1_200
_STRIPE_PIXELS = 14
_STRIPE_GAP_PIXELS = 3
_GAP_GREY = 0.25


class Area(NamedTuple):
    """What a map shows, in degrees."""

    west: float
    south: float
    east: float
    north: float

    @property
    def aspect(self) -> float:
        """Return how much longer a degree of latitude is drawn than one of longitude."""
        middle = math.radians((self.south + self.north) / 2)
        return min(1 / max(math.cos(middle), 1e-9), 2.5)

    @property
    def shape(self) -> float:
        """Return the height of the map for a width of 1."""
        return (self.north - self.south) * self.aspect / (self.east - self.west)


def area_of(sample: Sample) -> Area:
    """Return where nearly all publications are, with a margin, and widened to a shape that reads well."""
    west, south, east, north = dense_bounds(sample, _SHOWN)
    width = max((east - west) * (1 + 2 * _MARGIN), _LEAST_DEGREES)
    height = max((north - south) * (1 + 2 * _MARGIN), _LEAST_DEGREES)
    aspect = Area(west, south, east, north).aspect
    width = max(width, height * aspect / _TALLEST)
    height = max(height, width * _FLATTEST / aspect)
    west, east = _around((west + east) / 2, width, MAX_LON)
    south, north = _around((south + north) / 2, height, MAX_LAT)
    return Area(west, south, east, north)


def _around(middle: float, length: float, bound: float) -> tuple[float, float]:
    """Return an interval of a length around its middle, moved and cut so that it lies within the bound."""
    low = min(max(middle - length / 2, -bound), max(bound - length, -bound))
    return low, min(low + length, bound)


def picture_of(plan: Plan, sample: Sample, area: Area, colours: Float64s) -> Float64s:
    """Paint the map pixel by pixel, south first; ``colours`` has red, green and blue of each worker.

    Where a text table decides, stripes have the colours of the workers that share it.
    """
    width, height = _PIXELS, max(round(_PIXELS * area.shape), 1)
    x, y = np.arange(width), np.arange(height)[:, None]
    lon = area.west + (x + 0.5) * (area.east - area.west) / width
    lat = area.south + (y + 0.5) * (area.north - area.south) / height
    cell = _cells(plan, lon, lat)
    owner = plan.h1.cell_owner[cell]
    stripe, offset = np.divmod(x - y, _STRIPE_PIXELS)
    picture = colours[np.maximum(owner, 0)]
    for table in np.unique(-1 - owner[owner < 0]).tolist():
        workers = workers_of(plan.h1, table)
        here = owner == -1 - table
        picture[here] = colours[workers[stripe[here] % len(workers)]]
    picture[(owner < 0) & (offset < _STRIPE_GAP_PIXELS)] = _GAP_GREY
    return np.asarray(1 - _strength(plan, sample, cell)[..., None] * (1 - picture))


def _strength(plan: Plan, sample: Sample, cell: Int64s) -> Float64s:
    """Let colours be pale, so that points and lines stand out.

    Where cells were dealt out one by one, those where nobody publishes are still paler: whose they are means
    little, and without them the picture is confetti. Regions of many cells are left in one tone.
    """
    strength = np.full(cell.shape, 0.55)
    n = 1 << plan.grid.bits
    owner = plan.h1.cell_owner.reshape(n, n)
    if np.mean(owner[:, 1:] != owner[:, :-1]) > 0.5:
        is_used = np.zeros(plan.grid.n_cells, np.bool_)
        is_used[_cells(plan, sample.lon, sample.lat)] = True
        strength[~is_used[cell]] = 0.25
    return strength


def _cells(plan: Plan, lon: Float64s, lat: Float64s) -> Int64s:
    grid, last = plan.grid, (1 << plan.grid.bits) - 1
    column = np.clip((lon - grid.min_lon) * grid.columns_per_degree, 0, last).astype(np.int64)
    row = np.clip((lat - grid.min_lat) * grid.rows_per_degree, 0, last).astype(np.int64)
    return row << grid.bits | column


def borders_of(plan: Plan) -> list[Line]:
    """Return lines around the leaves of a plan's tree, or between cells of different owners."""
    if plan.tree is not None:
        boxes = [plan.tree.bounds_of(leaf.box) for leaf in plan.tree.leaves()]
        return [[(w, s), (e, s), (e, n), (w, n), (w, s)] for w, s, e, n in boxes]
    grid, n = plan.grid, 1 << plan.grid.bits
    owner = plan.h1.cell_owner.reshape(n, n)
    lines: list[Line] = []
    for row, column in np.argwhere(owner[:, 1:] != owner[:, :-1]).tolist():
        west, south, _, north = grid.bounds_of(row << grid.bits | (column + 1))
        lines.append([(west, south), (west, north)])
    for row, column in np.argwhere(owner[1:] != owner[:-1]).tolist():
        west, south, east, _ = grid.bounds_of((row + 1) << grid.bits | column)
        lines.append([(west, south), (east, south)])
    return lines
