"""Expressions to clauses of term hashes, a whole column at a time.

A kernel reads the plain cases: ASCII without parentheses, without NOT and without stop words. Whatever
else, and whatever looks wrong to it, is read by :func:`ps2stream.model.expressions.parse`, so every
error text has one source. Both roads end in the same canonical form, so the arrays do not
tell which one a row took: terms ascend within a clause, clauses ascend within a row.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, Ragged, UInt64s
from ps2stream.errors import ExpressionError
from ps2stream.kernels import kernel
from ps2stream.model.expressions import MAX_CLAUSES, parse
from ps2stream.text.hashing import Bytes, hash_term, xxh64
from ps2stream.text.spans import Spans, spans_of
from ps2stream.text.tokenizer import ASCII_WORD, Tokenizer, fold_ascii, is_stopped, sort_distinct, splice

_CACHED_EXPRESSIONS = 1 << 14
_CACHED_TERMS = 1 << 16

_hash = functools.lru_cache(maxsize=_CACHED_TERMS)(hash_term)

_PUNCTUATION, _WORD, _SPACE, _DOUBTFUL = range(4)


def _kind_of(code: int) -> int:
    if code >= 128 or chr(code) in "()":
        return _DOUBTFUL
    if chr(code).isspace():
        return _SPACE
    return _WORD if ASCII_WORD[code] else _PUNCTUATION


_KIND = np.array([_kind_of(code) for code in range(256)], dtype=np.uint8)
_A, _D, _N, _O, _R, _T = b"ADNORT"


class CompiledExpressions(NamedTuple):
    """The clauses of a column of expressions.

    Row ``i`` has the clauses ``clause_offsets[i]`` to ``clause_offsets[i + 1]``; clause ``c`` has the terms
    ``term_offsets[c]`` to ``term_offsets[c + 1]`` of ``terms``. A row with an error has no clause.
    """

    terms: UInt64s
    term_offsets: Int64s
    clause_offsets: Int64s
    errors: dict[int, str]


class _Clauses(NamedTuple):
    """Room for clauses that a kernel writes one after the other."""

    terms: UInt64s
    offsets: Int64s


def compile_expressions(expressions: pa.Array, tokenizer: Tokenizer) -> CompiledExpressions:
    """Compile a string array; a row that is null or does not parse gets an error and no clauses."""
    spans = spans_of(expressions)
    with np.errstate(over="ignore"):
        clauses, clause_offsets, doubtful = _compile_flat(spans, fold_ascii(spans.data), tokenizer.stop_table)
    if len(doubtful) == 0:
        return CompiledExpressions(clauses.terms, clauses.offsets, clause_offsets, {})
    nulls = expressions.is_null().to_numpy(zero_copy_only=False)
    errors: dict[int, str] = {}
    patches: list[tuple[tuple[int, ...], ...]] = []
    for row in doubtful.tolist():
        if nulls[row]:
            compiled: tuple[tuple[int, ...], ...] | str = "expression is null"
        else:
            span = spans.data[spans.offsets[row] : spans.offsets[row + 1]]
            compiled = _compile_any(span.tobytes().decode("utf-8", "replace"), tokenizer.stop_words)
        if isinstance(compiled, str):
            errors[row] = compiled
            compiled = ()
        patches.append(compiled)
    return _patched(clauses, clause_offsets, doubtful, patches)._replace(errors=errors)


@functools.lru_cache(maxsize=_CACHED_EXPRESSIONS)
def _compile_any(text: str, stop_words: frozenset[str]) -> tuple[tuple[int, ...], ...] | str:
    """Compile one expression, or say why that cannot be done."""
    try:
        clauses = parse(text).without(stop_words).clauses()
    except ExpressionError as error:
        return str(error)
    return tuple(sorted(tuple(sorted(map(_hash, clause))) for clause in clauses))


def _patched(
    clauses: _Clauses, clause_offsets: Int64s, rows: Int64s, patches: list[tuple[tuple[int, ...], ...]]
) -> CompiledExpressions:
    """Put clauses in place of some rows that are empty, once for their sizes and once for their terms."""
    sizes = splice(
        Ragged(np.diff(clauses.offsets), clause_offsets),
        rows,
        _ragged([[len(clause) for clause in patch] for patch in patches], np.int64),
    )
    terms = splice(
        Ragged(clauses.terms, clauses.offsets[clause_offsets]),
        rows,
        _ragged([[term for clause in patch for term in clause] for patch in patches], np.uint64),
    )
    term_offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes.values)])
    return CompiledExpressions(terms.values, term_offsets, sizes.offsets, {})


def _ragged(rows: list[list[int]], dtype: type[np.integer]) -> Ragged:
    values = np.array([value for row in rows for value in row], dtype=dtype)
    return Ragged(values, np.cumsum([0, *map(len, rows)], dtype=np.int64))


@kernel
def _compile_flat(spans: Spans, folded: Bytes, stops: UInt64s) -> tuple[_Clauses, Int64s, Int64s]:
    """Compile the rows that are plain; leave the others empty and name them."""
    n_rows = len(spans.offsets) - 1
    # As in the tokenizer, a term takes two bytes but for a row's last one; a clause has a term.
    capacity = (len(folded) + n_rows) // 2 + 1
    out = _Clauses(np.empty(capacity, dtype=np.uint64), np.zeros(capacity + 1, dtype=np.int64))
    scratch = _Clauses(np.empty(capacity, dtype=np.uint64), np.zeros(MAX_CLAUSES + 1, dtype=np.int64))
    ends = np.zeros(n_rows + 1, dtype=np.int64)
    doubtful = np.empty(n_rows, dtype=np.int64)
    n_doubtful = 0
    end = 0
    for row in range(n_rows):
        n_clauses = _read(spans, folded, row, stops, out, end)
        if n_clauses < 0:
            doubtful[n_doubtful] = row
            n_doubtful += 1
        elif n_clauses == 1:
            end += 1
        else:
            end += _canonical(out, end, n_clauses, scratch)
        ends[row + 1] = end
    return _Clauses(out.terms[: out.offsets[end]], out.offsets[: end + 1]), ends, doubtful[:n_doubtful]


@kernel
def _read(spans: Spans, folded: Bytes, row: int, stops: UInt64s, out: _Clauses, first: int) -> int:
    """Write the clauses of a row from clause ``first`` on; return their number, or -1 in any doubt."""
    at, stop = spans.offsets[row], spans.offsets[row + 1]
    clause = first
    end = out.offsets[clause]
    needs_operand = True
    while at < stop:
        start = at
        while at < stop and _KIND[spans.data[at]] < _SPACE:
            at += 1
        if at == start:
            if _KIND[spans.data[at]] == _DOUBTFUL:
                return -1
            at += 1
        elif _is_operator(spans.data, start, at):
            if needs_operand:
                return -1
            needs_operand = True
            if spans.data[start] == _O:
                clause += 1
                out.offsets[clause] = end = sort_distinct(out.terms, out.offsets[clause - 1], end)
                if clause - first == MAX_CLAUSES:
                    return -1
        else:
            before = end
            end = _cut(folded, start, at, out.terms, end)
            if end == before or _is_not(spans.data, start, at):
                return -1
            for slot in range(before, end if len(stops) > 0 else before):
                if is_stopped(out.terms[slot], stops):
                    return -1
            needs_operand = False
    if needs_operand:
        return -1
    clause += 1
    out.offsets[clause] = sort_distinct(out.terms, out.offsets[clause - 1], end)
    return clause - first


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
def _cut(folded: Bytes, start: int, stop: int, terms: UInt64s, end: int) -> int:
    """Write the terms of one keyword; return the new end."""
    at = start
    while at < stop:
        start = at
        while at < stop and ASCII_WORD[folded[at]]:
            at += 1
        if at > start:
            terms[end] = xxh64(folded, start, at)
            end += 1
        else:
            at += 1
    return end


@kernel
def _canonical(out: _Clauses, first: int, n_clauses: int, scratch: _Clauses) -> int:
    """Sort the last clauses written and drop those that contain another one; return how many stay."""
    order = np.arange(first, first + n_clauses)
    for at in range(1, n_clauses):
        clause = order[at]
        to = at
        while to > 0 and _is_before(out, clause, order[to - 1]):
            order[to] = order[to - 1]
            to -= 1
        order[to] = clause
    n_kept = 0
    end = 0
    for at in range(n_clauses):
        absorbed = False
        for other in range(n_clauses):
            # Of equal clauses the first one in order stays.
            if other != at and _contains(out, order[at], order[other]):
                absorbed |= other < at or not _contains(out, order[other], order[at])
        if not absorbed:
            for slot in range(out.offsets[order[at]], out.offsets[order[at] + 1]):
                scratch.terms[end] = out.terms[slot]
                end += 1
            n_kept += 1
            scratch.offsets[n_kept] = end
    base = out.offsets[first]
    out.terms[base : base + end] = scratch.terms[:end]
    for at in range(1, n_kept + 1):
        out.offsets[first + at] = base + scratch.offsets[at]
    return n_kept


@kernel
def _is_before(out: _Clauses, left: int, right: int) -> bool:
    """Compare two clauses like tuples of their terms."""
    at, at_end = out.offsets[left], out.offsets[left + 1]
    to, to_end = out.offsets[right], out.offsets[right + 1]
    while at < at_end and to < to_end:
        if out.terms[at] != out.terms[to]:
            return bool(out.terms[at] < out.terms[to])
        at += 1
        to += 1
    return bool(at == at_end and to < to_end)


@kernel
def _contains(out: _Clauses, outer: int, inner: int) -> bool:
    """Tell whether every term of the inner clause is one of the outer."""
    at, at_end = out.offsets[outer], out.offsets[outer + 1]
    for slot in range(out.offsets[inner], out.offsets[inner + 1]):
        while at < at_end and out.terms[at] < out.terms[slot]:
            at += 1
        if at == at_end or out.terms[at] != out.terms[slot]:
            return False
    return True
