"""What a corpus is like, in the figures that the generator is fitted to.

Places: the share of the publications in the densest hundredth of all cells of 0.1 degrees of a frame, empty
ones included, and how unevenly publications lie over the cells (Gini), over all of them and over those that
are not empty. The last depends on how many publications there are: compare corpora of one size.

Texts: distinct terms of a text, of those that have any; the slope of Zipf's law, fitted by least squares of
the logarithms at ranks evenly spread in the logarithm from 10 to 5,000; the share of the 100 most frequent
terms among all distinct terms of all texts.

Topics: how alike regions are in what is written there, stop words aside. Of every region of some degrees
with 2,000 publications or more this many are drawn, and the numbers of texts that hold each term are compared
as vectors: the mean cosine of pairs of regions, beside that of groups drawn without regard to the place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s, Ragged
from ps2stream_bench.workloads.frame import Frame
from ps2stream_bench.workloads.words import rank_words

_CELL_DEGREES = 0.1
_N_CELLS_PER_TOP_CELL = 100
_N_TOP_TERMS = 100
_FIRST_RANK, _LAST_RANK, _N_RANKS = 10, 5_000, 100
#: A slope is not fitted to counts below: the steps of the tail would be fitted instead.
_LEAST_COUNT = 5
_GROUP_SIZE = 2_000


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a corpus; NaN where it is too small for one."""

    n_publications: int
    top_cells_share: float
    gini: float
    gini_of_occupied: float
    n_occupied_cells: int
    mean_terms: float
    median_terms: float
    p95_terms: float
    zipf_slope: float
    top_terms_share: float
    region_cosine: float
    random_cosine: float


def statistics_of(
    lon: Float64s, lat: Float64s, texts: pa.Array, *, frame: Frame | None = None, region_degrees: float = 5.0
) -> Statistics:
    """Compute the figures of a corpus; only what lies in the frame counts, by default all of it."""
    if frame is None:
        frame = Frame(float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max()))
    inside = np.flatnonzero(frame.holds(lon, lat))
    if len(inside) == 0:
        raise ValueError(f"frame must hold publications; got none in {frame}")
    lon, lat = lon[inside], lat[inside]
    ranked = rank_words(texts.take(pa.array(inside)))
    per_cell = np.bincount(frame.cell_of(lon, lat, _CELL_DEGREES), minlength=frame.n_cells(_CELL_DEGREES))
    n_top_cells = max(len(per_cell) // _N_CELLS_PER_TOP_CELL, 1)
    n_terms = np.diff(ranked.ranks.offsets)
    n_terms = n_terms[n_terms > 0]
    region = frame.cell_of(lon, lat, region_degrees)
    rng = np.random.default_rng(0)
    return Statistics(
        n_publications=len(lon),
        top_cells_share=float(np.sort(per_cell)[-n_top_cells:].sum() / len(lon)),
        gini=gini(per_cell),
        gini_of_occupied=gini(per_cell[per_cell > 0]),
        n_occupied_cells=int((per_cell > 0).sum()),
        mean_terms=float(n_terms.mean()),
        median_terms=float(np.median(n_terms)),
        p95_terms=float(np.percentile(n_terms, 95)),
        zipf_slope=_zipf_slope(ranked.counts),
        top_terms_share=float(ranked.counts[:_N_TOP_TERMS].sum() / ranked.counts.sum()),
        region_cosine=_mean_cosine(ranked.ranks, region, rng),
        random_cosine=_mean_cosine(ranked.ranks, rng.permutation(region), rng),
    )


def gini(counts: Int64s) -> float:
    """Say how uneven counts are: 0 when all are the same, near 1 when one has everything."""
    n = len(counts)
    weighted = np.arange(1, n + 1) @ np.sort(counts)
    return float(2.0 * weighted / (n * counts.sum()) - (n + 1) / n)


def _zipf_slope(counts: Int64s) -> float:
    last = min(_LAST_RANK, int((counts >= _LEAST_COUNT).sum()))
    if last < 2 * _FIRST_RANK:
        return math.nan
    ranks = np.unique(np.geomspace(_FIRST_RANK, last, _N_RANKS).astype(np.int64))
    slope, _ = np.polyfit(np.log(ranks), np.log(counts[ranks - 1]), 1)
    return float(-slope)


def _mean_cosine(ranks: Ragged, group: Int64s, rng: np.random.Generator) -> float:
    """Compare the groups that are large enough, each by as many of its texts as the others."""
    numbers, sizes = np.unique(group, return_counts=True)
    large = numbers[sizes >= _GROUP_SIZE]
    if len(large) < 2:
        return math.nan
    n_words = int(ranks.values.max()) + 1
    vectors = np.empty((len(large), max(n_words - _N_TOP_TERMS, 0)))
    for vector, number in zip(vectors, large, strict=True):
        drawn = np.zeros(len(group), np.bool_)
        drawn[rng.choice(np.flatnonzero(group == number), _GROUP_SIZE, replace=False)] = True
        held = ranks.values[np.repeat(drawn, np.diff(ranks.offsets))]
        vector[:] = np.bincount(held, minlength=n_words)[_N_TOP_TERMS:]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return float((vectors @ vectors.T)[np.triu_indices(len(vectors), 1)].mean())
