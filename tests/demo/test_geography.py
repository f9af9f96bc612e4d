from __future__ import annotations

import numpy as np
import pytest

from ps2stream.demo.geography import Places, load_places, wrapped
from ps2stream.model.square_region import KM_PER_DEGREE


@pytest.fixture(scope="module")
def places() -> Places:
    return load_places()


def test_people_are_drawn_where_people_live(places: Places) -> None:
    drawn = places.draw(np.random.default_rng(0), 200_000)
    counts = np.bincount(drawn, minlength=len(places.names))
    # The spread grows with the root of the population, so its square stands for it.
    share = places.spread_km**2 / np.sum(places.spread_km**2)
    largest = np.argsort(share)[-50:]
    assert counts[largest] / 200_000 == pytest.approx(share[largest], rel=0.25)


def test_most_points_are_near_their_city_and_some_are_far_out(places: Places) -> None:
    rng = np.random.default_rng(0)
    # Away from the poles and the antimeridian, where degrees are easily compared.
    usual = np.flatnonzero((np.abs(places.lat) < 60) & (np.abs(places.lon) < 170)).astype(np.int32)
    cities = rng.choice(usual, 50_000)
    lat, lon = places.scatter(rng, cities)
    east = (lon - places.lon[cities]) * np.cos(np.radians(lat))
    spreads = np.hypot(lat - places.lat[cities], east) * KM_PER_DEGREE / places.spread_km[cities]
    assert np.median(spreads) == pytest.approx(1.36, abs=0.05)
    assert 0.005 < np.mean(spreads > 10) < 0.02


def test_points_around_any_city_are_valid(places: Places) -> None:
    rng = np.random.default_rng(1)
    lat, lon = places.scatter(rng, np.arange(len(places.names), dtype=np.int32).repeat(3))
    assert np.abs(lat).max() <= 90
    assert np.abs(lon).max() <= 180


def test_longitudes_wrap_at_the_antimeridian() -> None:
    assert wrapped(np.array([181.0, -181.0, 0.0, 540.0])).tolist() == [-179.0, 179.0, 0.0, -180.0]


def test_every_region_has_cities(places: Places) -> None:
    assert set(places.region.tolist()) == set(range(places.n_regions))
    assert places.n_regions > 100
