"""Subscriptions of the paper's kinds Q1, Q2 and Q3.

All are squares centred on publications, with 1 to 3 keywords joined by AND or by OR. Q1 asks for what is
written often, in small regions; Q2 for at least one word that is rare, in larger ones; in Q3 that depends
on where a subscription is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Flags, Float64s, Int64s
from ps2stream.model.schemas import SUBSCRIBE
from ps2stream_bench.workloads.corpus import N_STOP_WORDS, Corpus
from ps2stream_bench.workloads.events import events_of, numbered
from ps2stream_bench.workloads.regions import draws_q2, region_of

Kind = Literal["q1", "q2", "q3"]
KINDS: tuple[Kind, ...] = ("q1", "q2", "q3")

_KM_PER_DEGREE = 111.32
_LEAST_SIDE_KM, _Q1_SIDE_KM, _Q2_SIDE_KM = 1.0, 50.0, 100.0
_KEYWORDS = (1, 3)
#: A word is rare when it is not among this share of the words, the most frequent ones.
_TOP_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Shape:
    """What subscriptions have other than their kind says: keywords and sides, both ends included."""

    keywords: tuple[int, int] | None = None
    side_km: tuple[float, float] | None = None
    #: Whether one of the keywords is rare.
    rare: bool | None = None

    def __post_init__(self) -> None:
        if self.keywords is not None and not 1 <= self.keywords[0] <= self.keywords[1]:
            raise ValueError(f"keywords must be 1 <= least <= most; got {self.keywords}")
        if self.side_km is not None and not 0.0 <= self.side_km[0] <= self.side_km[1]:
            raise ValueError(f"side_km must be 0 <= least <= most; got {self.side_km}")


#: What the kind says.
PLAIN = Shape()


def subscribe_events(corpus: Corpus, kind: Kind, n: int, seed: int, *, shape: Shape = PLAIN) -> pa.Table:
    """Make ``n`` subscriptions of a kind with seq 1 to ``n``."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, len(corpus.lon), n)
    return subscribes_at(corpus, at, _asks_q2(corpus, kind, at, seed), rng, shape)


def subscribes_at(
    corpus: Corpus, at: Int64s, is_q2: Flags, rng: np.random.Generator, shape: Shape = PLAIN
) -> pa.Table:
    """Centre subscriptions on publications of the corpus, and number them from 1."""
    n = len(at)
    # Degrees of longitude shrink towards the poles; far north a square is wider than it is high.
    half_lat = _sides_km(is_q2, rng, shape) / _KM_PER_DEGREE / 2
    half_lon = half_lat / np.maximum(np.cos(np.radians(corpus.lat[at])), 0.1)
    is_rare = is_q2 if shape.rare is None else np.full(n, shape.rare)
    seq = np.arange(1, n + 1)
    columns = {
        "seq": pa.array(seq),
        "op": pa.repeat(SUBSCRIBE, n),
        "id": numbered("s", seq),
        "expression": _expressions(corpus, is_rare, rng, shape.keywords or _KEYWORDS),
        "min_lon": pa.array(np.clip(corpus.lon[at] - half_lon, -180, 180)),
        "min_lat": pa.array(np.clip(corpus.lat[at] - half_lat, -90, 90)),
        "max_lon": pa.array(np.clip(corpus.lon[at] + half_lon, -180, 180)),
        "max_lat": pa.array(np.clip(corpus.lat[at] + half_lat, -90, 90)),
    }
    return events_of(columns, n)


def _asks_q2(corpus: Corpus, kind: Kind, at: Int64s, seed: int) -> Flags:
    """Say which subscriptions are Q2, by the publications that they are centred on."""
    if kind == "q3":
        return draws_q2(seed)[region_of(corpus, corpus.lon[at], corpus.lat[at])]
    return np.full(len(at), kind == "q2")


def _sides_km(is_q2: Flags, rng: np.random.Generator, shape: Shape) -> Float64s:
    if shape.side_km is not None:
        return rng.uniform(*shape.side_km, len(is_q2))
    return rng.uniform(_LEAST_SIDE_KM, np.where(is_q2, _Q2_SIDE_KM, _Q1_SIDE_KM))


def _expressions(
    corpus: Corpus, is_rare: Flags, rng: np.random.Generator, keywords: tuple[int, int]
) -> pa.Array:
    """Join keywords by AND or by OR."""
    n, (least, most) = len(is_rare), keywords
    drawn = _keywords(corpus, is_rare, rng, most)
    n_keywords = rng.integers(least, most + 1, n)
    kept = np.arange(most) < n_keywords[:, None]
    offsets = np.concatenate([[0], np.cumsum(n_keywords)])
    words = corpus.words.take(pa.array(drawn[kept]))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words)
    operator = pa.array([" AND ", " OR "]).take(pa.array(rng.integers(0, 2, n)))
    return pc.binary_join(lists, operator)


def _keywords(corpus: Corpus, is_rare: Flags, rng: np.random.Generator, n_keywords: int) -> Int64s:
    """Draw keywords as often as texts have them, as rows of ranks that differ; stop words are not drawn.

    The first one of a row is rare where it has to be: all rare words have the same chance. Among the millions
    of words of 280 million tweets those outside the top 1 % are rare however they are drawn; among the
    hundred thousand of a corpus, words drawn by frequency would be nearly those of Q1.
    """
    cumulated = np.cumsum(corpus.counts[N_STOP_WORDS:])
    if len(cumulated) < n_keywords:
        raise ValueError(
            f"corpus must have {n_keywords} words beside {N_STOP_WORDS} stop words; got {len(corpus.counts)}"
        )
    first_rare = max(N_STOP_WORDS, int(_TOP_SHARE * len(corpus.counts)))
    drawn = np.empty((len(is_rare), n_keywords), np.int64)
    for index in range(n_keywords):
        missing = np.arange(len(is_rare))
        while len(missing):
            shots = rng.integers(0, cumulated[-1], len(missing))
            drawn[missing, index] = np.searchsorted(cumulated, shots, side="right") + N_STOP_WORDS
            if index == 0:
                rare = missing[is_rare]
                drawn[rare, 0] = rng.integers(first_rare, len(corpus.counts), len(rare))
            again = (drawn[missing, :index] == drawn[missing, index, None]).any(axis=1)
            missing = missing[again]
    return drawn
