"""Who waits for kernels to be compiled is told so; nobody else is."""

from __future__ import annotations

import io
import sys
import time

import numpy as np
import pytest

from ps2stream.arrays import Int64s
from ps2stream.cli.render.compilation import compilation_shown
from ps2stream.kernels import cache, kernel


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _compile_three() -> None:
    @kernel
    def one(value: int) -> int:
        return value + 1

    @kernel
    def two(value: int) -> int:
        return one(value) + 1

    @kernel
    def three(values: Int64s) -> int:
        return two(len(values)) + 1

    assert three(np.arange(3)) == 6


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_directory", lambda: None)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_shows_one_line_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
    with compilation_shown():
        _compile_three()
    shown = terminal.getvalue()
    assert shown.endswith(" (first use on this machine)\n")
    assert [text.split()[2] for text in shown.split("\r")[1:]] == ["1", "2", "3"]
    assert shown.count("\n") == 1


@pytest.mark.parametrize("terminal", [_Terminal(), io.StringIO()])
def test_elsewhere_a_few_lines_are_enough(monkeypatch: pytest.MonkeyPatch, terminal: io.StringIO) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", terminal)
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with compilation_shown():
        _compile_three()
        now_s += 60.0
        _compile_three()
    lines = terminal.getvalue().splitlines()
    assert [line.split(" of at most ")[0] for line in lines] == [
        "compiling kernels: 1",
        "compiling kernels: 4",
    ]
    assert "\r" not in terminal.getvalue()


def test_who_wants_quiet_or_waits_for_nothing_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with compilation_shown(quiet=True):
        _compile_three()
    with compilation_shown():
        pass
    assert capsys.readouterr().err == ""
