"""Bytes are UTF-8 exactly where Python decodes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ps2stream.model.utf8 import is_utf8
from sizes import examples

pytestmark = pytest.mark.kernel

parts = st.one_of(
    st.text(max_size=3).map(str.encode),
    st.text(st.characters(codec="ascii"), max_size=40).map(str.encode),
    st.binary(max_size=4),
    st.sampled_from(
        [b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80"]
    ),
)


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.lists(parts, max_size=4), st.binary(max_size=3), st.binary(max_size=3))
@example([b"\xc3"], b"", b"\xa9")  # the rest of a character is another string's
@settings(max_examples=examples(400), deadline=None)
def test_what_python_decodes_is_utf8_wherever_it_lies(some: list[bytes], before: bytes, after: bytes) -> None:
    data = b"".join(some)
    around = np.frombuffer(before + data + after + b" ", np.uint8)
    assert is_utf8(around, len(before), len(before) + len(data)) == _decodes(data)


@pytest.mark.parametrize("lead", range(0x80, 0x100))
def test_every_lead_is_judged_as_python_does(lead: int) -> None:
    for second in range(0x70, 0xD0):
        for rest in (b"", b"\x80", b"\xbf\xbf", b"\x80\x41"):
            data = bytes([lead, second]) + rest
            assert is_utf8(np.frombuffer(data, np.uint8), 0, len(data)) == _decodes(data)
