"""Tokens are those of the grammar, and a row that breaks it has none."""

from __future__ import annotations

import re
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrays import Ragged
from ps2stream.arrow import spans_of
from ps2stream.model.expressions import MAX_DEPTH
from ps2stream.text.hashing import hash_term
from ps2stream.text.lexer import CLOSE, KEYWORD, OPEN, OR, TERM, WIDE_SPACES, Tokens, lex, spell_out
from ps2stream.text.tokenizer import fold_ascii
from strategies import ODD_CHARACTERS, expressions

pytestmark = pytest.mark.kernel

MARKS = {"OR": OR, "(": OPEN, ")": CLOSE}

spaced_keywords = st.lists(st.text(st.sampled_from([*ODD_CHARACTERS, *"ab é"]), max_size=6), max_size=5).map(
    " a ".join
)


def _lexed(column: list[str]) -> Tokens:
    spans = spans_of(pa.array(column, pa.string()))
    return lex(spans, fold_ascii(spans.data))


def _rows(tokens: Tokens) -> list[list[tuple[int, int]]]:
    """Return each row's tokens; the value of what has none is 0."""
    each = [
        (kind, value if kind in (TERM, KEYWORD) else 0)
        for kind, value in zip(tokens.kinds.tolist(), tokens.values.tolist(), strict=True)
    ]
    return [each[first:last] for first, last in pairwise(tokens.offsets.tolist())]


def _terms(*words: str) -> list[tuple[int, int]]:
    return [(TERM, hash_term(word)) for word in words]


def test_wide_spaces_are_those_of_the_regular_expression() -> None:
    characters = map(chr, range(128, sys.maxunicode + 1))
    assert sorted(WIDE_SPACES) == [each for each in characters if re.match(r"\s", each)]


@given(spaced_keywords)
@settings(max_examples=200, deadline=None)
def test_keywords_that_are_not_ascii_end_where_the_regular_expression_ends_them(text: str) -> None:
    plain = text.replace("(", "").replace(")", "") + " a"
    foreign = [word for word in re.findall(r"[^\s()]+", plain) if not word.isascii()]
    tokens = _lexed([plain])
    data = plain.encode()
    if len(tokens.kinds):
        bounds = tokens.bounds.tolist()
        assert [data[a:b].decode() for a, b in zip(bounds[::2], bounds[1::2], strict=True)] == foreign
        assert [value for kind, value in _rows(tokens)[0] if kind == KEYWORD] == list(range(len(foreign)))
    else:
        assert any(re.fullmatch(r"[^\w\s]+", word, re.ASCII) for word in plain.split())


@given(expressions)
@settings(max_examples=100, deadline=None)
def test_marks_stand_in_their_order(text: str) -> None:
    marks = [MARKS[word] for word in re.findall(r"[()]|[^\s()]+", text) if word in MARKS]
    assert [kind for kind in _lexed([text]).kinds.tolist() if kind in MARKS.values()] == marks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fire", _terms("fire")),
        ("a AND b", _terms("a", "b")),
        ("a OR b", [*_terms("a"), (OR, 0), *_terms("b")]),
        ("x-y z", _terms("x", "y", "z")),
        ("a(b)c", [*_terms("a"), (OPEN, 0), *_terms("b"), (CLOSE, 0), *_terms("c")]),
        ("and or not", _terms("and", "or", "not")),
        ("ANDY AND ORAL", _terms("andy", "oral")),
        ("é\u3000b", [(KEYWORD, 0), *_terms("b")]),
        ("\u2003a\xa0", _terms("a")),
    ],
)
def test_known_expressions(text: str, expected: list[tuple[int, int]]) -> None:
    assert _rows(_lexed(["a", text, "b"])) == [_terms("a"), expected, _terms("b")]


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\u3000", "NOT", "a NOT b", "--", "a -- b"),
        *("OR", "a OR", "AND a", "a OR OR b", "a AND OR b"),
        *("()", "(a", "a)", "(a OR)", "( OR a)", ")a("),
        "(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1),
    ],
)
def test_a_row_with_anything_wrong_has_no_tokens(text: str) -> None:
    tokens = _lexed(["é", text, "ü"])
    assert _rows(tokens) == [[(KEYWORD, 0)], [], [(KEYWORD, 1)]]
    assert tokens.bounds.tolist() == [0, 2, 2 + len(text.encode()), 4 + len(text.encode())]


def test_parentheses_nest_as_deep_as_they_may() -> None:
    tokens = _lexed(["(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH])
    assert tokens.kinds.tolist() == [OPEN] * MAX_DEPTH + [TERM] + [CLOSE] * MAX_DEPTH


def test_keywords_are_spelled_out_and_one_without_terms_takes_its_row_along() -> None:
    tokens = _lexed(["a é OR ü", "b", "c ö d ä", "ß (e)"])
    terms = Ragged(np.array([7, 8, 9, 10], np.uint64), np.array([0, 2, 3, 3, 3, 4]))
    assert _rows(spell_out(tokens, terms)) == [
        [*_terms("a"), (TERM, 7), (TERM, 8), (OR, 0), (TERM, 9)],
        _terms("b"),
        [],
        [(TERM, 10), (OPEN, 0), *_terms("e"), (CLOSE, 0)],
    ]
