"""Expressions: what parses, what does not and where, and that the normal form means the same."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import (
    MAX_CLAUSES,
    MAX_DEPTH,
    MAX_DISTRIBUTED,
    And,
    Expression,
    Or,
    Term,
    parse,
)
from ps2stream.model.limits import MAX_EXPRESSION_BYTES
from strategies import doubtful_expressions, expressions

A, B, C = Term("a"), Term("b"), Term("c")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a", A),
        ("A", A),
        ("a b", And((A, B))),
        ("a AND b", And((A, B))),
        ("a OR b", Or((A, B))),
        ("a OR b AND c", Or((A, And((B, C))))),
        ("a b OR c", Or((And((A, B)), C))),
        ("(a OR b) c", And((Or((A, B)), C))),
        ("a(b)c", And((A, B, C))),
        ("((a))", A),
        ("(a AND b) AND c", And((A, B, C))),
        ("a and b", And((A, Term("and"), B))),
        ("Or", Term("or")),
        ("#a, 'b'", And((A, B))),
        ("b-a", And((A, B))),
        ("AND.", Term("and")),
        ("ﬁre\u3000rain", And((Term("fire"), Term("rain")))),
    ],
)
def test_parse_understands(text: str, expression: Expression) -> None:
    assert parse(text) == expression


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "must have a keyword; got none"),
        (" \n ", 0, "must have a keyword; got none"),
        ("AND a", 0, "'AND' needs a keyword or a parenthesis before it"),
        ("a OR", 2, "'OR' needs a keyword or a parenthesis after it"),
        ("a AND OR b", 6, "'OR' needs a keyword or a parenthesis before it"),
        ("a ()", 3, r"'\)' needs a keyword or a parenthesis before it"),
        ("(a OR )", 6, r"'\)' needs a keyword"),
        ("(", 0, r"'\(' needs a keyword or a parenthesis after it"),
        ("a (b (c)", 2, "never closed"),
        ("a) b", 1, "never opened"),
        ("a AND NOT b", 6, "NOT is reserved"),
        ("a ... b", 2, "must have a letter or a digit"),
        ("fire 🔥", 5, "must have a letter or a digit"),
        ("(" * 8_000 + "a" + ")" * 8_000, MAX_DEPTH, "nest at most 100 deep"),
    ],
)
def test_an_error_says_where_and_what(text: str, position: int, message: str) -> None:
    with pytest.raises(ExpressionError, match=message) as caught:
        parse(text)
    assert caught.value.position == position
    assert caught.value.expression == text


def test_the_deepest_allowed_nesting_works_throughout() -> None:
    text = "a"
    for level in range(MAX_DEPTH):
        text = f"(w{level} AND {text} OR v{level} AND w)" if level < 20 else f"({text} AND w)"
    expression = parse(text)
    assert expression.evaluate(frozenset({"v19", "w"}))
    assert parse(str(expression)).clauses() == expression.clauses()


def test_clauses_are_canonical() -> None:
    assert parse("b AND a OR c").clauses() == (("a", "b"), ("c",))
    assert parse("c OR (a b)").clauses() == parse("b a OR c OR a AND b AND a").clauses()
    assert parse("(a OR b) AND (c OR d)").clauses() == (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"))


def test_absorbed_clauses_are_dropped() -> None:
    assert parse("a OR a AND b").clauses() == (("a",),)
    assert parse("(a OR b) AND a").clauses() == (("a",),)
    assert parse("(a OR b) AND (b OR a)").clauses() == (("a",), ("b",))


def test_the_limit_of_clauses_counts_after_absorption() -> None:
    words = [f"w{number}" for number in range(MAX_CLAUSES + 1)]
    assert len(parse(" OR ".join(words[:-1])).clauses()) == MAX_CLAUSES
    with pytest.raises(ExpressionError, match="at most 64 clauses in normal form; got 65"):
        parse(" OR ".join(words))
    assert parse(f"({' OR '.join(words)}) AND w0").clauses() == (("w0",),)
    assert parse(" OR ".join(["a"] * 1000)).clauses() == (("a",),)


@pytest.mark.parametrize(
    "text",
    [
        " AND ".join(f"(a{number} OR b{number})" for number in range(700)),
        " OR ".join(f"w{number}" for number in range(1_700)),
        " OR ".join(
            f"({' OR '.join(f'a{i}x{j}' for j in range(22))}) ({' OR '.join(f'b{i}x{j}' for j in range(22))})"
            for i in range(30)
        ),
    ],
)
def test_a_blow_up_is_refused_early(text: str) -> None:
    with pytest.raises(ExpressionError, match="within 512 clauses on the way") as caught:
        parse(text)
    assert caught.value.position == 0
    n_clauses = re.search(r"; got (\d+) at", str(caught.value))
    assert n_clauses is not None
    assert MAX_DISTRIBUTED < int(n_clauses[1]) <= 2 * MAX_DISTRIBUTED, "at the first step beyond the limit"


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"w{number}" for number in range(1_000)) + " (a OR b)" * 1_000,
        " ".join(f"(a OR b{number})" for number in range(1_000)),
        " ".join(f"(a{number % 8} OR b{number % 8})" for number in range(1_000)),
        " ".join([f"w{number}" for number in range(2_000)] + [f"(a{n} OR b{n})" for n in range(9)]),
    ],
)
def test_long_clauses_are_not_distributed_again_and_again(text: str) -> None:
    with pytest.raises(ExpressionError, match="within 131,072 terms on the way") as caught:
        parse(text)
    assert caught.value.position == 0


def test_as_many_keywords_as_an_expression_holds_are_one_clause() -> None:
    text = " ".join(f"w{number}" for number in range(2_800))
    assert len(text) > 0.9 * MAX_EXPRESSION_BYTES
    (clause,) = parse(text).clauses()
    assert len(clause) == 2_800


@pytest.mark.parametrize("character", ["a", "\u00e9", "\uac00", "\U0001d518"])
def test_an_expression_of_the_most_bytes_is_fine_and_one_more_is_not(character: str) -> None:
    fitting = character * (MAX_EXPRESSION_BYTES // len(character.encode()))
    padded = fitting + "." * (MAX_EXPRESSION_BYTES - len(fitting.encode()))
    assert len(parse(padded).clauses()) == 1
    with pytest.raises(ExpressionError, match=r"^expression must have at most 16,384 bytes; got 16,385 at"):
        parse(padded + ".")


def test_an_error_in_a_long_expression_quotes_what_stands_around_it() -> None:
    text = "word " * 1_000 + "NOT " + "other " * 1_000
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert (caught.value.position, caught.value.expression) == (5_000, text)
    assert len(str(caught.value)) < 150
    assert "at position 5000 of \u2026'" in str(caught.value)
    assert "word word NOT other other" in str(caught.value)


def _subsets(terms: frozenset[str]) -> list[frozenset[str]]:
    few = sorted(terms)[:6]
    return [frozenset(some) for size in range(len(few) + 1) for some in itertools.combinations(few, size)]


@given(expressions)
@settings(max_examples=150, deadline=None)
def test_normal_form_printed_form_and_expression_mean_the_same(text: str) -> None:
    expression = parse(text)
    clauses = expression.clauses()
    assert clauses == tuple(sorted(tuple(sorted(set(clause))) for clause in clauses))
    assert parse(str(expression)).clauses() == clauses
    assert not any(set(one) <= set(other) for one, other in itertools.permutations(clauses, 2))
    for terms in _subsets(frozenset().union(*clauses)):
        assert expression.evaluate(terms) == any(terms.issuperset(clause) for clause in clauses)


@given(doubtful_expressions)
@settings(max_examples=200, deadline=None)
def test_anything_parses_or_raises_an_error_with_a_position_inside(text: str) -> None:
    outcome: Expression | ExpressionError
    try:
        outcome = parse(text)
    except ExpressionError as error:
        outcome = error
    if isinstance(outcome, ExpressionError):
        assert 0 <= outcome.position <= len(text)
    else:
        assert 1 <= len(outcome.clauses()) <= MAX_CLAUSES


@given(expressions, st.sets(st.sampled_from(["fire", "a", "rain", "s"])))
@settings(max_examples=150, deadline=None)
def test_without_stop_words_the_clauses_lose_them(text: str, stop_words: set[str]) -> None:
    expression = parse(text)
    stripped = {frozenset(clause) - stop_words for clause in expression.clauses()} - {frozenset()}
    minimal = {clause for clause in stripped if not any(other < clause for other in stripped)}
    if not minimal:
        with pytest.raises(ExpressionError, match="consists only of stop words"):
            expression.without(frozenset(stop_words))
    else:
        assert set(map(frozenset, expression.without(frozenset(stop_words)).clauses())) == minimal


def test_without_keeps_an_expression_that_has_no_stop_word() -> None:
    expression = parse("a (b OR c)")
    assert expression.without(frozenset({"the"})) is expression


def test_a_clause_absorbed_by_a_stop_word_goes_with_it() -> None:
    # Absorption comes first: "the OR the fire" asks for "the" and for nothing else.
    with pytest.raises(ExpressionError, match="only of stop words"):
        parse("the OR the fire").without(frozenset({"the"}))
    assert str(parse("fire the OR fire smoke").without(frozenset({"the"}))) == "fire"


def test_errors_of_hand_made_expressions_name_them() -> None:
    large = Or(tuple(Term(f"w{number}") for number in range(65)))
    with pytest.raises(ExpressionError, match="got 65 at position 0 of 'w0 OR w1"):
        large.clauses()
