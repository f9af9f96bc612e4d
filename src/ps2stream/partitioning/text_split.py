"""Divide the terms of a region between parts: SALB's metric, with the load of any formula.

Text-partitioning sends a publication to every part that has one of its terms. Terms that occur
together should be together, and still no part may hold too much. S3-TM (Basik et al.) takes terms
by falling weight and gives each to the part it is most related to, of those that can take it.
The formula is reconstructed from the paper's abstract.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s
from ps2stream.kernels import kernel
from ps2stream.partitioning.load import Rates, load_of
from ps2stream.partitioning.sample import Digest, Entries, stand
from ps2stream.partitioning.space_split import Counts

#: A part may hold this much more than its share while terms are dealt out.
_SLACK = 0.1
#: What a part without any relation to a term is worth, so that load decides between such parts.
_UNRELATED = 1e-3

#: What stands for no load at all where something is divided by it.
_NOTHING = 1e-9


class TermTable(NamedTuple):
    """The posting terms of a region with the rows of publications and subscriptions that hold each."""

    terms: Int32s
    publication_offsets: Int64s
    publications: Int32s
    subscription_offsets: Int64s
    subscriptions: Int32s
    looks: Float64s
    n_publications: int  # rows of the region, those without a term included
    n_subscriptions: int


class TextParts(NamedTuple):
    """The part of every term of a table, and what each part gets."""

    part_of: Int32s
    n_publications: Int64s
    n_subscriptions: Int64s
    n_looks: Float64s

    def counts(self, part: int) -> Counts:
        return Counts(
            int(self.n_publications[part]), int(self.n_subscriptions[part]), float(self.n_looks[part])
        )

    def loads(self, rates: Rates) -> Float64s:
        parts = map(self.counts, range(len(self.n_looks)))
        return np.array([load_of(rates, *map(float, counts)) for counts in parts])


def term_table(digest: Digest, publications: Int64s, subscriptions: Int64s) -> TermTable:
    """Invert the entries of some publications and subscriptions."""
    n_terms = len(digest.vocabulary)
    return TermTable(
        *_invert(
            digest.reads,
            digest.stands,
            (publications, subscriptions),
            digest.standing,
            n_terms,
            digest.live_weight,
        ),
        len(publications),
        len(subscriptions),
    )


def all_terms(digest: Digest) -> TermTable:
    """Invert a whole sample: the terms that subscriptions are found under, in ascending order."""
    return term_table(digest, np.arange(digest.n_publications), np.arange(digest.n_subscriptions))


def some_terms(table: TermTable, rows: Int64s) -> TermTable:
    """Keep some of the terms of a table."""
    publications = _some_rows(table.publication_offsets, table.publications, rows)
    subscriptions = _some_rows(table.subscription_offsets, table.subscriptions, rows)
    return table._replace(
        terms=table.terms[rows],
        publication_offsets=publications[0],
        publications=publications[1],
        subscription_offsets=subscriptions[0],
        subscriptions=subscriptions[1],
        looks=table.looks[rows],
    )


def term_weights(table: TermTable, rates: Rates) -> Float64s:
    """Charge every term, as if it had a worker of its own, by Definition 1.

    Publications count where somebody waits for the term: elsewhere they are discarded on the way.
    """
    n_publications = np.diff(table.publication_offsets).astype(np.float64)
    n_subscriptions = np.diff(table.subscription_offsets)
    matched = n_publications * n_subscriptions if rates.is_paper else table.looks
    return np.asarray(
        rates.match * matched + rates.publication * n_publications + rates.subscription * n_subscriptions
    )


def split_terms(table: TermTable, n_parts: int, rates: Rates) -> TextParts:
    """Deal the terms of a table out to parts of similar load that have little in common."""
    weights = term_weights(table, rates)
    order = np.argsort(-weights, kind="stable")
    words = (n_parts + 63) // 64
    held_by = (
        np.zeros((table.n_publications, words), np.uint64),
        np.zeros((table.n_subscriptions, words), np.uint64),
    )
    counts = np.zeros((3, n_parts))
    part_of = np.empty(len(table.terms), np.int32)
    _deal(table, order, weights, rates, held_by, counts, part_of)
    return TextParts(part_of, counts[0].astype(np.int64), counts[1].astype(np.int64), counts[2])


@kernel
def _invert(
    reads: Entries,
    stands: Entries,
    rows: tuple[Int64s, Int64s],
    standing: Int32s,
    n_terms: int,
    live_weight: float,
) -> tuple[Int32s, Int64s, Int32s, Int64s, Int32s, Float64s]:
    publications, subscriptions = rows
    stand(stands, subscriptions, standing, 1)
    sub_counts, pub_counts = np.zeros(n_terms, np.int64), np.zeros(n_terms, np.int64)
    newest = np.full(n_terms, -1, np.int64)
    for i in range(len(subscriptions)):
        for j in range(stands.offsets[subscriptions[i]], stands.offsets[subscriptions[i] + 1]):
            term = stands.terms[j]
            if newest[term] != i:
                newest[term] = i
                sub_counts[term] += 1
    looks = np.zeros(n_terms)
    newest[:] = -1
    for i in range(len(publications)):
        for j in range(reads.offsets[publications[i]], reads.offsets[publications[i] + 1]):
            if standing[reads.lists[j]] == 0:
                continue
            term = reads.terms[j]
            looks[term] += 1.0 + live_weight * standing[reads.lists[j]]
            if newest[term] != i:
                newest[term] = i
                pub_counts[term] += 1
    terms = np.flatnonzero(sub_counts).astype(np.int32)
    slot = np.full(n_terms, -1, np.int64)
    pub_offsets, sub_offsets = np.zeros(len(terms) + 1, np.int64), np.zeros(len(terms) + 1, np.int64)
    for i in range(len(terms)):
        slot[terms[i]] = i
        pub_offsets[i + 1] = pub_offsets[i] + pub_counts[terms[i]]
        sub_offsets[i + 1] = sub_offsets[i] + sub_counts[terms[i]]
    pubs, subs = np.empty(pub_offsets[-1], np.int32), np.empty(sub_offsets[-1], np.int32)
    pub_next, sub_next = pub_offsets[:-1].copy(), sub_offsets[:-1].copy()
    newest[:] = -1
    for i in range(len(subscriptions)):
        for j in range(stands.offsets[subscriptions[i]], stands.offsets[subscriptions[i] + 1]):
            term = stands.terms[j]
            if newest[term] != i:
                newest[term] = i
                subs[sub_next[slot[term]]] = i
                sub_next[slot[term]] += 1
    newest[:] = -1
    for i in range(len(publications)):
        for j in range(reads.offsets[publications[i]], reads.offsets[publications[i] + 1]):
            term = reads.terms[j]
            if standing[reads.lists[j]] != 0 and newest[term] != i:
                newest[term] = i
                pubs[pub_next[slot[term]]] = i
                pub_next[slot[term]] += 1
    stand(stands, subscriptions, standing, -1)
    return terms, pub_offsets, pubs, sub_offsets, subs, looks[terms]


@kernel
def _some_rows(offsets: Int64s, values: Int32s, rows: Int64s) -> tuple[Int64s, Int32s]:
    kept = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        kept[i + 1] = kept[i] + offsets[rows[i] + 1] - offsets[rows[i]]
    out = np.empty(kept[-1], values.dtype)
    for i in range(len(rows)):
        for j in range(kept[i + 1] - kept[i]):
            out[kept[i] + j] = values[offsets[rows[i]] + j]
    return kept, out


@kernel
def _deal(
    table: TermTable,
    order: Int64s,
    weights: Float64s,
    rates: Rates,
    held_by: tuple[np.ndarray, np.ndarray],
    counts: Float64s,
    part_of: Int32s,
) -> None:
    """Write the part of every term; ``counts`` are the publications, subscriptions and looks of parts."""
    pub_parts, sub_parts = held_by
    n_parts = counts.shape[1]
    loads = np.zeros(n_parts)
    shared = np.empty((2, n_parts), np.int64)
    total = 0.0
    for term in order:
        a, b = table.publication_offsets[term], table.publication_offsets[term + 1]
        c, d = table.subscription_offsets[term], table.subscription_offsets[term + 1]
        shared[:] = 0
        count_shared(pub_parts, table.publications[a:b], shared[0])
        count_shared(sub_parts, table.subscriptions[c:d], shared[1])
        capacity = (1.0 + _SLACK) * max(weights[term], (total + weights[term]) / n_parts, _NOTHING)
        best, best_score = -1, -1.0
        lightest, least = -1, np.inf
        for part in range(n_parts):
            after = load_of(
                rates,
                counts[0, part] + (b - a) - shared[0, part],
                counts[1, part] + (d - c) - shared[1, part],
                counts[2, part] + table.looks[term],
            )
            if after < least:
                lightest, least = part, after
            if after <= capacity:
                related = 1.0 - (after - loads[part]) / weights[term] if weights[term] > 0.0 else 0.0
                score = (max(related, 0.0) + _UNRELATED) * (1.0 - loads[part] / capacity)
                if score > best_score or (score == best_score and loads[part] < loads[best]):
                    best, best_score = part, score
        part = best if best >= 0 else lightest
        part_of[term] = part
        add_bit(pub_parts, table.publications[a:b], part)
        add_bit(sub_parts, table.subscriptions[c:d], part)
        counts[0, part] += (b - a) - shared[0, part]
        counts[1, part] += (d - c) - shared[1, part]
        counts[2, part] += table.looks[term]
        before = loads[part]
        loads[part] = load_of(rates, counts[0, part], counts[1, part], counts[2, part])
        total += loads[part] - before


@kernel
def count_shared(held_by: np.ndarray, rows: Int32s, shared: Int64s) -> None:
    """Count for every part the rows that it holds already; a row has a bit for each part."""
    for row in rows:
        for word in range(held_by.shape[1]):
            bits = held_by[row, word]
            while bits != np.uint64(0):
                low = bits & (~bits + np.uint64(1))
                shared[64 * word + _position(low)] += 1
                bits ^= low


@kernel
def add_bit(held_by: np.ndarray, rows: Int32s, part: int) -> None:
    word, bit = part >> 6, np.uint64(1) << np.uint64(part & 63)
    for row in rows:
        held_by[row, word] |= bit


@kernel
def _position(bit: np.uint64) -> int:
    """Return which bit of a power of two is set; its logarithm is exact."""
    return int(np.log2(np.float64(bit)))
