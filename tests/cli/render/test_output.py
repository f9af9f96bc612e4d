from __future__ import annotations

import pytest

from ps2stream.cli.render.output import Columns, brief, complain, degrees, display_width, pointer, safe
from ps2stream.errors import ExpressionError


def test_an_error_in_an_expression_is_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    complain(ExpressionError("')' was never opened", "fire)", 4))
    assert capsys.readouterr().err.splitlines()[1:] == ["  fire)", "      ^"]


def test_the_caret_stands_below_wide_characters() -> None:
    shown, caret = pointer("東京 )", 3).splitlines()
    assert display_width(shown[: shown.index(")")]) == caret.index("^")


def test_of_a_long_expression_the_part_around_the_error_is_shown() -> None:
    text = "x " * 500 + ")" + " y" * 500
    shown, caret = pointer(text, 1000).splitlines()
    assert len(shown) < 80
    assert shown[caret.index("^")] == ")"


def test_what_could_harm_a_terminal_becomes_a_space() -> None:
    assert safe("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"
    assert safe("naïve 東京 🔥") == "naïve 東京 🔥"


def test_columns_line_up_and_have_one_header(capsys: pytest.CaptureFixture[str]) -> None:
    columns = Columns("id", "n", "text")
    columns.write([])
    columns.write([("東京", 1, "a"), ("q", 20, "b")])
    columns.write([("longer", 3, "c")])
    assert capsys.readouterr().out == (
        "id    n   text\n"  #
        "東京  1   a\n"
        "q     20  b\n"
        "longer  3   c\n"
    )


def test_a_long_text_is_shown_with_its_start_and_its_end() -> None:
    text = "needs this; " + "x" * 10_000 + " got that"
    shown = brief(text)
    assert len(shown) < 600
    assert shown.startswith("needs this; xxx")
    assert shown.endswith("xxx got that")
    assert "characters ...]" in shown
    assert brief("short") == "short"


def test_errors_and_lists_do_not_print_long_expressions_whole(capsys: pytest.CaptureFixture[str]) -> None:
    expression = "fire OR " * 2_000
    complain(ExpressionError("a keyword is missing", expression, len(expression)))
    columns = Columns("id", "expression")
    columns.write([("q", expression), ("i" * 10_000, "fire")])
    captured = capsys.readouterr()
    assert captured.err.startswith("ps2stream: a keyword is missing at position 16000 of …' OR fire OR")
    assert max(map(len, captured.err.splitlines())) < 600
    assert max(map(len, captured.out.splitlines())) < 500


def test_degrees_have_no_noise() -> None:
    assert degrees(0.1 + 0.2) == "0.3"
    assert degrees(-180.0) == "-180"
