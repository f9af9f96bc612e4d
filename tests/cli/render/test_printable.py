from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.cli.render.printable import byte_count, clock, counted, milliseconds, printable, share


@given(st.text(alphabet=st.characters()))
@settings(max_examples=150)
def test_nothing_that_steers_a_terminal_survives(text: str) -> None:
    safe = printable(text)
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in safe)
    assert printable(safe) == safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fire\x1b[31m red", "fire [31m red"),
        ("over\u202ewritten", "over written"),
        ("two\nlines\tand\r\ntabs", "two lines and tabs"),
        ("c1 \x9b31m csi", "c1 31m csi"),
        ("Zürich 東京 🔥", "Zürich 東京 🔥"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("z" + "\u0301" * 40, "z" + "\u0301" * 3),
    ],
)
def test_known_mischief_is_defused_and_known_scripts_are_kept(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_one_thing_is_singular() -> None:
    assert [counted(n, "text") for n in (0, 1, 2_000)] == ["0 texts", "1 text", "2,000 texts"]
    assert [counted(n, "match", "matches") for n in (1, 2)] == ["1 match", "2 matches"]


def test_numbers_that_are_missing_are_dashes() -> None:
    assert milliseconds(float("nan")) == share(3, 0) == "-"
    assert milliseconds(1234.4) == "1,234 ms"
    assert milliseconds(12_340) == "12.3 s"
    assert share(1, 4) == "25%"
    assert clock(61.2) == "1:01"
    assert clock(-1) == "0:00"


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (812_345, "812 kB"),
        (999_600, "1.0 MB"),
        (2_300_000, "2.3 MB"),
        (45_000_000_000, "45 GB"),
        (4_500_000_000_000, "4,500 GB"),
    ],
)
def test_bytes_have_a_unit_that_suits_them(n: int, text: str) -> None:
    assert byte_count(n) == text
