"""What people subscribe to: a few words of a topic, in a square around where someone writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Float64s, Int32s
from ps2stream.demo.geography import shrinking, wrapped
from ps2stream.demo.sampling import Weighted
from ps2stream.demo.vocabulary import Vocabulary
from ps2stream.model.square_region import KM_PER_DEGREE

# Shapes of an expression and how common they are; '?' stands for a keyword.
_SHAPES = {
    "?": 0.34,
    "? AND ?": 0.20,
    "? ?": 0.04,
    "? OR ?": 0.16,
    "? AND ? AND ?": 0.07,
    "? OR ? OR ?": 0.05,
    "? AND (? OR ?)": 0.09,
    "(? OR ?) AND ?": 0.05,
}
_N_KEYWORDS = 3
# Keywords outside the subscriber's topic, and first keywords that are the city's own name.
_OFF_TOPIC = 0.15
_CITY = 0.04

_SIDE_KM = (1.0, 50.0)
_WIDE_SIDE_KM = (300.0, 3000.0)
_WIDE = 0.004
# Of the wide ones, those laid across the antimeridian, where few people live to centre them on.
_PACIFIC = 0.25


class Regions(NamedTuple):
    """Rectangles in parallel columns; ``min_lon > max_lon`` where one crosses the antimeridian."""

    min_lon: Float64s
    min_lat: Float64s
    max_lon: Float64s
    max_lat: Float64s


class Interests:
    """Make up expressions and regions."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._shape = Weighted(np.array(list(_SHAPES.values())), n_cells=1 << 10)
        pieces = [shape.split("?") for shape in _SHAPES]
        self._n_keywords = np.array([len(piece) - 1 for piece in pieces])
        self._pieces = [
            pa.array([piece[i] if i < len(piece) else "" for piece in pieces], pa.string())
            for i in range(_N_KEYWORDS + 1)
        ]
        names = vocabulary.tokens.slice(vocabulary.first_city)
        # Only names of one word: spaces, hyphens and brackets mean something else in an expression.
        self._is_word = pc.match_substring_regex(names, r"^\p{L}+$").to_numpy(zero_copy_only=False)

    def expressions(self, rng: np.random.Generator, cities: Int32s, topics: Int32s) -> pa.StringArray:
        """Write one expression for each pair of city and topic."""
        shapes = self._shape.draw(rng, len(cities))
        keywords = self._keywords(rng, cities, topics)
        parts = [self._pieces[0].take(pa.array(shapes))]
        for i in range(_N_KEYWORDS):
            codes = np.where(i < self._n_keywords[shapes], keywords[i], self._vocabulary.empty)
            parts.append(self._vocabulary.tokens.take(pa.array(codes)))
            parts.append(self._pieces[i + 1].take(pa.array(shapes)))
        return pc.binary_join_element_wise(*parts, "")

    def _keywords(self, rng: np.random.Generator, cities: Int32s, topics: Int32s) -> list[Int32s]:
        n = len(cities)
        local = (rng.random(n) < _CITY) & self._is_word[cities]
        chosen = [np.where(local, self._vocabulary.first_city + cities, self._keyword(rng, topics))]
        while len(chosen) < _N_KEYWORDS:
            keyword = self._keyword(rng, topics)
            while len(again := np.flatnonzero(np.any([keyword == other for other in chosen], axis=0))):
                keyword[again] = self._keyword(rng, topics[again])
            chosen.append(keyword)
        return chosen

    def _keyword(self, rng: np.random.Generator, topics: Int32s) -> Int32s:
        off_topic = rng.random(len(topics)) < _OFF_TOPIC
        return np.where(
            off_topic,
            self._vocabulary.draw_content(rng, len(topics)),
            self._vocabulary.draw_topical(rng, topics),
        )

    def regions(self, rng: np.random.Generator, lat: Float64s, lon: Float64s) -> Regions:
        """Lay a square around each point; a few are as large as a country."""
        n = len(lat)
        side_km = rng.uniform(*_SIDE_KM, n)
        wide = np.flatnonzero(rng.random(n) < _WIDE)
        side_km[wide] = rng.uniform(*_WIDE_SIDE_KM, len(wide))
        pacific = wide[rng.random(len(wide)) < _PACIFIC]
        lat, lon = lat.copy(), lon.copy()
        lat[pacific] = rng.uniform(-50.0, 70.0, len(pacific))
        lon[pacific] = wrapped(rng.uniform(179.0, 181.0, len(pacific)))
        half_lat: Float64s = side_km / 2.0 / KM_PER_DEGREE
        # Short of half the globe: a wider one would close on itself.
        half_lon = np.minimum(half_lat / shrinking(lat), 179.0)
        south: Float64s = np.maximum(lat - half_lat, -90.0)
        north: Float64s = np.minimum(lat + half_lat, 90.0)
        return Regions(
            min_lon=np.round(wrapped(lon - half_lon), 6),
            min_lat=np.round(south, 6),
            max_lon=np.round(wrapped(lon + half_lon), 6),
            max_lat=np.round(north, 6),
        )
