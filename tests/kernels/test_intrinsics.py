"""What kernels can do beyond plain Python is the same uncompiled."""

from __future__ import annotations

import numpy as np
import pytest

from ps2stream.arrays import UInt8s
from ps2stream.kernels import copy_word, kernel, prefetch

pytestmark = pytest.mark.kernel


@kernel
def _copy_after_prefetch(target: UInt8s, to: int, source: UInt8s, at: int) -> None:
    prefetch(source, at + 10**6)
    prefetch(source, -5)
    copy_word(target, to, source, at)


@pytest.mark.parametrize(("to", "at"), [(0, 0), (1, 0), (0, 3), (5, 7)])
def test_a_word_is_copied_at_any_alignment_and_prefetching_changes_nothing(to: int, at: int) -> None:
    source = np.arange(1, 21, dtype=np.uint8)
    target = np.zeros(20, np.uint8)
    _copy_after_prefetch(target, to, source, at)
    expected = np.zeros(20, np.uint8)
    expected[to : to + 8] = source[at : at + 8]
    assert target.tolist() == expected.tolist()
    assert source.tolist() == list(range(1, 21))
