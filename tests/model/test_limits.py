"""Lengths are counted in bytes of UTF-8, and what is too long is shown by its beginning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import EXCERPT
from ps2stream.model.limits import MAX_ID_BYTES, check_length, check_n_bytes, max_bytes, shortened


@pytest.mark.parametrize("name", ["id", "text", "expression"])
@pytest.mark.parametrize("character", ["a", "\u00e9", "\uac00", "\U0001f525", "\ud800"])
def test_the_limit_itself_is_fine_and_a_byte_more_is_not(name: str, character: str) -> None:
    size = len(character.encode("utf-8", "surrogatepass"))
    fitting = character * (max_bytes(name) // size)
    fitting += "." * (max_bytes(name) - size * len(fitting))
    assert check_length(name, fitting) is None
    reason = f"{name} must have at most {max_bytes(name):,} bytes; got {max_bytes(name) + 1:,}"
    assert check_length(name, fitting + ".") == check_n_bytes(name, max_bytes(name) + 1) == reason


@given(st.text(max_size=4), st.integers(0, 2 * MAX_ID_BYTES))
def test_shortened_strings_are_short_and_others_stay(part: str, n: int) -> None:
    text = part * n
    shown = shortened(text)
    if len(text.encode()) <= MAX_ID_BYTES:
        assert shown == text
    else:
        assert shown == text[:EXCERPT] + "\u2026"
        assert shortened(shown) == shown
