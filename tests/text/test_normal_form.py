"""The normal form of tokens is that of the parsed expression, and refused is what the parser refuses."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pyarrow as pa
import pytest

from ps2stream.arrow import spans_of
from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import MAX_CLAUSES, MAX_DISTRIBUTED, parse
from ps2stream.text.hashing import hash_term
from ps2stream.text.lexer import lex
from ps2stream.text.normal_form import FIRST_CAPACITY, normalize
from ps2stream.text.tokenizer import Tokenizer, fold_ascii

pytestmark = pytest.mark.kernel

PLAIN = Tokenizer()
STOPPING = Tokenizer(["w0", "w3"])

Clauses = list[tuple[int, ...]]


def _normalized(column: list[str], tokenizer: Tokenizer) -> list[Clauses | None]:
    """Return the clauses of each row, or None for what is refused."""
    spans = spans_of(pa.array(column, pa.string()))
    clauses, offsets, refused = normalize(lex(spans, fold_ascii(spans.data)), tokenizer.stop_table)
    terms = clauses.terms.tolist()
    each = [tuple(terms[first:last]) for first, last in pairwise(clauses.offsets.tolist())]
    rows: list[Clauses | None] = [each[first:last] for first, last in pairwise(offsets.tolist())]
    for row in refused.tolist():
        assert rows[row] == []
        rows[row] = None
    return rows


def _parsed(text: str, tokenizer: Tokenizer) -> Clauses | None:
    try:
        clauses = parse(text).without(tokenizer.stop_words).clauses()
    except ExpressionError:
        return None
    return sorted(tuple(sorted(map(hash_term, clause))) for clause in clauses)


def _assert_equal(column: list[str], tokenizer: Tokenizer) -> None:
    for text, row in zip(column, _normalized(column, tokenizer), strict=True):
        assert row == _parsed(text, tokenizer), text


def _nested(rng: random.Random, words: list[str]) -> str:
    """Draw an expression of any shape."""

    def draw(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(words)
        text = rng.choice([" OR ", " AND ", " "]).join(draw(depth - 1) for _ in range(rng.randint(1, 3)))
        return f"({text})" if rng.random() < 0.8 else text

    return draw(rng.randint(1, 5))


def _product(rng: random.Random, words: list[str]) -> str:
    """Draw a conjunction of alternatives: many clauses on the way, few of them left if words are few."""
    factors = [_sum(rng, words, rng.choice([2, 3, 9, 25])) for _ in range(rng.randint(1, 6))]
    return rng.choice([" ", " OR "]).join(f"({factor})" for factor in factors)


def _sum(rng: random.Random, words: list[str], most: int = 700) -> str:
    n = rng.randint(1, most)
    return " OR ".join(" ".join(rng.choices(words, k=rng.randint(1, 3))) for _ in range(n))


@pytest.mark.parametrize("tokenizer", [PLAIN, STOPPING], ids=["plain", "stopping"])
@pytest.mark.parametrize(("draw", "n"), [(_nested, 200), (_product, 60), (_sum, 5)])
def test_any_expression_has_the_clauses_of_the_parser_or_is_refused_by_both(
    draw: Callable[[random.Random, list[str]], str], n: int, tokenizer: Tokenizer
) -> None:
    rng = random.Random(6)
    column = [draw(rng, [f"w{i}" for i in range(rng.choice([2, 5, 12, 60, 1000]))]) for _ in range(n)]
    _assert_equal(column, tokenizer)
    assert {row is None for row in _normalized(column, tokenizer)} == (
        {False} if draw is _nested and tokenizer is PLAIN else {False, True}
    )


def _repeated(n: int, n_words: int) -> str:
    """Ask for one of two words again and again, beside others."""
    return " ".join([*(f"x{number}" for number in range(n_words)), *["(a OR b)"] * n])


def _alternatives(n: int, first: int = 0) -> str:
    return " OR ".join(f"w{number}" for number in range(first, first + n))


@pytest.mark.parametrize(
    ("text", "n_clauses"),
    [
        (_alternatives(MAX_CLAUSES), MAX_CLAUSES),
        (_alternatives(MAX_CLAUSES + 1), None),
        (f"({_alternatives(8)}) ({_alternatives(8, 8)})", 64),
        (f"({_alternatives(8)}) ({_alternatives(9, 8)})", None),
        # What is absorbed in the end counts on the way.
        (f"w0 OR w0 ({_alternatives(MAX_DISTRIBUTED - 1, 1)})", 1),
        (f"w0 OR w0 ({_alternatives(MAX_DISTRIBUTED, 1)})", None),
        # Alternatives of alternatives are as many as if no parenthesis parted them.
        (f"(w0 OR w0 ({_alternatives(MAX_DISTRIBUTED - 1, 1)})) OR x", None),
        (f"(w0 OR w0 ({_alternatives(MAX_DISTRIBUTED - 1, 1)})) AND x", 1),
        # Factors are taken by their size: in the order of writing, 600 clauses would lie on the way.
        (f"({_alternatives(20)}) ({_alternatives(30)}) (w0 OR w1)", 2),
        ("(a OR b) " * 500, 2),
        ("(a OR b) (c OR d) " * 5, 4),
        (" ".join(f"(a{number} OR b{number})" for number in range(6)), 64),
        (" ".join(f"(a{number} OR b{number})" for number in range(7)), None),
        (" ".join(f"(a{number} OR b{number})" for number in range(20)), None),
        # Terms that are written while distributing count over the whole expression, about 2,000 a step.
        (_repeated(4, 500), 2),
        (_repeated(99, 500), None),
        (f"({_repeated(64, 500)}) OR ({_repeated(64, 501)})", None),
        ("a (a OR b) (c OR a)", 1),
        ("(a OR (b OR (c OR (d e)))) OR a b", 4),
        ("((a)) ((b OR c)) (((d e)))", 2),
    ],
)
def test_limits_hold_where_they_hold_for_the_parser(text: str, n_clauses: int | None) -> None:
    first, row, last = _normalized(["x OR y", text, "x OR y"], PLAIN)
    assert (None if row is None else len(row)) == n_clauses
    assert row == _parsed(text, PLAIN)
    assert first == last == _parsed("x OR y", PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"w{number}" for number in range(FIRST_CAPACITY + 1)),
        f"({_alternatives(8)}) {' '.join(f'x{number}' for number in range(FIRST_CAPACITY // 4))} (y OR z)",
        f"({_alternatives(20)}) " * (FIRST_CAPACITY // 20 + 1),
        " OR ".join(f"({' '.join(f'x{n}y{m}' for m in range(FIRST_CAPACITY // 20))})" for n in range(30)),
    ],
)
def test_rows_that_need_more_room_get_it(text: str) -> None:
    _assert_equal(["a OR b", text, "(c OR d) e"], PLAIN)


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("w0 OR a", "a"),
        ("w0 a OR b", "a OR b"),
        ("w0 a OR a b OR c", "a OR c"),
        ("(w0 OR a) (w3 OR b)", "a b OR a OR b"),
        # A stop word absorbs clauses before it goes.
        ("w0 OR w0 a OR b", "b"),
        ("w0 OR w0 a", None),
        ("w0 (w3 OR w0)", None),
    ],
)
def test_stop_words_leave_the_normal_form(text: str, without: str | None) -> None:
    (row,) = _normalized([text], STOPPING)
    assert row == (None if without is None else _parsed(without, PLAIN))
    assert row == _parsed(text, STOPPING)
