"""What is told of a knob is made of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ps2stream_bench.figures.cost_page import (
    Knob,
    cost_drawing,
    cost_table,
    ends,
    growth,
    how,
    kinds,
    memory_table,
    summary,
)
from ps2stream_bench.plots import save
from ps2stream_bench.results import Row

KNOB = Knob("size", "size", ".0f")


def turn(kind: str, size: int, repetition: int, cost_us: float, **more: Any) -> Row:
    about = {"case": kind, "kind": kind, "size": size, "phase": "run", "repetition": repetition}
    return {**about, "cost_us": cost_us, "index_bytes": 7, **more}


def loading(kind: str, size: int, n_bytes: float) -> Row:
    about = {"case": kind, "kind": kind, "size": size, "phase": "load", "repetition": 0}
    return {**about, "cost_us": None, "bytes_per_subscription": n_bytes, "n_live": 1_000}


ROWS = [
    loading("q2", 1, 300.0),
    loading("q1", 1, 200.0),
    loading("q1", 4, 250.0),
    *(turn("q1", 1, n, cost, n_live=1_000) for n, cost in enumerate([2.0, 3.0, 4.0])),
    *(turn("q1", 4, n, cost) for n, cost in enumerate([4.0, 9.0, 4.0])),
    turn("q2", 1, 0, 5.0),
]


def test_a_summary_has_medians_of_turns_and_the_loading_beside_them() -> None:
    found = summary(ROWS, KNOB)
    assert [(row["kind"], row["size"]) for row in found] == [("q1", 1), ("q1", 4), ("q2", 1)]
    assert [row["cost"].median for row in found] == [3.0, 4.0, 5.0]
    assert [row["bytes_per_subscription"] for row in found] == [200.0, 250.0, 300.0]


def test_growth_is_that_of_turns_side_by_side() -> None:
    grown = growth(ROWS, KNOB, "q1")
    assert (grown.low, grown.median, grown.high) == (1.0, 2.0, 3.0)
    assert growth(ROWS, KNOB, "q2").n == 0


def test_ends_need_two_values() -> None:
    assert ends(ROWS, KNOB) == (1, 4)
    assert ends([row for row in ROWS if row["size"] == 1], KNOB) is None
    assert kinds(ROWS) == ["q1", "q2"]


def test_tables_show_intervals_and_what_is_known() -> None:
    told = cost_table(ROWS, KNOB).splitlines()
    assert told[2].startswith("| Q1 | 1 | 3.00 [2.00 to 4.00] |")
    assert "| 250 |" in memory_table(ROWS, KNOB).splitlines()[3]


def test_words_name_the_numbers_of_the_rows() -> None:
    told = " ".join(how(ROWS).split())
    assert "Medians of 3 turns" in told
    assert "loaded with 1,000 subscriptions" in " ".join(how(ROWS[1:]).split())


@pytest.mark.parametrize("rows", [ROWS, []])
def test_a_drawing_can_be_made_of_any_rows(tmp_path: Path, rows: list[Row]) -> None:
    for is_log in (True, False):
        path = tmp_path / f"{is_log}.png"
        save(cost_drawing(rows, KNOB, "size", "What is to be seen.", is_log_cost=is_log), path)
        assert path.stat().st_size > 1_000
