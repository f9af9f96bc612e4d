"""Expressions to tokens, a whole column at a time: the grammar of ``model.expressions`` in a kernel.

What leaves here needs no further check of its syntax: operands stand where they must, and parentheses match.
AND is left out, since it joins whatever stands side by side. A keyword of ASCII is hashed at once, one token
for each of its terms. Any other keyword is one token that says where it stands: ``text.non_ascii`` cuts those
of a column in one call, and :func:`spell_out` puts their terms in place. A row with anything wrong has no
tokens.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, Ragged, UInt8s, UInt64s
from ps2stream.arrow import Spans
from ps2stream.kernels import kernel, signed
from ps2stream.model.expressions import MAX_DEPTH
from ps2stream.model.limits import MAX_EXPRESSION_BYTES
from ps2stream.text.hashing import Bytes, xxh64
from ps2stream.text.tokenizer import ASCII_WORD

#: What a token is: a term by its hash, a keyword by its number, or one of three that have no value.
TERM, KEYWORD, OR, OPEN, CLOSE = range(5)

_PUNCTUATION, _WORD, _HIGH, _SPACE, _OPENING, _CLOSING = range(6)


def _kind_of(code: int) -> int:
    if code >= 128:
        return _HIGH
    if chr(code) in "()":
        return _OPENING if chr(code) == "(" else _CLOSING
    if re.match(r"\s", chr(code)):
        return _SPACE
    return _WORD if ASCII_WORD[code] else _PUNCTUATION


_KIND = np.array([_kind_of(code) for code in range(256)], dtype=np.uint8)
_A, _D, _N, _O, _R, _T = b"ADNORT"

#: Spaces beyond ASCII; a test holds them against the regular expression.
WIDE_SPACES = "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_WIDE = np.array([int.from_bytes(space.encode(), "big") for space in WIDE_SPACES], dtype=np.int64)
_MAY_BE_WIDE = np.isin(np.arange(256), [space.encode()[0] for space in WIDE_SPACES])
_TWO_BYTES = 0xC2


class Tokens(NamedTuple):
    """Row ``i`` has the tokens ``offsets[i]`` to ``offsets[i + 1]``.

    Keyword ``k`` is the bytes from ``bounds[2 * k]`` to ``bounds[2 * k + 1]``.
    """

    kinds: UInt8s
    values: UInt64s
    offsets: Int64s
    bounds: Int64s


@kernel
def lex(spans: Spans, folded: Bytes) -> Tokens:
    """Read all rows; ``folded`` is their data with the capitals of ASCII in lower case."""
    n_rows = len(spans.offsets) - 1
    # No token is shorter than a byte, and no keyword that is not ASCII shorter than two.
    tokens = Tokens(
        np.empty(len(folded), dtype=np.uint8),
        np.empty(len(folded), dtype=np.uint64),
        np.zeros(n_rows + 1, dtype=np.int64),
        np.empty(len(folded), dtype=np.int64),
    )
    end = n_keywords = 0
    for row in range(n_rows):
        last, last_keyword = _lex_row(spans, folded, row, tokens, n_keywords)
        if last >= 0:
            end, n_keywords = last, last_keyword
        tokens.offsets[row + 1] = end
    return Tokens(tokens.kinds[:end], tokens.values[:end], tokens.offsets, tokens.bounds[: 2 * n_keywords])


@kernel
def spell_out(tokens: Tokens, keywords: Ragged) -> Tokens:
    """Put the terms of keywords where these stood; a row with a keyword that has none loses its tokens."""
    n_rows = len(tokens.offsets) - 1
    capacity = len(tokens.kinds) + len(keywords.values)
    kinds, values = np.empty(capacity, dtype=np.uint8), np.empty(capacity, dtype=np.uint64)
    offsets = np.zeros(n_rows + 1, dtype=np.int64)
    end = 0
    for row in range(n_rows):
        for at in range(tokens.offsets[row], tokens.offsets[row + 1]):
            if tokens.kinds[at] != KEYWORD:
                kinds[end], values[end] = tokens.kinds[at], tokens.values[at]
                end += 1
                continue
            keyword = signed(tokens.values[at])
            first, last = keywords.offsets[keyword], keywords.offsets[keyword + 1]
            if first == last:
                end = offsets[row]
                break
            for slot in range(first, last):
                kinds[end], values[end] = TERM, keywords.values[slot]
                end += 1
        offsets[row + 1] = end
    return Tokens(kinds[:end], values[:end], offsets, tokens.bounds[:0])


@kernel
def _lex_row(spans: Spans, folded: Bytes, row: int, tokens: Tokens, n_keywords: int) -> tuple[int, int]:
    """Return the ends of tokens and of keywords after this row; what is wrong ends at -1."""
    data = spans.data
    at, stop = spans.offsets[row], spans.offsets[row + 1]
    if stop - at > MAX_EXPRESSION_BYTES:
        return -1, 0
    end = tokens.offsets[row]
    depth = 0
    needs_operand = True
    while at < stop:
        kind = _KIND[data[at]]
        if kind == _SPACE:
            at += 1
            continue
        if kind == _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                return -1, 0
            tokens.kinds[end] = OPEN
            end += 1
            at += 1
            needs_operand = True
            continue
        if kind == _CLOSING:
            depth -= 1
            if depth < 0 or needs_operand:
                return -1, 0
            tokens.kinds[end] = CLOSE
            end += 1
            at += 1
            continue
        start = at
        at, is_ascii = _end_of_word(data, at, stop)
        if at == start:
            at += _wide_space(data, at, stop)
        elif not is_ascii:
            tokens.kinds[end] = KEYWORD
            tokens.values[end] = np.uint64(n_keywords)
            end += 1
            tokens.bounds[2 * n_keywords], tokens.bounds[2 * n_keywords + 1] = start, at
            n_keywords += 1
            needs_operand = False
        elif _is_operator(data, start, at):
            if needs_operand:
                return -1, 0
            if data[start] == _O:
                tokens.kinds[end] = OR
                end += 1
            needs_operand = True
        else:
            before = end
            end = _cut(folded, start, at, tokens, end)
            if end == before or _is_not(data, start, at):
                return -1, 0
            needs_operand = False
    return (-1, 0) if needs_operand or depth > 0 else (end, n_keywords)


@kernel
def _end_of_word(data: Bytes, at: int, stop: int) -> tuple[int, bool]:
    """Find the next space or parenthesis; tell also whether all before it is ASCII."""
    is_ascii = True
    while at < stop and _KIND[data[at]] < _SPACE:
        if _KIND[data[at]] == _HIGH:
            if _wide_space(data, at, stop) > 0:
                break
            is_ascii = False
        at += 1
    return at, is_ascii


@kernel
def _wide_space(data: Bytes, at: int, stop: int) -> int:
    """Return the bytes of the space beyond ASCII that begins here, or 0.

    Any byte may be asked for: in UTF-8, none that begins a character stands within another one.
    """
    if not _MAY_BE_WIDE[data[at]]:
        return 0
    n_bytes = 2 if data[at] == _TWO_BYTES else 3
    if at + n_bytes > stop:
        return 0
    number = 0
    for each in range(at, at + n_bytes):
        number = number << 8 | signed(data[each])
    for space in _WIDE:
        if space == number:
            return n_bytes
    return 0


@kernel
def _is_operator(data: Bytes, start: int, stop: int) -> bool:
    if stop - start == 2:
        return bool(data[start] == _O and data[start + 1] == _R)
    if stop - start == 3:
        return bool(data[start] == _A and data[start + 1] == _N and data[start + 2] == _D)
    return False


@kernel
def _is_not(data: Bytes, start: int, stop: int) -> bool:
    if stop - start == 3:
        return bool(data[start] == _N and data[start + 1] == _O and data[start + 2] == _T)
    return False


@kernel
def _cut(folded: Bytes, start: int, stop: int, tokens: Tokens, end: int) -> int:
    """Write the terms of one keyword; return the new end."""
    at = start
    while at < stop:
        start = at
        while at < stop and ASCII_WORD[folded[at]]:
            at += 1
        if at > start:
            tokens.kinds[end] = TERM
            tokens.values[end] = xxh64(folded, start, at)
            end += 1
        else:
            at += 1
    return end
