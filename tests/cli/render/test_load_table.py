from __future__ import annotations

import io

import pytest

from cli.loads import status
from ps2stream.cli.render.load_figures import LoadFigures
from ps2stream.cli.render.load_table import ago, print_loads


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3.0, "0.0 s ago"),
        (0.44, "0.4 s ago"),
        (119.0, "119.0 s ago"),
        (150.0, "2 min ago"),
        (7_300.0, "2 h ago"),
        (200_000.0, "2 days ago"),
    ],
)
def test_an_age_has_a_unit_that_suits_it(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_bars_are_drawn_with_what_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr("sys.stdout", drawn)
    print_loads(LoadFigures.of(status()), 0)
    drawn.seek(0)
    assert ("#" * 30) in drawn.read()


def test_workers_without_any_load_have_no_bars(capsys: pytest.CaptureFixture[str]) -> None:
    idle = [{"worker": n, "load": 0.0, "busy_s": 0.0, "cells": []} for n in range(2)]
    print_loads(LoadFigures.of(status(workers=idle, imbalance=1.0)), 3)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert rows == [["0", "-", "0.000"], ["1", "-", "0.000"]]
