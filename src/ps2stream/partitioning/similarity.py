"""How alike the words of publications and the keywords of subscriptions are (Sec. IV-B, sim_t)."""

from __future__ import annotations

import math

import numpy as np

from ps2stream.arrays import Int64s, Ragged
from ps2stream.kernels import kernel
from ps2stream.partitioning.sample import Digest


def similarity(digest: Digest, publications: Int64s, subscriptions: Int64s) -> float:
    """Return the cosine between the term counts of either side; 0 where one has none."""
    return float(_cosine(digest.words, digest.keywords, publications, subscriptions, len(digest.vocabulary)))


@kernel
def _cosine(
    words: Ragged, keywords: Ragged, publications: Int64s, subscriptions: Int64s, n_terms: int
) -> float:
    written, asked = np.zeros(n_terms, np.int64), np.zeros(n_terms, np.int64)
    for row in publications:
        for i in range(words.offsets[row], words.offsets[row + 1]):
            written[words.values[i]] += 1
    for row in subscriptions:
        for i in range(keywords.offsets[row], keywords.offsets[row + 1]):
            asked[keywords.values[i]] += 1
    both, of_written, of_asked = 0.0, 0.0, 0.0
    for term in range(n_terms):
        both += written[term] * asked[term]
        of_written += written[term] * written[term]
        of_asked += asked[term] * asked[term]
    return both / math.sqrt(of_written * of_asked) if both > 0.0 else 0.0
