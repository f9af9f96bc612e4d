"""How often terms occur, from a sample: what makes a keyword the rarest of its clause.

A table belongs to one version of a plan and never changes, so that a subscription is deleted
where it was inserted even when the stream's words have drifted since.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, Ragged, UInt64s
from ps2stream.kernels import kernel, signed


class Frequencies(NamedTuple):
    """Terms in ascending order with the number of sample texts that hold each."""

    terms: UInt64s
    counts: Int64s


def no_frequencies() -> Frequencies:
    return Frequencies(np.empty(0, np.uint64), np.empty(0, np.int64))


def count_terms(texts: Ragged) -> Frequencies:
    """Count in how many rows each term occurs; rows hold distinct terms."""
    terms, counts = np.unique(texts.values, return_counts=True)
    return Frequencies(terms.astype(np.uint64), counts.astype(np.int64))


@kernel
def frequency(table: Frequencies, term: np.uint64) -> int:
    """Return the count of a term; one that the sample does not hold is the rarest of all."""
    low, high = 0, len(table.terms)
    while low < high:
        middle = (low + high) >> 1
        if table.terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    if low < len(table.terms) and table.terms[low] == term:
        return signed(table.counts[low])
    return 0


@kernel
def rarest_first(terms: UInt64s, offsets: Int64s, table: Frequencies) -> None:
    """Order the terms of every clause by rising frequency, in place; the hash breaks ties."""
    for clause in range(len(offsets) - 1):
        for i in range(offsets[clause] + 1, offsets[clause + 1]):
            term = terms[i]
            count = frequency(table, term)
            j = i - 1
            while j >= offsets[clause]:
                other = frequency(table, terms[j])
                if other < count or (other == count and terms[j] < term):
                    break
                terms[j + 1] = terms[j]
                j -= 1
            terms[j + 1] = term
