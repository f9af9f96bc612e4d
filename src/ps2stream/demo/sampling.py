"""Draw indices by weight with one table look-up a draw.

A table holds each index as often as its share of the weight asks for. Bisecting the cumulated weights
is exact but misses the cache some fifteen times a draw; a text needs a dozen draws.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s


def _fill(weights: Float64s, n_cells: int) -> Int32s:
    edges = np.rint(np.cumsum(weights) / weights.sum() * n_cells).astype(np.int64)
    return np.repeat(np.arange(len(weights), dtype=np.int32), np.diff(edges, prepend=0))


class Weighted:
    """Draw indices in proportion to their weights; a share far below ``1 / n_cells`` may be rounded away."""

    def __init__(self, weights: Float64s, n_cells: int = 1 << 20) -> None:
        self._table = _fill(weights, n_cells)

    def draw(self, rng: np.random.Generator, n: int) -> Int32s:
        return self._table[rng.integers(0, len(self._table), n, dtype=np.uint32)]


class WeightedRows:
    """Draw, for each row asked for, an index in proportion to that row's weights."""

    def __init__(self, weights: Float64s, n_cells: int = 1 << 10) -> None:
        self._n_cells = n_cells
        self._table: Int32s = np.concatenate([_fill(row, n_cells) for row in weights])

    def draw(self, rng: np.random.Generator, rows: Int32s | Int64s) -> Int32s:
        cells = rng.integers(0, self._n_cells, len(rows), dtype=np.uint32)
        drawn: Int32s = self._table[rows.astype(np.int64) * self._n_cells + cells]
        return drawn
