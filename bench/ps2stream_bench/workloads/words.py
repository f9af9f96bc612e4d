"""The words of texts, ranked: fast for ASCII, and by the product's own definition for all other texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Int64s, Ragged
from ps2stream.arrow import spans_of
from ps2stream.text.terms import terms_of
from ps2stream.text.tokenizer import ASCII_WORD, fold_ascii


@dataclass(frozen=True, slots=True)
class RankedWords:
    """Words by falling number of texts that hold them, then by spelling; of every text its distinct ranks."""

    words: pa.Array
    counts: Int64s
    ranks: Ragged


def rank_words(texts: pa.Array) -> RankedWords:
    """Find the terms of every text, and count in how many texts each occurs; a null has none."""
    rows, terms = _pairs(texts.fill_null(""))
    coded = terms.dictionary_encode()
    n_words = len(coded.dictionary)
    pairs = np.sort(rows * n_words + coded.indices.to_numpy())
    # A text that repeats a word has it once. (numpy's unique hashes, which takes ten times as long.)
    row, code = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], max(n_words, 1))
    counts = pa.array(np.bincount(code, minlength=n_words))
    table = pa.table({"word": coded.dictionary, "count": counts})
    order = pc.sort_indices(table, [("count", "descending"), ("word", "ascending")])
    rank = np.empty(n_words, np.int64)
    rank[order.to_numpy()] = np.arange(n_words)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(texts)))])
    return RankedWords(
        coded.dictionary.take(order), counts.take(order).to_numpy(), Ragged(rank[code], offsets)
    )


def _pairs(texts: pa.Array) -> tuple[Int64s, pa.Array]:
    """List (text, term), some of them more than once."""
    is_ascii = pc.equal(pc.binary_length(texts), pc.utf8_length(texts))
    foreign = np.flatnonzero(~is_ascii.to_numpy(zero_copy_only=False))
    plain_rows, plain_terms = _cut_ascii(pc.if_else(is_ascii, texts, ""))
    sets = [terms_of(text) for text in texts.take(pa.array(foreign)).to_pylist()]
    foreign_rows = np.repeat(foreign, np.array([len(terms) for terms in sets], np.int64))
    foreign_terms = pa.array([term for terms in sets for term in terms], pa.string())
    return np.concatenate([plain_rows, foreign_rows]), pa.concat_arrays([plain_terms, foreign_terms])


def _cut_ascii(texts: pa.Array) -> tuple[Int64s, pa.Array]:
    """Cut texts of ASCII, where terms are runs of word characters in lower case."""
    spans = spans_of(texts)
    is_word = ASCII_WORD[spans.data]
    is_first = is_word.copy()
    is_first[1:] &= ~is_word[:-1]
    # No word goes on from one text to the next.
    begins = spans.offsets[:-1][np.diff(spans.offsets) > 0]
    is_first[begins] = is_word[begins]
    at = np.flatnonzero(is_first)
    rows = np.searchsorted(spans.offsets, at, side="right") - 1
    # Without what separates them, words lie side by side, as Arrow wants them.
    letters = fold_ascii(spans.data)[is_word]
    offsets = np.append(np.cumsum(is_word, dtype=np.int64)[at] - 1, len(letters)).astype(np.int32)
    terms = pa.StringArray.from_buffers(len(at), pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))
    return rows, terms
