from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.deployment import line_reader as lines
from ps2stream.deployment.line_reader import LineReader


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        with contextlib.suppress(OSError):
            os.close(descriptor)


@given(st.binary(max_size=200).map(lambda text: text.replace(b"x", b"\n")), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_lines_are_those_of_the_input_whatever_the_chunks(content: bytes, n_bytes: int) -> None:
    read, write = os.pipe()
    try:
        os.write(write, content)
        os.close(write)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "_READ_BYTES", n_bytes)
            found = [line for batch in LineReader(read).batches() for line in batch]
    finally:
        os.close(read)
    expected = enumerate(content.split(b"\n"), 1)
    assert found == [(number, line) for number, line in expected if line.strip()]


def test_a_fast_input_comes_in_large_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 1_000)
    monkeypatch.setattr(lines, "_READ_BYTES", 1_000)
    path = tmp_path / "input"
    path.write_bytes(b"line\n" * 5_500)
    with path.open("rb") as file:
        sizes = [len(batch) for batch in LineReader(file.fileno()).batches()]
    assert sizes == [1_000] * 5 + [500]


def test_a_slow_line_is_handed_over_soon(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"one\n")
    started = time.monotonic()
    assert next(LineReader(pipe[0]).batches()) == [(1, b"one")]
    assert time.monotonic() - started < 5


def test_a_stop_hands_over_whole_lines_and_knows_of_an_unfinished_one(pipe: tuple[int, int]) -> None:
    stop = threading.Event()
    reader = LineReader(pipe[0], stop.is_set)
    os.write(pipe[1], b"one\ntwo\nthr")
    threading.Timer(0.05, stop.set).start()
    assert list(reader.batches()) == [[(1, b"one"), (2, b"two")]]
    assert reader.has_unfinished
