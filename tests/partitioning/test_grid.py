"""The grid partitioner deals cells out evenly, where the publications are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.scan import cells_of
from ps2stream.arrays import Ragged, frozen
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream.partitioning.grid import GridPartitioner, cell_loads, deal_out, dense_bounds
from ps2stream.partitioning.plan import Sample
from strategies import points, regions

pytestmark = pytest.mark.kernel


def _points(lon: list[float], lat: list[float]) -> Sample:
    none = np.zeros(1, np.int64)
    terms = Ragged(np.empty(0, np.uint64), np.zeros(len(lon) + 1, np.int64))
    columns = (frozen(np.array(lon)), frozen(np.array(lat)), terms)
    return Sample(*columns, frozen(np.empty(0)), frozen(none), frozen(none), frozen(np.empty(0, np.uint64)))


def test_a_stray_point_does_not_stretch_the_grid() -> None:
    rng = np.random.default_rng(2)
    lon, lat = rng.uniform(10, 11, 999).tolist(), rng.uniform(50, 51, 999).tolist()
    west, south, east, north = dense_bounds(_points([*lon, -170.0], [*lat, -80.0]), 0.005)
    assert 10.0 <= west < east <= 11.0
    assert 50.0 <= south < north <= 51.0


def test_without_publications_the_grid_spans_the_world() -> None:
    assert dense_bounds(_points([], []), 0.005) == WORLD


@given(st.lists(points, max_size=15), st.lists(regions, max_size=8))
@settings(max_examples=25, deadline=None)
def test_a_cell_costs_its_publications_its_subscriptions_and_their_product(
    places: list[tuple[float, float]], boxes: list[tuple[float, float, float, float]]
) -> None:
    grid = Grid.over((-50.0, -50.0, 50.0, 50.0), 2)
    publications, subscriptions = np.zeros(grid.n_cells), np.zeros(grid.n_cells)
    for lon, lat in places:
        publications[grid.cell(lon, lat)] += 1
    for box in boxes:
        for cell in cells_of(grid, Region(*box)):
            subscriptions[cell] += 1
    lons, lats = (frozen(np.array([place[i] for place in places], np.float64)) for i in range(2))
    flat = frozen(np.array(boxes, np.float64).reshape(-1))
    expected = publications * subscriptions + publications + subscriptions
    np.testing.assert_array_equal(cell_loads(grid, lons, lats, flat), expected)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=64), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_no_worker_has_more_than_the_lightest_and_one_cell(loads: list[int], n_workers: int) -> None:
    load = np.array(loads, np.float64)
    owners = deal_out(load, n_workers)
    totals = np.bincount(owners, load, n_workers)
    assert totals.max() <= totals.min() + load.max()
    if not load.any():
        cells = np.bincount(owners, minlength=n_workers)
        assert cells.max() - cells.min() <= 1


def test_fewer_cells_than_workers_leave_workers_without_one() -> None:
    plan = GridPartitioner(bits=1).plan(_points([0.0, 1.0], [0.0, 1.0]), 16)
    assert len(set(plan.h1.cell_owner.tolist())) == 4
