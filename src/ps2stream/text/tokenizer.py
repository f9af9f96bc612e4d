"""Texts to sets of term hashes.

:func:`~ps2stream.text.terms.terms_of` is the definition. :class:`Tokenizer` computes the same on a whole
Arrow array, by three roads that are chosen row by row:

- A row of ASCII needs no normalisation and folds by adding 32 to capitals, so one kernel does it all.
- Other rows are normalised and folded character by character in a kernel, by tables (``text.non_ascii``).
- Rows with a character that these tables leave open are copied into lines of one buffer (newlines inside a
  row become spaces; neither is a word character nor changes its neighbours), go through Python's own
  Unicode tables, and are cut by a kernel that looks word characters up in a table made by the regular
  expression itself. Lines are normalised one by one: normalising all of them as one string loses Python's
  quick check for what is already normal, and was three times slower where a fifth of the rows was not. Case
  folding is done at once: unlike ``lower``, with its final sigma, it looks at one character at a time.
  Nothing but a newline normalises or folds to one, so lines stay lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Array, Flags, Int64s, Ragged, UInt64s
from ps2stream.arrow import raw_spans_of, spans_of
from ps2stream.errors import quoted
from ps2stream.kernels import kernel, signed
from ps2stream.text.characters import characters, word_characters
from ps2stream.text.combining_marks import stream_safe
from ps2stream.text.hashing import Bytes, xxh64
from ps2stream.text.non_ascii import cut_non_ascii
from ps2stream.text.stop_words import is_stopped, stop_table
from ps2stream.text.terms import terms_of

__all__ = [
    "ASCII_WORD",
    "Tokenizer",
    "fold_ascii",
    "is_stopped",
    "seal",
    "seal_marked",
    "sort_distinct",
    "splice",
    "terms_of",
    "word_characters",
]

_NEWLINE = 10
_SPACE = 32
_SHORT_ROW = 32

#: Whether a byte is a word character of ASCII.
ASCII_WORD = np.array([code < 128 and bool(re.match(r"\w", chr(code))) for code in range(256)])


@dataclass(frozen=True)
class Tokenizer:
    """Turn texts into term hashes, without the terms of the stop words.

    Stop words are normalised like text: ``"The"`` stops ``the``, and ``"don't"`` stops ``don`` and ``t``.
    """

    stop_words: frozenset[str]
    #: Hashes of the stop words, to be asked with :func:`is_stopped`.
    stop_table: UInt64s = field(repr=False, compare=False)

    def __init__(self, stop_words: Iterable[str] = ()) -> None:
        if isinstance(stop_words, str):
            raise TypeError(f"stop_words must be several strings; got the one string {quoted(stop_words)}")
        terms: frozenset[str] = frozenset().union(*map(terms_of, stop_words))
        object.__setattr__(self, "stop_words", terms)
        object.__setattr__(self, "stop_table", stop_table(terms))

    def terms_of(self, text: str) -> frozenset[str]:
        """Return the terms of one text that are no stop words."""
        return terms_of(text) - self.stop_words

    def tokenize(self, texts: pa.Array) -> Ragged:
        """Return each text's term hashes, ascending and distinct; a null has none.

        Bytes that are not UTF-8 (Arrow does not check) separate terms, as U+FFFD would.
        """
        return seal(self.cut(texts), np.arange(len(texts)))

    def cut(self, texts: pa.Array) -> Ragged:
        """Return each text's term hashes as they are written, in their order and with repeats.

        Most of the time of :meth:`tokenize` goes into sorting: who needs the terms of few rows only should
        :func:`seal` only these.
        """
        if texts.null_count:
            # Arrow leaves open what bytes lie under a null.
            texts = texts.fill_null("")
        raw = raw_spans_of(texts)
        terms, foreign = _cut_ascii(raw.data, raw.offsets, self.stop_table)
        if len(foreign) == 0:
            return terms
        spans = spans_of(texts)
        patch, hard = cut_non_ascii(spans.data, spans.offsets, foreign, characters(), self.stop_table)
        if len(hard):
            lines = _join_lines(spans.data, spans.offsets, foreign[hard])
            normal = np.frombuffer(_normalize_lines(lines.tobytes()), dtype=np.uint8)
            patch = splice(patch, hard, _cut_lines(normal, len(hard), word_characters(), self.stop_table))
        return splice(terms, foreign, patch)


def _normalize_lines(lines: bytes) -> bytes:
    texts = stream_safe(lines.decode("utf-8", "replace")).split("\n")
    return "\n".join([unicodedata.normalize("NFKC", text) for text in texts]).casefold().encode()


@kernel
def fold_ascii(data: Bytes) -> Bytes:
    """Copy bytes with the capitals of ASCII in lower case."""
    folded = np.empty(len(data), dtype=np.uint8)
    for at in range(len(data)):
        byte = data[at]
        folded[at] = byte | np.uint8((np.uint8(65) <= byte) & (byte <= np.uint8(90))) << np.uint8(5)
    return folded


@kernel
def sort_distinct(values: UInt64s, first: int, end: int) -> int:
    """Sort ``values[first:end]`` and drop its duplicates; return the new end."""
    if end - first > _SHORT_ROW:
        values[first:end].sort()
    else:
        for at in range(first + 1, end):
            value = values[at]
            to = at
            while to > first and values[to - 1] > value:
                values[to] = values[to - 1]
                to -= 1
            values[to] = value
    kept = first
    for at in range(first, end):
        if at == first or values[at] != values[kept - 1]:
            values[kept] = values[at]
            kept += 1
    return kept


@kernel
def seal(terms: Ragged, rows: Int64s) -> Ragged:
    """Copy some rows, each sorted and without its duplicates."""
    n_terms = 0
    for row in rows:
        n_terms += terms.offsets[row + 1] - terms.offsets[row]
    values = np.empty(n_terms, dtype=np.uint64)
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    end = 0
    for i in range(len(rows)):
        end = _seal_row(terms, rows[i], values, end)
        offsets[i + 1] = end
    return Ragged(values[:end], offsets)


@kernel
def seal_marked(terms: Ragged, is_marked: Flags) -> Ragged:
    """Copy the rows that are marked, each sorted and without its duplicates, and leave the others empty."""
    values = np.empty(len(terms.values), dtype=np.uint64)
    offsets = np.zeros(len(is_marked) + 1, dtype=np.int64)
    end = 0
    for row in range(len(is_marked)):
        if is_marked[row]:
            end = _seal_row(terms, row, values, end)
        offsets[row + 1] = end
    return Ragged(values[:end], offsets)


@kernel
def _seal_row(terms: Ragged, row: int, values: UInt64s, first: int) -> int:
    """Copy a row behind those before it; return where it ends."""
    end = first
    for slot in range(terms.offsets[row], terms.offsets[row + 1]):
        values[end] = terms.values[slot]
        end += 1
    return sort_distinct(values, first, end)


@kernel
def _cut_ascii(data: Bytes, offsets: Array, stops: UInt64s) -> tuple[Ragged, Int64s]:
    """Hash the terms of all rows of ASCII; leave the other rows empty and name them."""
    n_rows = len(offsets) - 1
    begin = signed(offsets[0])
    folded = fold_ascii(data[begin : signed(offsets[n_rows])])
    # A term takes a byte, and another one keeps it from the next term of its row.
    hashes = np.empty((len(folded) + n_rows) // 2 + 1, dtype=np.uint64)
    ends = np.zeros(n_rows + 1, dtype=np.int64)
    foreign = np.empty(n_rows, dtype=np.int64)
    n_foreign = 0
    end = 0
    for row in range(n_rows):
        first = end
        at, stop = signed(offsets[row]) - begin, signed(offsets[row + 1]) - begin
        while at < stop and folded[at] < 128:
            start = at
            while at < stop and ASCII_WORD[folded[at]]:
                at += 1
            if at > start:
                hashes[end] = xxh64(folded, start, at)
                if not is_stopped(hashes[end], stops):
                    end += 1
            else:
                at += 1
        if at < stop:
            end = first
            foreign[n_foreign] = row
            n_foreign += 1
        ends[row + 1] = end
    return Ragged(hashes[:end], ends), foreign[:n_foreign]


@kernel
def _join_lines(data: Bytes, offsets: Int64s, rows: Int64s) -> Bytes:
    """Copy some rows, each ended by a newline, their own newlines replaced by spaces."""
    n_bytes = len(rows)
    for row in rows:
        n_bytes += offsets[row + 1] - offsets[row]
    lines = np.empty(n_bytes, dtype=np.uint8)
    to = 0
    for row in rows:
        for at in range(offsets[row], offsets[row + 1]):
            lines[to] = data[at] if data[at] != _NEWLINE else _SPACE
            to += 1
        lines[to] = _NEWLINE
        to += 1
    return lines


@kernel
def _character(data: Bytes, at: int) -> tuple[np.int64, int]:
    """Decode one character of valid UTF-8; return its code point and its number of bytes."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    second = np.int64(data[at + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(data[at + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(data[at + 3]) & 0x3F, 4


@kernel
def _cut_lines(data: Bytes, n_lines: int, is_word: Flags, stops: UInt64s) -> Ragged:
    """Hash the terms of lines of normalised UTF-8; each line ends with a newline."""
    hashes = np.empty(len(data) // 2 + 1, dtype=np.uint64)
    ends = np.zeros(n_lines + 1, dtype=np.int64)
    end, line = 0, 0
    start, at = 0, 0
    while at < len(data):
        code, size = _character(data, at)
        if not is_word[code]:
            if at > start:
                hashes[end] = xxh64(data, start, at)
                if not is_stopped(hashes[end], stops):
                    end += 1
            start = at + size
            if code == _NEWLINE:
                line += 1
                ends[line] = end
        at += size
    return Ragged(hashes[:end], ends)


@kernel
def splice(base: Ragged, rows: Int64s, patch: Ragged) -> Ragged:
    """Put the rows of a patch, in order, into rows of a base that are empty there."""
    n_rows = len(base.offsets) - 1
    values = np.empty(len(base.values) + len(patch.values), dtype=base.values.dtype)
    offsets = np.zeros(n_rows + 1, dtype=np.int64)
    end, used = 0, 0
    for row in range(n_rows):
        source, at = base, row
        if used < len(rows) and rows[used] == row:
            source, at = patch, used
            used += 1
        for slot in range(source.offsets[at], source.offsets[at + 1]):
            values[end] = source.values[slot]
            end += 1
        offsets[row + 1] = end
    return Ragged(values, offsets)
