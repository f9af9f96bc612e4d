"""Points, regions and the grids that divide the world.

A grid has ``2**bits`` columns and rows of half-open cells over its bounds; the last column
and row are closed and everything beyond the bounds is clamped to the outer cells, so that
every point of the world lies in exactly one cell. Level ``l`` of the same grid joins
``2**l x 2**l`` cells; the top level is one cell. The column of a longitude is a monotone
function of it even after rounding, which is all that correctness needs: a point inside a
region lies in a cell between the cells of the region's corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream.errors import RegionError
from ps2stream.kernels import kernel

MIN_LON, MAX_LON = -180.0, 180.0
MIN_LAT, MAX_LAT = -90.0, 90.0


def check_point(lon: float | None, lat: float | None) -> str | None:
    """Return why a point is not on the map, or None."""
    for name, value, bound in (("lat", lat, MAX_LAT), ("lon", lon, MAX_LON)):
        if value is None:
            return f"{name} is missing"
        if not math.isfinite(value) or not -bound <= value <= bound:
            return f"{name} must lie in [{-bound:g}, {bound:g}]; got {value}"
    return None


@dataclass(frozen=True, slots=True)
class Region:
    """A closed rectangle in WGS84 degrees; ``min_lon > max_lon`` crosses the antimeridian."""

    min_lon: float
    min_lat: float
    max_lon: float
    max_lat: float

    def __post_init__(self) -> None:
        reason = check_region(self.min_lon, self.min_lat, self.max_lon, self.max_lat)
        if reason:
            raise RegionError(reason)

    def contains(self, lon: float, lat: float) -> bool:
        if not self.min_lat <= lat <= self.max_lat:
            return False
        if self.min_lon <= self.max_lon:
            return self.min_lon <= lon <= self.max_lon
        return lon >= self.min_lon or lon <= self.max_lon


def check_region(
    min_lon: float | None, min_lat: float | None, max_lon: float | None, max_lat: float | None
) -> str | None:
    """Return what is wrong with the corners of a region, or None."""
    corners = (
        ("min_lon", min_lon, MAX_LON),
        ("min_lat", min_lat, MAX_LAT),
        ("max_lon", max_lon, MAX_LON),
        ("max_lat", max_lat, MAX_LAT),
    )
    for name, value, bound in corners:
        if value is None:
            return f"{name} of the region is missing"
        if not math.isfinite(value) or not -bound <= value <= bound:
            return f"{name} of the region must lie in [{-bound:g}, {bound:g}]; got {value}"
    assert min_lat is not None
    assert max_lat is not None
    if min_lat > max_lat:
        return f"the region must have min_lat <= max_lat; got {min_lat} > {max_lat}"
    return None


class Grid(NamedTuple):
    """``2**bits`` columns and rows over a rectangle; kernels take it as it is."""

    min_lon: float
    min_lat: float
    columns_per_degree: float
    rows_per_degree: float
    bits: int

    @classmethod
    def over(cls, bounds: tuple[float, float, float, float], bits: int) -> Grid:
        """Lay a grid over (min_lon, min_lat, max_lon, max_lat); a bound without extent gets one."""
        min_lon, min_lat, max_lon, max_lat = bounds
        n = float(1 << bits)
        width = max(max_lon - min_lon, 1e-6)
        height = max(max_lat - min_lat, 1e-6)
        return cls(float(min_lon), float(min_lat), n / width, n / height, bits)

    @property
    def n_cells(self) -> int:
        return 1 << (2 * self.bits)

    def finer(self, levels: int) -> Grid:
        """Return the grid whose level ``levels`` is this one; the cells of a point are the same by either."""
        n = float(1 << levels)
        return Grid(
            self.min_lon,
            self.min_lat,
            self.columns_per_degree * n,
            self.rows_per_degree * n,
            self.bits + levels,
        )

    def coarser(self, bits: int) -> Grid:
        """Return a grid of at most ``2**bits`` columns and rows over the same rectangle."""
        if bits >= self.bits:
            return self
        n = float(1 << (self.bits - bits))
        return Grid(self.min_lon, self.min_lat, self.columns_per_degree / n, self.rows_per_degree / n, bits)

    def cell(self, lon: float, lat: float) -> int:
        """Return the number of the finest cell that holds a point."""
        return int(row_of(self, lat) << self.bits | column_of(self, lon))

    def bounds_of(self, cell: int) -> tuple[float, float, float, float]:
        """Return (min_lon, min_lat, max_lon, max_lat) of a cell; outer cells extend to the world's edge."""
        last = (1 << self.bits) - 1
        column, row = cell & last, cell >> self.bits
        return (
            MIN_LON if column == 0 else self.min_lon + column / self.columns_per_degree,
            MIN_LAT if row == 0 else self.min_lat + row / self.rows_per_degree,
            MAX_LON if column == last else self.min_lon + (column + 1) / self.columns_per_degree,
            MAX_LAT if row == last else self.min_lat + (row + 1) / self.rows_per_degree,
        )


WORLD = (MIN_LON, MIN_LAT, MAX_LON, MAX_LAT)


#: As ``max_cells`` it keeps a cover on the finest level, whatever the size of the region.
NO_LIMIT = 1 << 62


class Cover(NamedTuple):
    """The cells of one level that a region touches; columns wrap round after the last one."""

    level: int
    column: int
    n_columns: int
    row: int
    n_rows: int


@kernel
def _clamped(position: float, bits: int) -> int:
    last = (1 << bits) - 1
    if position <= 0.0:
        return 0
    if position >= last:
        return last
    return int(position)


@kernel
def column_of(grid: Grid, lon: float) -> int:
    return _clamped((lon - grid.min_lon) * grid.columns_per_degree, grid.bits)


@kernel
def row_of(grid: Grid, lat: float) -> int:
    return _clamped((lat - grid.min_lat) * grid.rows_per_degree, grid.bits)


@kernel
def contains(bounds: Float64s, at: int, lon: float, lat: float) -> bool:
    """Say whether the region at ``bounds[at : at + 4]`` holds a point."""
    if lat < bounds[at + 1] or lat > bounds[at + 3]:
        return False
    if bounds[at] <= bounds[at + 2]:
        return bool(bounds[at] <= lon <= bounds[at + 2])
    return bool(lon >= bounds[at] or lon <= bounds[at + 2])


@kernel
def cover(grid: Grid, bounds: Float64s, at: int, max_cells: int, level: int = 0) -> Cover:
    """Find the finest level, from ``level`` on, on which a region touches at most ``max_cells`` cells.

    The region is ``bounds[at : at + 4]``.
    The paper posts a region into every cell it overlaps; a region the size of a continent
    would then be stored millions of times. Coarser levels bound that, at the price of one
    more look-up a term for each level in use. What touches all cells of a coarser level is put on the top
    level, which is one cell.
    """
    column_a, column_b = column_of(grid, bounds[at]), column_of(grid, bounds[at + 2])
    row_a, row_b = row_of(grid, bounds[at + 1]), row_of(grid, bounds[at + 3])
    wraps = bounds[at] > bounds[at + 2]
    finest = level
    while True:
        n = 1 << (grid.bits - level)
        first, last = column_a >> level, column_b >> level
        n_columns = last - first + 1
        if wraps:
            if first > last:
                n_columns = n - first + last + 1
            else:  # both ends in one column, or the ends overlap: all of them, each once
                first, n_columns = 0, n
        n_rows = (row_b >> level) - (row_a >> level) + 1
        if n_columns * n_rows <= max_cells or level == grid.bits:
            break
        level += 1
    if level > finest and n_columns * n_rows == n * n:
        return Cover(grid.bits, 0, 1, 0, 1)
    return Cover(level, first, n_columns, row_a >> level, n_rows)


@kernel
def mix(value: np.uint64) -> np.uint64:
    """Scatter 64 bits one to one (the finaliser of MurmurHash3)."""
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xFF51AFD7ED558CCD)
    value ^= value >> np.uint64(33)
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    value ^= value >> np.uint64(33)
    return value


@kernel
def cell_seed(level: int, column: int, row: int) -> np.uint64:
    """Turn a cell of a level into 64 bits to be combined with a term by :func:`cell_term_key`."""
    return mix(np.uint64(level) << np.uint64(58) | np.uint64(row) << np.uint64(29) | np.uint64(column))


@kernel
def cell_term_key(seed: np.uint64, term: np.uint64) -> np.uint64:
    """Key a (cell, term) pair; within one cell different terms get different keys. Never 0."""
    key = mix(seed ^ term)
    return key if key != np.uint64(0) else np.uint64(1)
