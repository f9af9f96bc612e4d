"""A page of the real-time engine compares rates turn by turn, and counts seconds by tuple."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ps2stream_bench.figures import realtime
from ps2stream_bench.figures.realtime import ADJUSTMENT, THROUGHPUT, VISIBILITY, cases, page
from ps2stream_bench.live.saturation import Saturation
from ps2stream_bench.results import Row


def rows_of(mode: str, *rows: Row) -> list[Row]:
    (case,) = [each for each in cases("tiny") if each["mode"] == mode]
    return [{**case.settings, "case": mode, "load_average_before": 0.1, **row} for row in rows]


def test_rates_are_compared_turn_by_turn() -> None:
    rates = [(0, 100.0, 130.0), (1, 10.0, 13.0)]
    rows = [
        {"repetition": turn, "engine": engine, "n_events": 1000, "tuples_per_s": rate}
        for turn, inline, realtime in rates
        for engine, rate in (("inline", inline), ("realtime", realtime))
    ]
    (verdict,) = page(rows_of(THROUGHPUT, *rows)).verdicts
    assert verdict.holds is True
    assert verdict.ours.startswith("1.30")


def test_rates_are_judged_for_each_number_of_subscriptions() -> None:
    (case,) = [each for each in cases("tiny") if each["mode"] == THROUGHPUT]
    assert len([each for each in cases("small") if each["mode"] == THROUGHPUT]) == 2
    rows = [
        {
            **case.settings,
            "subscriptions": n,
            "repetition": 0,
            "engine": engine,
            "n_events": 1,
            "tuples_per_s": r,
        }
        for n, inline, realtime in ((1_000, 100.0, 50.0), (1_000_000, 10.0, 15.0))
        for engine, r in (("inline", inline), ("realtime", realtime))
    ]
    found = page(rows).verdicts
    assert [(each.claim.partition(" ")[0], each.holds) for each in found] == [
        ("1,000", False),
        ("1,000,000", True),
    ]


def test_seconds_are_told_by_tuple() -> None:
    row = {"repetition": 0, "engine": "realtime", "n_events": 1000, "tuples_per_s": 5.0}
    spent = {"cpu_s of broker": 0.002, "busy_s of worker": 0.003}
    (table,) = page(rows_of(THROUGHPUT, {**row, **spent})).tables
    assert "| 2.0 |" in table
    assert "| 3.0 |" in table


def test_delays_are_judged_by_the_run_in_which_cells_move() -> None:
    quiet = {"cells": "stay", "share_over_100_ms": 0.9, "share_over_1_s": 0.9}
    moving = {"cells": "move", "share_over_100_ms": 0.1, "share_over_1_s": 0.05}
    found = page(rows_of(ADJUSTMENT, moving, quiet)).verdicts
    assert [(verdict.paper, verdict.holds) for verdict in found] == [
        ("20 %", True),
        ("", False),
        ("4 %", False),
        ("", False),
    ]


def test_visibility_is_judged_by_its_worst_percent() -> None:
    (verdict,) = page(rows_of(VISIBILITY, {"visible_p50_ms": 5.0, "visible_p99_ms": 1500.0})).verdicts
    assert verdict.holds is False


def test_visibility_and_delays_are_looked_at_under_half_of_the_saturation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rest = pa.record_batch({"seq": [7]})
    monkeypatch.setattr(realtime, "saturation_of", lambda *_: Saturation(100.0, 150.0, rest))
    (case,) = [each for each in cases("tiny") if each["mode"] == VISIBILITY]
    anything: Any = type("Context", (), {"seed": 1})()
    assert realtime._saturated(anything, rest, case, anything) == (rest, 50.0)
