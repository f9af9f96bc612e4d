"""Compiled expressions are the hashed normal forms of parsed ones, whichever road they took."""

import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import Expression, parse
from ps2stream.text.clauses import CompiledExpressions, compile_expressions
from ps2stream.text.hashing import hash_term
from ps2stream.text.tokenizer import Tokenizer
from sizes import examples
from strategies import ODD_CHARACTERS, doubtful_expressions, expressions, flat_expressions

pytestmark = pytest.mark.kernel

PLAIN = Tokenizer()
STOPPING = Tokenizer(["fire", "a", "s"])

Clauses = list[tuple[int, ...]]


def _rows(compiled: CompiledExpressions) -> list[Clauses]:
    terms = compiled.terms.tolist()
    clauses = [tuple(terms[a:b]) for a, b in pairwise(compiled.term_offsets.tolist())]
    return [clauses[a:b] for a, b in pairwise(compiled.clause_offsets.tolist())]


def _expected(text: str | None, tokenizer: Tokenizer) -> tuple[Clauses, str | None]:
    if text is None:
        return [], "expression is null"
    try:
        clauses = parse(text).without(tokenizer.stop_words).clauses()
    except ExpressionError as error:
        return [], str(error)
    return sorted(tuple(sorted(map(hash_term, clause))) for clause in clauses), None


def _assert_compiled(column: list[str | None], tokenizer: Tokenizer, array: pa.Array | None = None) -> None:
    compiled = compile_expressions(pa.array(column, pa.string()) if array is None else array, tokenizer)
    expected = [_expected(text, tokenizer) for text in column]
    assert _rows(compiled) == [clauses for clauses, _ in expected]
    assert compiled.errors == {row: error for row, (_, error) in enumerate(expected) if error is not None}
    assert compiled.terms.dtype == np.uint64
    assert compiled.term_offsets.dtype == compiled.clause_offsets.dtype == np.int64


@given(
    st.lists(st.one_of(st.none(), flat_expressions, expressions, doubtful_expressions), max_size=8),
    st.sampled_from([PLAIN, STOPPING]),
)
@settings(max_examples=examples(200), deadline=None)
def test_compiling_equals_parsing(column: list[str | None], tokenizer: Tokenizer) -> None:
    _assert_compiled(column, tokenizer)


#: Characters of all kinds between the words of the grammar; few of them parse.
odd_expressions = st.lists(
    st.one_of(st.sampled_from([" a ", " OR ", " AND ", "(", ")", "\u3000"]), st.sampled_from(ODD_CHARACTERS)),
    max_size=8,
).map("".join)


@given(
    st.lists(odd_expressions.map(lambda text: f"b {text} a"), min_size=1, max_size=6),
    st.sampled_from([PLAIN, STOPPING]),
)
@settings(max_examples=examples(200), deadline=None)
def test_odd_characters_compile_as_they_parse(column: list[str], tokenizer: Tokenizer) -> None:
    _assert_compiled([*column], tokenizer)


def _refuse_to_parse(text: str) -> Expression:
    raise AssertionError(f"{text!r} must not need the parser")


@pytest.mark.parametrize("tokenizer", [PLAIN, STOPPING], ids=["plain", "stopping"])
def test_only_what_is_wrong_or_hard_to_normalise_needs_the_parser(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = [
        "a OR b c",
        "rain AND (smoke OR (b c))",
        "(b OR c) (d OR fire)",
        "über OR straße",
        "u\u0308ber (\uff26\uff29\uff32\uff25 OR дым)\u3000煙",
        "don't \u2003 (\ufb01n OR b)",
        " OR ".join(f"w{number % 7}" for number in range(600)),
    ]
    expected = [_expected(text, tokenizer) for text in column]
    monkeypatch.setattr("ps2stream.text.clauses.parse", _refuse_to_parse)
    compiled = compile_expressions(pa.array(column), tokenizer)
    assert compiled.errors == {}
    assert [(clauses, None) for clauses in _rows(compiled)] == expected


def test_bytes_that_are_not_utf8_are_read_as_replaced() -> None:
    parts = [b"fire\xffsmoke OR rain", b"\xe2\x80", b"a \xe3\x80\x80 b", b"a \xf0\xe3\x80\x80 b\xc2"]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    broken = pa.Array.from_buffers(
        pa.string(), len(parts), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    )
    _assert_compiled([part.decode("utf-8", "replace") for part in parts], PLAIN, broken)


@given(st.lists(flat_expressions, min_size=1, max_size=6))
@settings(max_examples=examples(100), deadline=None)
def test_parentheses_that_change_nothing_change_no_clause(column: list[str]) -> None:
    wrapped = pa.array([f"({text})" for text in column])
    assert _rows(compile_expressions(pa.array(column), PLAIN)) == _rows(compile_expressions(wrapped, PLAIN))


@pytest.mark.parametrize(
    "text",
    [
        "a OR b OR a",
        "a b OR a OR b c",
        "b a a OR a b",
        "a OR a b OR a b c OR d",
        "x-y OR y",
        "AND. OR NOT! OR or",
        "ANDY OR ORAL NOTE",
        "a\x1cb\x00c\x0bOR\rd",
        " OR ".join(f"w{number}" for number in range(64)),
        " OR ".join(f"w{number}" for number in range(65)),
        " OR ".join(f"w{number % 3}" for number in range(100)),
        " ".join(f"w{number}" for number in range(5000)),
        "",
        "OR",
        "a AND",
        "a OR OR b",
        "a NOT b",
        "a -- b",
        "(" * 10_000,
        "é OR (fire smoke)",
    ],
)
def test_known_expressions_compile_as_they_parse(text: str) -> None:
    _assert_compiled(["before", text, "after OR later"], PLAIN)


def test_slices_and_large_strings_compile_the_same() -> None:
    column = ["skipped", "a OR b", None, "(c)", "d AND", "skipped"]
    for kind in (pa.string(), pa.large_string()):
        _assert_compiled(column[1:5], PLAIN, pa.array(column, kind).slice(1, 4))


def test_an_expression_of_stop_words_is_an_error_with_its_reason() -> None:
    compiled = compile_expressions(pa.array(["Fire", "fire OR rain", "rain"]), STOPPING)
    assert compiled.errors == {0: "expression consists only of stop words at position 0 of 'fire'"}
    assert _rows(compiled) == [[], [(hash_term("rain"),)], [(hash_term("rain"),)]]


def test_an_empty_column_compiles_to_nothing() -> None:
    compiled = compile_expressions(pa.array([], pa.string()), PLAIN)
    assert len(compiled.terms) == 0
    assert compiled.term_offsets.tolist() == compiled.clause_offsets.tolist() == [0]


def test_a_column_of_errors_has_no_clauses() -> None:
    compiled = compile_expressions(pa.array(["", None]), PLAIN)
    assert sorted(compiled.errors) == [0, 1]
    assert compiled.clause_offsets.tolist() == [0, 0, 0]


def test_compiling_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_expressions(pa.array(["a OR b", "(c)", None]), PLAIN)
