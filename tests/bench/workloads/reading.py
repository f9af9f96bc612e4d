"""Read from subscribe events what the tests of workloads ask about."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s
from ps2stream_bench.workloads import Corpus, region_of

_KM_PER_DEGREE = 111.32


def sides_km_of(events: pa.Table) -> Float64s:
    """Return the heights of regions."""
    sides: Float64s = (events["max_lat"].to_numpy() - events["min_lat"].to_numpy()) * _KM_PER_DEGREE
    return sides


def ranks_of(corpus: Corpus, events: pa.Table) -> list[list[int]]:
    """List the keywords of every subscription by their rank among the words, the most frequent being 0."""
    rank = {word: index for index, word in enumerate(corpus.words.to_pylist())}
    expressions = events["expression"].to_pylist()
    return [[rank[word] for word in text.split() if word not in ("AND", "OR")] for text in expressions]


def regions_of(corpus: Corpus, subscribes: pa.Table) -> Int64s:
    """Return the Q3 regions of the centres of subscriptions."""
    lon, lat = (
        (subscribes[f"min_{name}"].to_numpy() + subscribes[f"max_{name}"].to_numpy()) / 2
        for name in ("lon", "lat")
    )
    return region_of(corpus, lon, lat)
