"""Compose texts: glue words and content words in turn, about a topic, with the odd name, tag and emoji."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Int32s
from ps2stream.demo.vocabulary import N_HANDLES, Vocabulary

# Words a text, log-normal: chosen for 11 distinct terms on average and 21 at the 95th percentile.
_MEDIAN_LENGTH = 10.8
_LENGTH_SIGMA = 0.47
_LONGEST = 60
# Of the content words, those that speak of the topic; of these, those that carry a '#'.
_TOPICAL = 0.5
_HASHTAG = 0.12
# Of the texts, those that begin with a mention or an emoji, and those that end with "in <city>".
_MENTION = 0.06
_EMOJI = 0.025
_CITY = 0.07


def compose(
    rng: np.random.Generator, vocabulary: Vocabulary, cities: Int32s, topics: Int32s
) -> pa.StringArray:
    """Write one text for each pair of city and topic."""
    n = len(cities)
    lengths = np.rint(np.exp(rng.standard_normal(n) * _LENGTH_SIGMA + np.log(_MEDIAN_LENGTH)))
    offsets = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.clip(lengths, 2, _LONGEST), out=offsets[1:], dtype=np.int32)
    row = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
    # Counted from the end, so that a text does not stop at a glue word.
    is_content = (offsets[1:][row] - np.arange(len(row), dtype=np.int32)) % 2 == 1
    tokens = np.empty(len(row), dtype=np.int32)
    tokens[~is_content] = vocabulary.draw_glue(rng, int(np.count_nonzero(~is_content)))
    tokens[is_content] = _content(rng, vocabulary, topics[row[is_content]])

    first, last = offsets[:-1], offsets[1:] - 1
    opening = rng.random(n)
    mention = np.flatnonzero(opening < _MENTION)
    tokens[first[mention]] = vocabulary.first_handle + rng.integers(0, N_HANDLES, len(mention))
    emoji = np.flatnonzero(opening > 1.0 - _EMOJI)
    tokens[first[emoji]] = vocabulary.first_emoji + topics[emoji]
    city = np.flatnonzero(rng.random(n) < _CITY)
    tokens[last[city] - 1] = vocabulary.inside
    tokens[last[city]] = vocabulary.first_city + cities[city]

    words = pa.ListArray.from_arrays(pa.array(offsets), vocabulary.tokens.take(pa.array(tokens)))
    return pc.binary_join(words, " ")


def _content(rng: np.random.Generator, vocabulary: Vocabulary, topics: Int32s) -> Int32s:
    kind = rng.random(len(topics))
    hashtag = np.int32(vocabulary.first_hashtag - vocabulary.first_topic)
    topical = vocabulary.draw_topical(rng, topics)
    topical[kind < _TOPICAL * _HASHTAG] += hashtag
    return np.where(kind < _TOPICAL, topical, vocabulary.draw_content(rng, len(topics)))
