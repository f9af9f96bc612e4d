"""A kernel is compiled whole for Python and as a part for other kernels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ps2stream.arrays import Int64s
from ps2stream.kernels import cache, compilation_watched, kernel, signed


@kernel
def _times(value: int, factor: int) -> int:
    return value * factor


@kernel
def _weigh(values: Int64s) -> int:
    total = 0
    for value in values:
        total += _times(value, 2) + _times(value, 3) + _times(value, signed(np.uint8(5)))
    return total


@pytest.mark.kernel
def test_a_kernel_calls_others() -> None:
    assert _weigh(np.arange(4)) == 60
    assert _times(3, 4) == 12


@pytest.mark.kernel
def test_a_kernel_can_raise() -> None:
    @kernel
    def check(value: int) -> int:
        if value < 0:
            raise ValueError("a negative number")
        return value

    @kernel
    def check_all(values: Int64s) -> int:
        total = 0
        for value in values:
            total += check(value)
        return total

    assert check_all(np.arange(3)) == 3
    with pytest.raises(ValueError, match="a negative number"):
        check_all(np.arange(-1, 3))


def test_constants_do_not_compile_a_kernel_anew() -> None:
    _weigh(np.arange(4))
    part = _times._part  # type: ignore[attr-defined]
    assert all(str(kind) == "int64" for signature in part.signatures for kind in signature)
    assert len(part.signatures) <= 1  # none if it was loaded


def test_whoever_watches_hears_of_each_kernel_that_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_directory", lambda: None)

    @kernel
    def part(value: int) -> int:
        return value + 1

    @kernel
    def whole(values: Int64s) -> int:
        return part(len(values))

    heard: list[tuple[int, int]] = []
    with compilation_watched(lambda done, known: heard.append((done, known))):
        assert whole(np.arange(3)) == 4
        assert whole(np.arange(3, dtype=np.int32)) == 4
    assert [done for done, _ in heard] == [1, 2]
    assert {known for _, known in heard} == {heard[0][1]}
    assert heard[0][1] >= 2
    assert part(1) == 2
    assert len(heard) == 2


def test_a_kernel_can_be_sent_to_another_process() -> None:
    again = pickle.loads(pickle.dumps(_times))
    assert again(3, 4) == 12
