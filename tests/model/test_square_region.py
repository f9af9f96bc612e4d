from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import RegionError
from ps2stream.model.space import Region
from ps2stream.model.square_region import KM_PER_DEGREE, square_region

latitudes, longitudes = st.floats(-90, 90), st.floats(-180, 180)
sides = st.floats(1e-3, 50_000)


@given(latitudes, longitudes, sides)
def test_a_square_is_a_region_that_holds_its_centre(lat: float, lon: float, side_km: float) -> None:
    assert Region(*square_region(lat, lon, side_km)).contains(lon, lat)


@given(st.floats(-60, 60), longitudes, st.floats(0.1, 2_000), st.sampled_from([0.98, 1.02]))
def test_a_square_ends_half_a_side_from_its_centre(
    lat: float, lon: float, side_km: float, share: float
) -> None:
    region = Region(*square_region(lat, lon, side_km))
    step = share * side_km / 2 / KM_PER_DEGREE
    beside = lon + step / math.cos(math.radians(lat))
    beside = beside - 360 if beside > 180 else beside
    assert region.contains(beside, lat) == (share < 1)
    assert region.contains(lon, lat + step) == (share < 1)
    assert region.contains(lon, lat - step) == (share < 1)


def test_at_a_pole_all_longitudes_are_inside() -> None:
    assert square_region(89.9, 10, 100)[::2] == (-180.0, 180.0)
    assert square_region(-90, 10, 100)[1] == -90.0


def test_across_the_antimeridian_west_is_above_east() -> None:
    min_lon, _, max_lon, _ = square_region(0, 179.9, 100)
    assert min_lon > max_lon
    assert Region(*square_region(0, 179.9, 100)).contains(-179.9, 0)


@pytest.mark.parametrize("side_km", [0, -1, math.nan, math.inf])
def test_a_side_must_be_above_0(side_km: float) -> None:
    with pytest.raises(RegionError, match="must be a number of km above 0"):
        square_region(0, 0, side_km)


@pytest.mark.parametrize("centre", [(91, 0), (0, 181), (math.nan, 0)])
def test_a_centre_must_lie_on_the_map(centre: tuple[float, float]) -> None:
    with pytest.raises(RegionError, match="must lie on the map"):
        square_region(*centre, 1)
