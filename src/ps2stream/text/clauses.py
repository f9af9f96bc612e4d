"""Expressions to clauses of term hashes, a whole column at a time.

Kernels read them (``text.lexer``), cut keywords that are not ASCII (``text.non_ascii``) and bring them into
normal form (``text.normal_form``). What they refuse is read by :func:`ps2stream.model.expressions.parse`:
rows that are wrong, so that every error text has one source, and rows with a keyword that only Python can
normalise. Both roads end in the same canonical form, so the arrays do not tell which one a row took: terms
ascend within a clause, clauses ascend within a row.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, Ragged, UInt64s
from ps2stream.arrow import Spans, spans_of
from ps2stream.errors import ExpressionError
from ps2stream.kernels import kernel
from ps2stream.model.expressions import parse
from ps2stream.text.characters import characters
from ps2stream.text.hashing import hash_term
from ps2stream.text.lexer import Tokens, lex, spell_out
from ps2stream.text.non_ascii import cut_non_ascii
from ps2stream.text.normal_form import Clauses, normalize
from ps2stream.text.stop_words import stop_table
from ps2stream.text.tokenizer import Tokenizer, fold_ascii, splice

_CACHED_EXPRESSIONS = 1 << 14
_CACHED_TERMS = 1 << 16

_hash = functools.lru_cache(maxsize=_CACHED_TERMS)(hash_term)

# They leave an expression when it is in normal form.
_NO_STOPS = stop_table([])


class CompiledExpressions(NamedTuple):
    """The clauses of a column of expressions.

    Row ``i`` has the clauses ``clause_offsets[i]`` to ``clause_offsets[i + 1]``; clause ``c`` has the terms
    ``term_offsets[c]`` to ``term_offsets[c + 1]`` of ``terms``. A row with an error has no clause.
    """

    terms: UInt64s
    term_offsets: Int64s
    clause_offsets: Int64s
    errors: dict[int, str]


def compile_expressions(expressions: pa.Array, tokenizer: Tokenizer) -> CompiledExpressions:
    """Compile a string array; a row that is null or does not parse gets an error and no clauses."""
    compiled = compile_spans(spans_of(expressions), tokenizer)
    for row in compiled.errors:
        if not expressions[row].is_valid:
            compiled.errors[row] = "expression is null"
    return compiled


def compile_spans(spans: Spans, tokenizer: Tokenizer) -> CompiledExpressions:
    """Compile expressions; a row that does not parse gets an error and no clauses."""
    with np.errstate(over="ignore"):
        tokens, clauses, clause_offsets, refused = _compile_ascii(spans, tokenizer.stop_table)
        if len(tokens.bounds):
            clauses, clause_offsets, refused = normalize(_with_keywords(spans, tokens), tokenizer.stop_table)
    if len(refused) == 0:
        return CompiledExpressions(clauses.terms, clauses.offsets, clause_offsets, {})
    errors: dict[int, str] = {}
    patches: list[tuple[tuple[int, ...], ...]] = []
    for row in refused.tolist():
        span = spans.data[spans.offsets[row] : spans.offsets[row + 1]]
        compiled = _compile_any(span.tobytes().decode("utf-8", "replace"), tokenizer.stop_words)
        if isinstance(compiled, str):
            errors[row] = compiled
            compiled = ()
        patches.append(compiled)
    return _patched(clauses, clause_offsets, refused, patches)._replace(errors=errors)


@kernel
def _compile_ascii(spans: Spans, stops: UInt64s) -> tuple[Tokens, Clauses, Int64s, Int64s]:
    """Read all rows and, unless one has a keyword that is not ASCII, bring them into normal form.

    One call for what is most often all there is to do: each brings its arrays to Python and back.
    """
    tokens = lex(spans, fold_ascii(spans.data))
    if len(tokens.bounds):
        nothing = np.zeros(1, np.int64)
        return tokens, Clauses(np.empty(0, np.uint64), nothing), nothing, nothing
    clauses, clause_offsets, refused = normalize(tokens, stops)
    return tokens, clauses, clause_offsets, refused


def _with_keywords(spans: Spans, tokens: Tokens) -> Tokens:
    """Return the tokens of all rows; those that are wrong or hard to normalise have none."""
    # As in spans: a writeable array would have the kernel compiled once more.
    tokens.bounds.setflags(write=False)
    keywords = np.arange(0, len(tokens.bounds), 2)
    terms, _ = cut_non_ascii(spans.data, tokens.bounds, keywords, characters(), _NO_STOPS)
    return spell_out(tokens, terms)


@functools.lru_cache(maxsize=_CACHED_EXPRESSIONS)
def _compile_any(text: str, stop_words: frozenset[str]) -> tuple[tuple[int, ...], ...] | str:
    """Compile one expression, or say why that cannot be done."""
    try:
        clauses = parse(text).without(stop_words).clauses()
    except ExpressionError as error:
        return str(error)
    return tuple(sorted(tuple(sorted(map(_hash, clause))) for clause in clauses))


def _patched(
    clauses: Clauses, clause_offsets: Int64s, rows: Int64s, patches: list[tuple[tuple[int, ...], ...]]
) -> CompiledExpressions:
    """Fill clauses into some rows that are empty, once for their sizes and once for their terms."""
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
