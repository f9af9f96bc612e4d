"""Every point lies in one cell, and in a cell of every region that holds it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import RegionError
from ps2stream.model.space import (
    WORLD,
    Grid,
    Region,
    cell_seed,
    cell_term_key,
    check_point,
    check_region,
    column_of,
    contains,
    cover,
    mix,
    row_of,
)
from strategies import points, regions

pytestmark = pytest.mark.kernel

Box = tuple[float, float, float, float]

grids = st.builds(
    Grid.over,
    st.sampled_from([WORLD, (-10.0, -10.0, 10.0, 10.0), (5.0, 5.0, 5.0, 5.0), (100.0, 50.0, 180.0, 90.0)]),
    st.integers(1, 12),
)


@given(grids, points)
@settings(max_examples=150, deadline=None)
def test_a_point_lies_within_the_bounds_of_its_cell(grid: Grid, point: tuple[float, float]) -> None:
    lon, lat = point
    cell = grid.cell(lon, lat)
    assert 0 <= cell < grid.n_cells
    west, south, east, north = grid.bounds_of(cell)
    # Bounds are computed back from the cell; both ways round.
    assert west - 1e-9 <= lon <= east + 1e-9
    assert south - 1e-9 <= lat <= north + 1e-9


@given(grids, regions, points, st.integers(1, 64))
@settings(max_examples=300, deadline=None)
def test_a_cover_has_the_cell_of_every_point_inside(
    grid: Grid, box: Box, point: tuple[float, float], max_cells: int
) -> None:
    region = Region(*box)
    candidates = [
        point,
        (box[0], box[1]),
        (box[2], box[3]),
        (box[0], box[3]),
        (point[0], box[1]),
        (180.0, box[1]),
    ]
    area = cover(grid, np.array(box), 0, max_cells)
    cells = _cells(grid, area.level, box, max_cells)
    assert len(cells) == area.n_columns * area.n_rows, "no cell comes twice"
    assert len(cells) <= max_cells or area.level == grid.bits
    for lon, lat in candidates:
        if region.contains(lon, lat):
            assert (column_of(grid, lon) >> area.level, row_of(grid, lat) >> area.level) in cells


def _cells(grid: Grid, level: int, box: Box, max_cells: int) -> set[tuple[int, int]]:
    area = cover(grid, np.array(box), 0, max_cells)
    n = 1 << (grid.bits - level)
    assert 0 <= area.row < area.row + area.n_rows <= n
    return {((area.column + c) % n, area.row + r) for c in range(area.n_columns) for r in range(area.n_rows)}


@given(grids, regions, st.integers(1, 64))
@settings(max_examples=100, deadline=None)
def test_a_cover_is_the_finest_that_is_small_enough(grid: Grid, box: Box, max_cells: int) -> None:
    area = cover(grid, np.array(box), 0, max_cells)
    if area.level:
        finer = Grid(*grid[:4], grid.bits)
        everything = cover(finer, np.array(box), 0, 1 << 62)
        assert everything.level == 0
        assert everything.n_columns * everything.n_rows > max_cells


@pytest.mark.parametrize("box", [WORLD, (-179.0, -89.0, 179.0, 89.0), (10.0, -90.0, 9.0, 90.0)])
def test_a_region_that_touches_all_cells_of_a_coarser_level_is_put_into_the_one_cell_of_the_top(
    box: Box,
) -> None:
    grid = Grid.over(WORLD, 5)
    assert cover(grid, np.array(box), 0, 16) == (5, 0, 1, 0, 1)
    assert cover(grid, np.array(box), 0, 16, 2) == (5, 0, 1, 0, 1)
    assert cover(grid, np.array(box), 0, 1024) == (0, 0, 32, 0, 32), "on the finest level it stays"
    assert cover(grid, np.array([-180.0, -90.0, 180.0, -1.0]), 0, 16) == (3, 0, 4, 0, 2), "half of them"


@given(regions, points)
@settings(max_examples=200, deadline=None)
def test_the_kernel_agrees_with_the_region_on_what_is_inside(box: Box, point: tuple[float, float]) -> None:
    flat = np.array([0.0, 0.0, 1.0, 1.0, *box])
    for lon, lat in (point, (box[0], point[1]), (point[0], box[3]), (box[2], box[1])):
        assert contains(flat, 4, lon, lat) == Region(*box).contains(lon, lat)


@pytest.mark.parametrize(
    ("box", "inside", "outside"),
    [
        (
            (0.0, 0.0, 10.0, 10.0),
            [(0.0, 0.0), (10.0, 10.0)],
            [(10.0, math.nextafter(10.0, 11.0)), (-1e-300, 5.0)],
        ),
        ((170.0, -5.0, -170.0, 5.0), [(180.0, 0.0), (-180.0, 0.0), (170.0, 5.0)], [(169.9, 0.0), (0.0, 0.0)]),
        ((3.0, 4.0, 3.0, 4.0), [(3.0, 4.0)], [(3.0, 4.000001)]),
        ((-180.0, 90.0, 180.0, 90.0), [(0.0, 90.0), (180.0, 90.0)], [(0.0, 89.9)]),
        ((180.0, -90.0, -180.0, 90.0), [(180.0, 0.0), (-180.0, 0.0)], [(0.0, 0.0)]),
    ],
)
def test_regions_are_closed_and_may_cross_the_antimeridian(
    box: Box, inside: list[tuple[float, float]], outside: list[tuple[float, float]]
) -> None:
    region = Region(*box)
    assert all(region.contains(*point) for point in inside)
    assert not any(region.contains(*point) for point in outside)


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ((math.nan, 0, 1, 1), "min_lon of the region must lie in [-180, 180]; got nan"),
        ((0, -math.inf, 1, 1), "min_lat of the region must lie in [-90, 90]; got -inf"),
        ((0, 0, 180.1, 1), "max_lon of the region must lie in [-180, 180]; got 180.1"),
        ((0, 0, 1, 90.5), "max_lat of the region must lie in [-90, 90]; got 90.5"),
        ((0, 3.0, 1, 2.0), "the region must have min_lat <= max_lat; got 3.0 > 2.0"),
        ((None, 0, 1, 1), "min_lon of the region is missing"),
        ((0, 0, 1, None), "max_lat of the region is missing"),
    ],
)
def test_a_bad_region_says_what_is_wrong_with_it(box: Box, reason: str) -> None:
    assert check_region(*box) == reason
    with pytest.raises(RegionError) as raised:
        Region(*box)
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("lon", "lat", "reason"),
    [
        (0.0, None, "lat is missing"),
        (None, 0.0, "lon is missing"),
        (181.0, 0.0, "lon must lie in [-180, 180]; got 181.0"),
        (0.0, math.nan, "lat must lie in [-90, 90]; got nan"),
        (math.inf, 0.0, "lon must lie in [-180, 180]; got inf"),
        (180.0, -90.0, None),
    ],
)
def test_a_bad_point_says_what_is_wrong_with_it(
    lon: float | None, lat: float | None, reason: str | None
) -> None:
    assert check_point(lon, lat) == reason


def test_the_world_is_cut_at_the_edges_of_cells() -> None:
    grid = Grid.over(WORLD, 2)
    assert [column_of(grid, lon) for lon in (-180, -90, -1e-9, 0, 89.9, 90, 180)] == [0, 1, 1, 2, 2, 3, 3]
    assert [row_of(grid, lat) for lat in (-90, -45, 0, 45, 90)] == [0, 1, 2, 3, 3]
    assert grid.bounds_of(grid.cell(0.0, 0.0)) == (0.0, 0.0, 90.0, 45.0)


def test_a_region_across_the_antimeridian_touches_both_ends_and_not_the_middle() -> None:
    grid = Grid.over(WORLD, 3)
    area = cover(grid, np.array([170.0, 0.0, -170.0, 1.0]), 0, 16)
    assert (area.column, area.n_columns, area.level) == (7, 2, 0)


def test_keys_of_cells_and_terms_differ_and_are_never_zero() -> None:
    cells = [(level, column, row) for level in range(3) for column in range(4) for row in range(4)]
    seeds = [np.uint64(cell_seed(*cell)) for cell in cells]
    keys = {int(cell_term_key(seed, np.uint64(term))) for seed in seeds for term in range(20)}
    assert len(keys) == len(cells) * 20
    seed = seeds[0]
    assert cell_term_key(seed, seed) == 1, "the one term of a cell whose key would be zero"


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=2, max_size=20, unique=True))
@settings(max_examples=50, deadline=None)
def test_mixing_keeps_different_numbers_apart(numbers: list[int]) -> None:
    assert len({int(mix(np.uint64(number))) for number in numbers}) == len(numbers)
