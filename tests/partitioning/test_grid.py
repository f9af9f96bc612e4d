"""The grid partitioner deals cells out evenly, where the publications are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matching.scan import cells_of as cells_of_region
from partitioning.samples import make_sample
from ps2stream.arrays import Ragged, frozen
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream.partitioning.grid import (
    GridPartitioner,
    all_held,
    cell_loads,
    count_cells,
    deal_out,
    dense_bounds,
)
from ps2stream.partitioning.load import Rates
from ps2stream.partitioning.sample import Sample, cells_of, digest_of
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
    west, south, east, north = dense_bounds(_points([*lon, -170.0], [*lat, -80.0]), 0.9)
    assert 10.0 <= west < east <= 11.0
    assert 50.0 <= south < north <= 51.0


def test_dense_bounds_are_the_shortest_ranges_that_hold_the_share() -> None:
    lon = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 100.0, 170.0]
    lat = [-80.0, -70.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0]
    assert dense_bounds(_points(lon, lat), 0.8) == (0.0, 40.0, 7.0, 47.0)
    assert dense_bounds(_points(lon, lat), 1.0) == (0.0, -80.0, 170.0, 47.0)
    assert dense_bounds(_points([5.0], [6.0]), 0.8) == (5.0, 6.0, 5.0, 6.0)


def test_without_a_sample_the_grid_spans_the_world() -> None:
    assert dense_bounds(_points([], []), 0.9) == WORLD
    assert GridPartitioner().plan(make_sample(0, 0), 3).grid == Grid.over(WORLD, 6)


def test_without_publications_the_grid_lies_where_subscriptions_are() -> None:
    sample = make_sample(0, 50)
    west, south, east, north = dense_bounds(digest_of(sample), 1.0)
    assert (west, east) == (sample.bounds[0::4].min(), sample.bounds[0::4].max())
    assert (south, north) == (sample.bounds[1::4].min(), sample.bounds[1::4].max())


@given(st.lists(points, max_size=15), st.lists(regions, max_size=8))
@example([], [(30.0, -10.0, -30.0, 10.0), (179.0, 0.0, -179.0, 0.0)])
@settings(max_examples=40, deadline=None)
def test_cells_count_the_points_inside_and_the_regions_that_touch_them(
    points: list[tuple[float, float]], boxes: list[tuple[float, float, float, float]]
) -> None:
    grid = Grid.over((-50.0, -50.0, 50.0, 50.0), 2)
    publications, subscriptions = np.zeros(grid.n_cells), np.zeros(grid.n_cells)
    for lon, lat in points:
        publications[grid.cell(lon, lat)] += 1
    for box in boxes:
        for cell in cells_of_region(grid, Region(*box)):
            subscriptions[cell] += 1
    lons, lats = (frozen(np.array([point[i] for point in points], np.float64)) for i in range(2))
    flat = frozen(np.array(boxes, np.float64).reshape(-1))
    counts = count_cells(cells_of(grid, lons, lats, flat))
    np.testing.assert_array_equal(counts.publications.reshape(-1), publications)
    np.testing.assert_array_equal(counts.subscriptions.reshape(-1), subscriptions)


def test_by_the_papers_formula_a_cell_costs_every_pair_in_it() -> None:
    digest = digest_of(make_sample(60, 20))
    grid = Grid.over(dense_bounds(digest, 1.0), 2)
    expected = np.zeros(grid.n_cells)
    for cell in range(grid.n_cells):
        n_pubs = sum(grid.cell(*at) == cell for at in zip(digest.lon, digest.lat, strict=True))
        boxes = digest.bounds.reshape(-1, 4).tolist()
        n_subs = sum(cell in cells_of_region(grid, Region(*box)) for box in boxes)
        expected[cell] = 2.0 * n_pubs * n_subs + 3.0 * n_pubs + 5.0 * n_subs
    found = cell_loads(grid, digest, Rates(2.0, 3.0, 5.0, is_paper=True))
    np.testing.assert_allclose(found, expected)
    assert expected.any()


def test_by_candidates_a_cell_costs_what_its_publications_look_at() -> None:
    digest = digest_of(make_sample(60, 20))
    grid = Grid.over(dense_bounds(digest, 1.0), 2)
    expected = np.zeros(grid.n_cells)
    for row, at in enumerate(zip(digest.lon, digest.lat, strict=True)):
        reads = digest.reads.lists[digest.reads.offsets[row] : digest.reads.offsets[row + 1]].tolist()
        n_looks = sum(1 + digest.stands.lists.tolist().count(each) for each in reads)
        # One that nobody waits for is discarded.
        expected[grid.cell(*at)] += 2.0 * n_looks + 3.0 if n_looks else 0.0
    for box in digest.bounds.reshape(-1, 4).tolist():
        for cell in cells_of_region(grid, Region(*box)):
            expected[cell] += 5.0
    found = cell_loads(grid, digest, Rates(2.0, 3.0, 5.0, is_paper=False))
    np.testing.assert_allclose(found, expected)


def test_all_of_a_sample_is_in_the_box_of_all_cells() -> None:
    digest = digest_of(make_sample(7, 4))
    held = all_held(Grid.over(WORLD, 3), digest)
    assert held.box == (0, 0, 8, 8)
    assert held.publications.tolist() == list(range(7))
    assert held.subscriptions.tolist() == list(range(4))


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
