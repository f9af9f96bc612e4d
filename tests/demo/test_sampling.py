from __future__ import annotations

import numpy as np
import pytest

from ps2stream.demo.sampling import Weighted, WeightedRows


def test_draws_follow_the_weights() -> None:
    weights = np.array([5.0, 0.0, 3.0, 2.0])
    drawn = Weighted(weights, n_cells=1 << 12).draw(np.random.default_rng(0), 100_000)
    assert np.bincount(drawn, minlength=4) / 100_000 == pytest.approx(weights / 10, abs=0.01)


def test_each_row_draws_by_its_own_weights() -> None:
    draws = WeightedRows(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 3.0]]))
    rows = np.repeat(np.arange(3), 20_000)
    drawn = draws.draw(np.random.default_rng(0), rows)
    shares = [drawn[rows == row].mean() for row in range(3)]
    assert shares == pytest.approx([0.0, 1.0, 0.75], abs=0.02)


def test_a_row_of_many_small_weights_fills_its_cells_exactly() -> None:
    draws = WeightedRows(np.full((7, 40), 1 / 3), n_cells=1 << 10)
    drawn = draws.draw(np.random.default_rng(0), np.repeat(np.arange(7), 5_000))
    assert drawn.min() == 0
    assert drawn.max() == 39
