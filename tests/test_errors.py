"""Messages quote what a user gave, but never all of what is long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import EXCERPT, ExpressionError, quoted


def test_short_values_are_quoted_whole() -> None:
    assert quoted("fire 'n' smoke") == repr("fire 'n' smoke")
    assert quoted("x" * EXCERPT, 7) == repr("x" * EXCERPT)
    assert [quoted(value) for value in (None, 7, ["a"])] == ["None", "7", "['a']"]


def test_of_a_long_string_an_excerpt_is_quoted() -> None:
    text = "".join(f"{number:03}." for number in range(100))
    assert quoted(text) == f"{text[:60]!r}\u2026"
    assert quoted(text, 200) == f"\u2026{text[170:230]!r}\u2026"
    assert quoted(text, 400) == f"\u2026{text[340:]!r}"
    assert quoted(list(range(100))) == f"{str(list(range(100)))[:60]}\u2026"


@given(st.integers(0, 300), st.data())
def test_an_excerpt_holds_the_position_and_says_what_is_left_out(n: int, data: st.DataObject) -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + n)))  # each character once
    position = data.draw(st.integers(0, n))
    shown = quoted(text, position)
    start = text.index(excerpt := shown.strip("\u2026'"))
    assert len(excerpt) == min(n, EXCERPT)
    assert start <= position <= start + len(excerpt)
    assert shown.startswith("\u2026") == (start > 0)
    assert shown.endswith("\u2026") == (start + len(excerpt) < n)


def test_an_expression_error_keeps_the_whole_expression_and_shows_a_part() -> None:
    error = ExpressionError("what is wrong", "x" * 9_000 + "y" + "x" * 999, 9_000)
    assert (len(error.expression), error.position) == (10_000, 9_000)
    assert str(error) == f"what is wrong at position 9000 of \u2026'{'x' * 30}y{'x' * 29}'\u2026"
