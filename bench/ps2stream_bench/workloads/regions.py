"""The 100 regions of Q3, and which of them are Q2 or busy in which interval.

The space of Q3 is cut into equal parts. Half of them draw Q1 subscriptions and half Q2. In a drifting
stream some change their kind from interval to interval; in a rush some are busier than usual.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Flags, Float64s, Int64s
from ps2stream_bench.workloads.corpus import Corpus

#: Q3 cuts either side of the space into this many parts. Its space is the shortest range of longitudes and of
#: latitudes that holds this share of the publications: a few from overseas would extend it over oceans.
_N_CUTS = 10
_N_REGIONS = _N_CUTS * _N_CUTS
_SPACE_SHARE = 0.9
#: The share of the regions that a rush makes busy, in every interval others.
_BUSY_SHARE = 0.1


def region_of(corpus: Corpus, lon: Float64s, lat: Float64s) -> Int64s:
    """Return the Q3 region of points, row by row from the south-west; outer ones reach beyond the space."""
    return _cut(corpus.lat, lat) * _N_CUTS + _cut(corpus.lon, lon)


def draws_q2(seed: int) -> Flags:
    """Say for every Q3 region whether its subscriptions are Q2; exactly half of them are."""
    return np.random.default_rng([seed, 3]).permutation(_N_REGIONS) < _N_REGIONS // 2


def kinds_by_interval(seed: int, n_intervals: int, share: float = 0.1) -> Flags:
    """Say for every interval and region whether subscriptions that begin there are Q2.

    It starts with :func:`draws_q2`; a ``share`` of the regions differs from one interval to the next.
    """
    return draws_q2(seed) ^ np.logical_xor.accumulate(_chosen([seed, 4], n_intervals, share))


def busy_by_interval(seed: int, n_intervals: int) -> Flags:
    """Say for every interval and region whether a rush is on there; in the first it is on nowhere."""
    return _chosen([seed, 5], n_intervals, _BUSY_SHARE)


def _chosen(seed: list[int], n_intervals: int, share: float) -> Flags:
    """Choose regions anew for every interval but the first, which gets none."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros((n_intervals, _N_REGIONS), np.bool_)
    for row in chosen[1:]:
        row[rng.choice(_N_REGIONS, round(share * _N_REGIONS), replace=False)] = True
    return chosen


def _cut(space: Float64s, values: Float64s) -> Int64s:
    """Number the equal parts of the densest range of a space that values lie in, or are nearest to."""
    ordered = np.sort(space)
    n_apart = int(_SPACE_SHARE * (len(ordered) - 1))
    first = int(np.argmin(ordered[n_apart:] - ordered[: len(ordered) - n_apart]))
    low, high = ordered[first], ordered[first + n_apart]
    parts: Float64s = (values - low) / max(high - low, 1e-9) * _N_CUTS
    return np.clip(parts, 0, _N_CUTS - 1).astype(np.int64)
