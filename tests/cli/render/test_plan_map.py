"""A map shows where publications are, whose each place is, and where borders run."""

from __future__ import annotations

import numpy as np
import pytest

from cli.plans import GRID, cell_plan, sample_around_munich, sample_at, term_plan, tree_plan
from ps2stream.arrays import Float64s
from ps2stream.cli.render.plan_map import Area, area_of, borders_of, picture_of
from ps2stream.model.space import WORLD

WHOLE = Area(8.0, 44.0, 16.0, 52.0)
PRIMARY: Float64s = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 1.0, 0]])


def test_the_area_holds_the_publications_and_a_margin() -> None:
    sample = sample_around_munich()
    area = area_of(sample)
    assert area.west < np.quantile(sample.lon, 0.01)
    assert area.east > np.quantile(sample.lon, 0.99)
    assert area.south < np.quantile(sample.lat, 0.01)
    assert area.north > np.quantile(sample.lat, 0.99)
    assert area.east - area.west < 4


def test_a_stray_point_does_not_stretch_the_area() -> None:
    sample = sample_around_munich()
    stray = sample_at([*sample.lon.tolist(), -170.0], [*sample.lat.tolist(), -80.0])
    assert area_of(stray).west > 10


@pytest.mark.parametrize(
    ("lon", "lat"),
    [
        ([11.0] * 9, [48.0] * 9),
        (list(range(-180, 181, 10)), [0.0] * 37),
        ([0.0] * 19, list(range(-90, 91, 10))),
        ([180.0, 179.9], [89.9, 90.0]),
        ([-180.0], [-90.0]),
    ],
)
def test_whatever_the_sample_a_map_lies_in_the_world_and_has_a_shape_that_can_be_drawn(
    lon: list[float], lat: list[float]
) -> None:
    area = area_of(sample_at(lon, lat))
    assert WORLD[0] <= area.west < area.east <= WORLD[2]
    assert WORLD[1] <= area.south < area.north <= WORLD[3]
    assert 0.1 < area.shape < 1.5
    assert area.west <= min(lon[1:-1], default=lon[0]) <= max(lon[1:-1], default=lon[0]) <= area.east


def test_without_publications_the_world_is_shown() -> None:
    assert area_of(sample_at([], [])) == WORLD


def test_degrees_of_latitude_are_as_long_as_they_are() -> None:
    assert Area(0.0, -10.0, 1.0, 10.0).aspect == pytest.approx(1.0)
    assert Area(0.0, 59.0, 1.0, 61.0).aspect == pytest.approx(2.0)
    assert Area(0.0, 89.0, 1.0, 90.0).aspect == 2.5


def _hue(pixel: Float64s) -> list[bool]:
    """Say which of red, green and blue a pale colour is made of."""
    return [bool(value > pixel.min() + 0.05) for value in pixel]


def test_a_cell_has_the_colour_of_its_worker() -> None:
    picture = picture_of(cell_plan(3), sample_around_munich(), WHOLE, PRIMARY)
    height, width, _ = picture.shape
    for cell in range(16):
        row, column = divmod(cell, 4)
        middle = picture[int((row + 0.5) * height / 4), int((column + 0.5) * width / 4)]
        assert _hue(middle) == (PRIMARY[cell % 3] > 0).tolist()


def test_of_cells_dealt_out_one_by_one_those_where_nobody_publishes_are_paler() -> None:
    sample = sample_at([9.0] * 10, [45.0] * 10)
    scattered = picture_of(cell_plan(3), sample, WHOLE, PRIMARY)
    assert scattered[10, 10, 1] < scattered[-10, -10, 1] < 1.0
    whole = picture_of(cell_plan(1), sample, WHOLE, PRIMARY)
    assert np.ptp(whole, axis=(0, 1)).max() == 0, "a region of many cells has one tone"


def test_beyond_the_grid_the_outer_cells_go_on() -> None:
    plan, sample = cell_plan(1), sample_at([0.0] * 3, [40.0] * 3)
    picture = picture_of(plan, sample, Area(-20.0, 0.0, 40.0, 60.0), PRIMARY)
    assert _hue(picture[0, 0]) == [True, False, False]


def test_a_place_that_terms_divide_has_stripes_of_its_workers_and_of_no_other() -> None:
    picture = picture_of(tree_plan(), sample_around_munich(), WHOLE, PRIMARY)
    height, width, _ = picture.shape
    north_east = picture[int(height * 0.8) :: 9, width // 2 + 5 :].reshape(-1, 3)
    hues = {tuple(_hue(pixel)) for pixel in np.unique(north_east, axis=0)}
    assert hues == {(False, True, False), (False, False, True), (False, False, False)}
    west = picture[::9, : width // 2 - 5].reshape(-1, 3)
    assert {tuple(_hue(pixel)) for pixel in np.unique(west, axis=0)} == {(True, False, False)}


def test_stripes_of_a_plan_by_terms_name_all_workers_everywhere() -> None:
    picture = picture_of(term_plan(4), sample_at([], []), Area(*WORLD), PRIMARY)
    corner = np.unique(picture[:100, :100].reshape(-1, 3), axis=0)
    assert len(corner) == 5, "four workers and the lines between stripes"


def test_a_tree_is_bordered_leaf_by_leaf_out_to_the_edge_of_the_world() -> None:
    west, south_east, north_east = borders_of(tree_plan())
    assert west == [(-180.0, -90.0), (12.0, -90.0), (12.0, 90.0), (-180.0, 90.0), (-180.0, -90.0)]
    assert south_east[2] == (180.0, 50.0)
    assert north_east[0] == (12.0, 50.0)


def test_without_a_tree_borders_part_cells_of_different_workers() -> None:
    assert borders_of(cell_plan(1)) == []
    assert borders_of(term_plan()) == []
    lines = borders_of(cell_plan(4))  # every column is one worker's
    assert len(lines) == 3 * 4
    assert {line[0][0] for line in lines} == {10.0, 12.0, 14.0}
    assert len(borders_of(cell_plan(3))) == 2 * 3 * 4
    assert GRID.bits == 2
