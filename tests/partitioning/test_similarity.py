"""Similarity is the cosine of term counts."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from partitioning.samples import make_sample
from ps2stream.arrays import Ragged
from ps2stream.partitioning.sample import digest_of
from ps2stream.partitioning.similarity import similarity

pytestmark = pytest.mark.kernel


def _counts(rows: Ragged, chosen: range) -> Counter[int]:
    return Counter(int(term) for row in chosen for term in rows.row(row))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_cosine_of_the_chosen_rows(seed: int) -> None:
    digest = digest_of(make_sample(50, 30, seed))
    written, asked = _counts(digest.words, range(5, 40)), _counts(digest.keywords, range(10, 30))
    dot = sum(count * asked[term] for term, count in written.items())
    expected = dot / math.sqrt(
        sum(count**2 for count in written.values()) * sum(count**2 for count in asked.values())
    )
    assert similarity(digest, np.arange(5, 40), np.arange(10, 30)) == pytest.approx(expected)


def test_nothing_is_like_nothing() -> None:
    digest = digest_of(make_sample(50, 30))
    none = np.empty(0, np.int64)
    assert similarity(digest, none, np.arange(30)) == 0.0
    assert similarity(digest, np.arange(50), none) == 0.0
