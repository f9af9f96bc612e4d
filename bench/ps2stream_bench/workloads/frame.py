"""A rectangle of the earth, cut into cells of some degrees."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Float64s, Int64s


class Frame(NamedTuple):
    """A rectangle in degrees, edges included; its cells are numbered row by row from the south-west."""

    min_lon: float
    min_lat: float
    max_lon: float
    max_lat: float

    def holds(self, lon: Float64s, lat: Float64s) -> npt.NDArray[np.bool_]:
        """Say which points lie in the frame."""
        in_lon = (lon >= self.min_lon) & (lon <= self.max_lon)
        return in_lon & (lat >= self.min_lat) & (lat <= self.max_lat)

    def n_cells(self, degrees: float) -> int:
        """Count the cells of this many degrees that cover the frame."""
        n_columns, n_rows = self._cuts(degrees)
        return n_columns * n_rows

    def cell_of(self, lon: Float64s, lat: Float64s, degrees: float) -> Int64s:
        """Return the cells of points; those outside belong to the nearest."""
        n_columns, n_rows = self._cuts(degrees)
        column = np.clip(((lon - self.min_lon) / degrees).astype(np.int64), 0, n_columns - 1)
        row = np.clip(((lat - self.min_lat) / degrees).astype(np.int64), 0, n_rows - 1)
        return row * n_columns + column

    def _cuts(self, degrees: float) -> tuple[int, int]:
        width, height = self.max_lon - self.min_lon, self.max_lat - self.min_lat
        return max(math.ceil(width / degrees), 1), max(math.ceil(height / degrees), 1)
