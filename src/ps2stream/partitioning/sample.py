"""The sample that a plan is built from, and its digest: what routing and matching will see of it.

A subscription is found under the rarest term of each of its clauses; all its other terms cost nothing
until then. So the digest keeps, next to the plain terms, *entries*: pairs of a posting term and the
inverted list of a cell that it leads to. A publication has an entry for every list it would read, a
subscription for every list it stands in; where both meet is a candidate. Loads of any set of publications
and subscriptions are counted from entries without an index being built.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s, Ragged, UInt64s, frozen, ragged_rows
from ps2stream.kernels import kernel
from ps2stream.model.space import NO_LIMIT, WORLD, Grid, cell_seed, cell_term_key, column_of, cover, row_of
from ps2stream.text.frequencies import Frequencies, count_terms, rarest_first

#: Lists are those of a grid finer than a worker's default one. Its postings carry bounds that turn most
#: others down at once, so what a finer cell holds predicts the time better (docs/performance.md).
LIST_GRID = Grid.over(WORLD, 11)
LIST_MAX_CELLS = 16

#: Subscriptions that begin (and that end) for each publication: the paper's mix of 5 to 1.
CHURN = 0.1


class Sample(NamedTuple):
    """Some publications and some subscriptions of the stream, and how the stream is mixed.

    ``n_live``: how many subscriptions the sampled ones stand for, 0 for just themselves.
    ``churn``: how many subscriptions begin, and as many end, for each publication.
    """

    lon: Float64s
    lat: Float64s
    terms: Ragged
    bounds: Float64s  # four a subscription
    clause_offsets: Int64s
    term_offsets: Int64s
    clause_terms: UInt64s
    n_live: int = 0
    churn: float = CHURN

    @property
    def n_publications(self) -> int:
        return len(self.lon)

    @property
    def n_subscriptions(self) -> int:
        return len(self.bounds) // 4

    @property
    def live_weight(self) -> float:
        """Return how many live subscriptions a sampled one stands for."""
        return (self.n_live or self.n_subscriptions) / max(self.n_subscriptions, 1)

    @property
    def churn_weight(self) -> float:
        """Return how often a sampled subscription begins, and ends, while the sampled publications pass."""
        return self.churn * self.n_publications / max(self.n_subscriptions, 1)


def some_of(sample: Sample, publications: Int64s, subscriptions: Int64s) -> Sample:
    """Keep some rows of a sample; it stands for the same stream."""
    words, word_offsets = ragged_rows(sample.terms.offsets, publications)
    clauses, clause_offsets = ragged_rows(sample.clause_offsets, subscriptions)
    terms, term_offsets = ragged_rows(sample.term_offsets, clauses)
    return sample._replace(
        lon=frozen(sample.lon[publications]),
        lat=frozen(sample.lat[publications]),
        terms=Ragged(frozen(sample.terms.values[words]), frozen(word_offsets)),
        bounds=frozen(sample.bounds.reshape(-1, 4)[subscriptions].reshape(-1)),
        clause_offsets=frozen(clause_offsets),
        term_offsets=frozen(term_offsets),
        clause_terms=frozen(sample.clause_terms[terms]),
    )


class Entries(NamedTuple):
    """Ragged pairs of a posting term (its position in the vocabulary) and an inverted list of a cell."""

    offsets: Int64s
    terms: Int32s
    lists: Int32s


class Digest(NamedTuple):
    """A sample with its terms numbered; row ``i`` of every ragged part is one publication or subscription."""

    lon: Float64s
    lat: Float64s
    words: Ragged  # all terms of a publication
    reads: Entries
    bounds: Float64s
    keywords: Ragged  # all terms of a subscription
    stands: Entries
    vocabulary: UInt64s  # ascending: number -> term
    standing: Int32s  # a zero for each list: where kernels count, and leave zeros behind
    frequencies: Frequencies
    live_weight: float  # subscriptions that a sampled one stands for
    churn_weight: float  # insertions of a sampled subscription while the sampled publications pass

    @property
    def n_publications(self) -> int:
        return len(self.lon)

    @property
    def n_subscriptions(self) -> int:
        return len(self.bounds) // 4

    @property
    def n_lists(self) -> int:
        return len(self.standing)


def digest_of(sample: Sample) -> Digest:
    """Number the terms of a sample and find its candidates' lists.

    A plan is also asked for before anybody has subscribed, or published. Then the one side
    stands in for the other: people are taken to ask for what is written, where it is written.
    """
    if sample.n_publications and not sample.n_subscriptions:
        sample = _as_subscriptions(sample)
    elif sample.n_subscriptions and not sample.n_publications:
        sample = _as_publications(sample)
    frequencies = count_terms(sample.terms)
    clause_terms = sample.clause_terms.copy()
    rarest_first(clause_terms, frozen(sample.term_offsets), frequencies)
    n_words = len(sample.terms.values)
    everything = np.concatenate([sample.terms.values, clause_terms]).astype(np.uint64)
    vocabulary, numbers = np.unique(everything, return_inverse=True)
    numbers = numbers.astype(np.int32)
    words = Ragged(frozen(numbers[:n_words]), frozen(sample.terms.offsets))
    keywords = Ragged(frozen(numbers[n_words:]), frozen(sample.term_offsets[sample.clause_offsets]))
    clauses = Ragged(keywords.values[sample.term_offsets[:-1]], sample.clause_offsets)
    stands, keys, n_levels = _standing(sample.bounds, clauses, vocabulary)
    is_posted = np.zeros(len(vocabulary), np.bool_)
    is_posted[clauses.values] = True
    reads = _reading(sample, words, vocabulary, is_posted, (keys, n_levels))
    return Digest(
        lon=frozen(sample.lon),
        lat=frozen(sample.lat),
        words=words,
        reads=reads,
        bounds=frozen(sample.bounds),
        keywords=keywords,
        stands=stands,
        vocabulary=vocabulary,
        standing=np.zeros(len(keys), np.int32),
        frequencies=frequencies,
        live_weight=sample.live_weight,
        churn_weight=sample.churn_weight,
    )


def _as_subscriptions(sample: Sample) -> Sample:
    """Let every publication that has words ask for all of them at its own point."""
    rows = np.flatnonzero(np.diff(sample.terms.offsets))
    each = np.arange(len(rows) + 1, dtype=np.int64)
    points = np.column_stack([sample.lon[rows], sample.lat[rows]] * 2).reshape(-1)
    return sample._replace(
        bounds=points,
        clause_offsets=each,
        term_offsets=np.append(sample.terms.offsets[rows], len(sample.terms.values)),
        clause_terms=sample.terms.values,
    )


def _as_publications(sample: Sample) -> Sample:
    """Let every subscription publish its words in the south-west corner of its region."""
    offsets = sample.term_offsets[sample.clause_offsets]
    rows = [np.unique(sample.clause_terms[a:b]) for a, b in pairwise(offsets)]
    return sample._replace(
        lon=sample.bounds[0::4],
        lat=sample.bounds[1::4],
        terms=Ragged(np.concatenate(rows), np.cumsum([0, *map(len, rows)], dtype=np.int64)),
    )


def _standing(bounds: Float64s, clauses: Ragged, vocabulary: UInt64s) -> tuple[Entries, UInt64s, int]:
    """Return the lists that subscriptions stand in, the lists' keys ascending, and the levels in use."""
    grid, limit = LIST_GRID, LIST_MAX_CELLS
    offsets, n_levels = _count_standing(grid, limit, bounds, clauses.offsets)
    terms, keys = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint64)
    _list_standing(grid, limit, bounds, clauses.offsets, clauses.values, vocabulary, (offsets, terms, keys))
    distinct, lists = np.unique(keys, return_inverse=True)
    stands = Entries(frozen(offsets), frozen(terms), frozen(lists.astype(np.int32)))
    return stands, distinct, int(n_levels)


def _reading(
    sample: Sample,
    words: Ragged,
    vocabulary: UInt64s,
    is_posted: np.ndarray,
    known: tuple[UInt64s, int],
) -> Entries:
    keys, n_levels = known
    n_most = int(is_posted[words.values].sum()) * n_levels
    entries = Entries(
        np.zeros(sample.n_publications + 1, np.int64), np.empty(n_most, np.int32), np.empty(n_most, np.int32)
    )
    points = (frozen(sample.lon), frozen(sample.lat))
    n = _list_reading(LIST_GRID, points, words, vocabulary, is_posted, keys, n_levels, entries)
    return Entries(
        frozen(entries.offsets), frozen(entries.terms[:n].copy()), frozen(entries.lists[:n].copy())
    )


@kernel
def _count_standing(
    grid: Grid, max_cells: int, bounds: Float64s, clause_offsets: Int64s
) -> tuple[Int64s, int]:
    n = len(clause_offsets) - 1
    offsets = np.zeros(n + 1, np.int64)
    n_levels = 1
    for row in range(n):
        area = cover(grid, bounds, 4 * row, max_cells)
        n_clauses = clause_offsets[row + 1] - clause_offsets[row]
        offsets[row + 1] = offsets[row] + n_clauses * area.n_columns * area.n_rows
        n_levels = max(n_levels, area.level + 1)
    return offsets, n_levels


@kernel
def _list_standing(
    grid: Grid,
    max_cells: int,
    bounds: Float64s,
    clause_offsets: Int64s,
    posting_terms: Int32s,
    vocabulary: UInt64s,
    out: tuple[Int64s, Int32s, UInt64s],
) -> None:
    offsets, terms, keys = out
    for row in range(len(clause_offsets) - 1):
        at = offsets[row]
        area = cover(grid, bounds, 4 * row, max_cells)
        last = (1 << (grid.bits - area.level)) - 1
        for r in range(area.n_rows):
            for c in range(area.n_columns):
                seed = cell_seed(area.level, (area.column + c) & last, area.row + r)
                for clause in range(clause_offsets[row], clause_offsets[row + 1]):
                    terms[at] = posting_terms[clause]
                    keys[at] = cell_term_key(seed, vocabulary[posting_terms[clause]])
                    at += 1


@kernel
def _list_reading(
    grid: Grid,
    points: tuple[Float64s, Float64s],
    words: Ragged,
    vocabulary: UInt64s,
    is_posted: np.ndarray,
    keys: UInt64s,
    n_levels: int,
    out: Entries,
) -> int:
    lon, lat = points
    at = 0
    for row in range(len(lon)):
        column, line = column_of(grid, lon[row]), row_of(grid, lat[row])
        for level in range(n_levels):
            seed = cell_seed(level, column >> level, line >> level)
            for i in range(words.offsets[row], words.offsets[row + 1]):
                term = words.values[i]
                if not is_posted[term]:
                    continue
                key = cell_term_key(seed, vocabulary[term])
                position = np.searchsorted(keys, key)
                if position < len(keys) and keys[position] == key:
                    out.terms[at] = term
                    out.lists[at] = position
                    at += 1
        out.offsets[row + 1] = at
    return at


@kernel
def stand(stands: Entries, subscriptions: Int64s, standing: Int32s, sign: int) -> None:
    """Count subscriptions into (``sign`` 1) or out of (-1) the lists that they stand in."""
    for row in subscriptions:
        for j in range(stands.offsets[row], stands.offsets[row + 1]):
            standing[stands.lists[j]] += sign


class Cells(NamedTuple):
    """Where a digest lies on the grid of a plan: the cell of publications, the cells of regions.

    A region that crosses the antimeridian begins at ``first_column`` and goes round.
    """

    column: Int32s
    row: Int32s
    first_column: Int32s
    n_columns: Int32s
    first_row: Int32s
    n_rows: Int32s
    grid_columns: int


@kernel
def cells_of(grid: Grid, lon: Float64s, lat: Float64s, bounds: Float64s) -> Cells:
    """Find the cells of publications and regions."""
    n_pubs, n_subs = len(lon), len(bounds) // 4
    column, row = np.empty(n_pubs, np.int32), np.empty(n_pubs, np.int32)
    for i in range(n_pubs):
        column[i], row[i] = column_of(grid, lon[i]), row_of(grid, lat[i])
    spans = np.empty((4, n_subs), np.int32)
    for i in range(n_subs):
        area = cover(grid, bounds, 4 * i, NO_LIMIT)
        spans[0, i], spans[1, i] = area.column, area.n_columns
        spans[2, i], spans[3, i] = area.row, area.n_rows
    return Cells(column, row, spans[0], spans[1], spans[2], spans[3], 1 << grid.bits)
