"""However many combining marks a text has, no more than thirty in a row are normalised together."""

from __future__ import annotations

import itertools
import re
import sys
import unicodedata
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import parse
from ps2stream.model.limits import MAX_EXPRESSION_BYTES, MAX_TEXT_BYTES
from ps2stream.text.clauses import compile_expressions
from ps2stream.text.combining_marks import MAX_MARKS, stream_safe
from ps2stream.text.hashing import hash_term
from ps2stream.text.terms import terms_of
from ps2stream.text.tokenizer import Tokenizer
from strategies import mark_runs, marked_texts

JOINER = "\u034f"
PLAIN = Tokenizer()
NORMALIZE = unicodedata.normalize


def _is_mark(text: str) -> list[bool]:
    """Tell of each character of the decomposition, before it is put in order, whether it is a non-starter."""
    parts = (part for character in text for part in NORMALIZE("NFKD", character))
    return [unicodedata.combining(part) > 0 for part in parts]


def _longest_run(text: str) -> int:
    return max((len(list(run)) for is_mark, run in itertools.groupby(_is_mark(text)) if is_mark), default=0)


def test_the_characters_are_as_the_search_for_long_runs_takes_them_to_be() -> None:
    for code in itertools.chain(range(0xD800), range(0xE000, sys.maxunicode + 1)):
        flags = _is_mark(chr(code))
        if any(flags):
            n_first = next((at for at, flag in enumerate(flags) if not flag), len(flags))
            n_last = next((at for at, flag in enumerate(reversed(flags)) if not flag), len(flags))
            assert n_first in (0, len(flags)), "nothing comes after marks that come first"
            assert n_last <= (2 if n_first else 3)
            assert not n_first or re.match(r"[\W\uff9e\uff9f]", chr(code))
        else:
            assert unicodedata.combining(chr(code)) == 0


@given(marked_texts)
@settings(max_examples=200, deadline=None)
def test_long_runs_are_parted_where_they_must_be_and_nothing_else_changes(text: str) -> None:
    safe = stream_safe(text)
    assert _longest_run(safe) <= MAX_MARKS
    assert safe.replace(JOINER, "") == text.replace(JOINER, "")
    assert (safe == text) == (_longest_run(text) <= MAX_MARKS)
    assert stream_safe(safe) == safe


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a" + "\u0301" * 30, "a" + "\u0301" * 30),
        ("a" + "\u0301" * 31, "a" + "\u0301" * 30 + JOINER + "\u0301"),
        ("\u0301" * 61, "\u0301" * 30 + JOINER + "\u0301" * 30 + JOINER + "\u0301"),
        # The last letter of a decomposition counts with its marks, and a mark of two counts twice.
        ("\u1ec7" + "\u0316" * 29, "\u1ec7" + "\u0316" * 28 + JOINER + "\u0316"),
        ("\u0344" * 16, "\u0344" * 15 + JOINER + "\u0344"),
        ("\u0301" + "\u0344" * 15, "\u0301" + "\u0344" * 14 + JOINER + "\u0344"),
        ("\uff76" + "\uff9e" * 31, "\uff76" + "\uff9e" * 30 + JOINER + "\uff9e"),
        ("!" * 40 + "\u0301" * 31, "!" * 40 + "\u0301" * 30 + JOINER + "\u0301"),
        ("!" * 40, "!" * 40),
    ],
)
def test_a_run_is_parted_after_thirty_marks(text: str, safe: str) -> None:
    assert stream_safe(text) == safe


def _hostile(n_bytes: int) -> list[str]:
    units = ["\u0301\u0316", "\u0316\u0301", "\u0344", "\u0f73\u0301", "\uff9e\u0316", "\U0001d165\u0301"]
    texts = [unit * (n_bytes // len(unit.encode())) for unit in [*units, "\u1ec7"]]
    in_order = sorted("\u0301\u0316\u0327\u05b0\u064b" * (n_bytes // 10 - 1), key=unicodedata.combining)
    return [*texts, "".join(in_order), "a" + "\u0316" * (n_bytes // 2 - 2) + "\u0301"]


@pytest.fixture
def longest_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the longest run of marks in whatever is normalised."""
    seen: list[int] = []

    def normalize(form: Literal["NFKC", "NFKD"], text: str) -> str:
        seen.append(_longest_run(text))
        return NORMALIZE(form, text)

    monkeypatch.setattr(unicodedata, "normalize", normalize)
    return seen


def test_the_longest_texts_never_have_many_marks_normalised_together(longest_runs: list[int]) -> None:
    texts = _hostile(MAX_TEXT_BYTES)
    terms = PLAIN.tokenize(pa.array(texts))
    for row, text in enumerate(texts):
        assert terms.row(row).tolist() == sorted(map(hash_term, terms_of(text)))
    assert max(longest_runs) == MAX_MARKS


def test_the_longest_keywords_never_have_many_marks_normalised_together(longest_runs: list[int]) -> None:
    column = [f"word a{text}" for text in _hostile(MAX_EXPRESSION_BYTES - 10)]
    compiled = compile_expressions(pa.array(column), PLAIN)
    assert compiled.errors == {}
    for row, text in enumerate(column):
        (clause,) = parse(text).clauses()
        start, stop = compiled.term_offsets[row], compiled.term_offsets[row + 1]
        assert compiled.terms[start:stop].tolist() == sorted(map(hash_term, clause))
    assert max(longest_runs) == MAX_MARKS


@pytest.mark.kernel
@pytest.mark.parametrize(("n_marks", "word"), [(28, "b\u00e1"), (29, "b\u00e1"), (30, "ba"), (31, "ba")])
def test_what_would_compose_with_a_mark_too_far_away_does_not(n_marks: int, word: str) -> None:
    # Marks below come before the accent in order and leave it to compose with the letter.
    text, terms = "ba" + "\u0316" * n_marks + "\u0301c", {word, "c"}
    assert terms_of(text) == terms
    assert PLAIN.tokenize(pa.array([text])).row(0).tolist() == sorted(map(hash_term, terms))


@pytest.mark.kernel
@given(st.lists(marked_texts, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_texts_with_long_runs_have_the_terms_of_the_definition(batch: list[str]) -> None:
    terms = PLAIN.tokenize(pa.array(batch))
    for row, text in enumerate(batch):
        assert terms.row(row).tolist() == sorted(map(hash_term, terms_of(text))), ascii(text)


@pytest.mark.kernel
@given(st.lists(mark_runs, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_keywords_with_long_runs_compile_as_they_parse(keywords: list[str]) -> None:
    text = " OR ".join(keywords)
    compiled = compile_expressions(pa.array([text]), PLAIN)
    clauses: tuple[tuple[str, ...], ...] = ()
    errors: dict[int, str] = {}
    try:
        clauses = parse(text).clauses()
    except ExpressionError as error:
        errors[0] = str(error)
    assert compiled.errors == errors
    ends = compiled.term_offsets.tolist()
    found = [tuple(compiled.terms[first:last].tolist()) for first, last in itertools.pairwise(ends)]
    assert found == sorted(tuple(sorted(map(hash_term, clause))) for clause in clauses)
