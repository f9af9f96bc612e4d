"""Which of many clauses texts satisfy, in numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Flags, Int64s, Ragged, UInt64s
from ps2stream_bench.peers.boxes_and_clauses import Interests, runs


class ClauseTerms(NamedTuple):
    """The terms of clauses, numbered by their position in a sorted vocabulary.

    Numbered so, a term and the row of its text make one integer, and all texts of a block one sorted array.
    """

    vocabulary: UInt64s
    terms: Int64s
    offsets: Int64s

    @classmethod
    def of(cls, interests: Interests) -> ClauseTerms:
        vocabulary, terms = np.unique(interests.terms.values, return_inverse=True)
        return cls(vocabulary, terms.astype(np.int64), interests.terms.offsets)

    def contents(self, texts: Ragged, first: int, end: int) -> Int64s:
        """Return (row, term) of the texts ``first`` to before ``end`` as ascending integers."""
        hashes = texts.values[texts.offsets[first] : texts.offsets[end]]
        row = np.repeat(np.arange(end - first), np.diff(texts.offsets[first : end + 1]))
        index = np.minimum(np.searchsorted(self.vocabulary, hashes), len(self.vocabulary) - 1)
        known = self.vocabulary[index] == hashes
        contents: Int64s = row[known] * len(self.vocabulary) + index[known]
        return contents


def satisfied(
    interests: Interests, clauses: ClauseTerms, contents: Int64s, row: Int64s, box: Int64s
) -> Flags:
    """Tell for pairs of a text's row and a box whether the text satisfies one of the box's clauses."""
    told = np.zeros(len(row), np.bool_)
    if len(contents) == 0:
        return told
    clause, pair = runs(interests.first_clause[box], interests.end_clause[box])
    slot, end = clauses.offsets[clause], clauses.offsets[clause + 1]
    # Term after term: few clauses get past their first one.
    while len(slot):
        wanted = row[pair] * len(clauses.vocabulary) + clauses.terms[slot]
        index = np.minimum(np.searchsorted(contents, wanted), len(contents) - 1)
        held = contents[index] == wanted
        slot, end, pair = slot[held] + 1, end[held], pair[held]
        told[pair[slot == end]] = True
        further = slot < end
        slot, end, pair = slot[further], end[further], pair[further]
    return told
