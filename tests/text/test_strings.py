"""Strings that kernels write are those that were to be written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.text.strings import ROOM, copy_bytes, room_for, string_array

pytestmark = pytest.mark.kernel


@given(st.lists(st.text(max_size=20), max_size=8))
@settings(max_examples=60, deadline=None)
def test_strings_come_out_as_they_were_copied(texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    source = np.frombuffer(b"".join(encoded) + bytes(ROOM), np.uint8).copy()
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    data = room_for(int(offsets[-1]))
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        copy_bytes(source, start, stop, data, start)
    assert string_array(offsets, data).to_pylist() == texts


@given(st.binary(max_size=40), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_a_copy_touches_nothing_before_it_and_no_more_than_the_room_behind_it(
    copied: bytes, start: int, to: int
) -> None:
    source = np.zeros(start + len(copied) + ROOM, np.uint8)
    source[start : start + len(copied)] = np.frombuffer(copied, np.uint8)
    target = np.full(to + len(copied) + 2 * ROOM, 7, np.uint8)
    copy_bytes(source, start, start + len(copied), target, to)
    assert (target[:to] == 7).all()
    assert target[to : to + len(copied)].tobytes() == copied
    assert (target[to + len(copied) + ROOM :] == 7).all()


def test_more_bytes_than_an_arrow_string_array_holds_are_refused() -> None:
    with pytest.raises(StateError, match="2,147,483,648 were needed; use smaller batches"):
        room_for(1 << 31)
