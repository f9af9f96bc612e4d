"""The figure on adjustment: gains are of the same interval, and claims are judged by the rows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ps2stream_bench.figure import SCALES, Case, Context, Verdict
from ps2stream_bench.figures.adjustment import (
    CONTENDERS,
    DRIFTS,
    FIGURE,
    gain_of,
    most_gain_of,
    summary,
    verdicts,
)
from ps2stream_bench.results import Row


def rows_of(drift: str, rates: Mapping[str, float], n_adjustments: int = 0) -> list[Row]:
    """Three intervals; in the first, nobody has gained anything."""
    return [
        {
            "case": drift,
            "drift": drift,
            "live": 1_000,
            "window": 500,
            "interval": interval,
            "repetition": 0,
            "adjustment": name,
            "projected_tuples_per_s": (interval + 1) * (rates[name] if interval else 100.0),
            "worker_tuples_per_s": (interval + 1) * (rates[name] if interval else 100.0),
            "busy_max_over_mean": 1.5,
            "busiest_worker_s": 3.0,
            "busiest_dispatcher_s": 1.0,
            "workers_busy_s": 16.0,
            "replication": 1.2,
            "n_adjustments": n_adjustments if name != "none" else 0,
            "moved_bytes": 10,
            "longest_pause_s": 0.1,
        }
        for interval in range(3)
        for name in CONTENDERS
    ]


GAINING = {"none": 100.0, "local": 125.0, "local and global": 130.0}
LOSING = {"none": 100.0, "local": 150.0, "local and global": 125.0}


def verdict_of(drift: str, rows: list[Row]) -> Verdict:
    """Return what is said about a drift."""
    return dict(zip(("kinds", "kinds and places", "nothing"), verdicts(rows), strict=True))[drift]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_a_case_for_each_drift_and_more_than_one_interval(scale: str) -> None:
    cases = FIGURE.cases(scale)  # type: ignore[arg-type]
    assert [case["drift"] for case in cases] == list(DRIFTS)
    assert all(case["intervals"] > 1 for case in cases)


def test_engines_with_and_without_adjustment_see_the_same_intervals() -> None:
    context = Context(1)
    settings = {"intervals": 2, "live": 100, "window": 700, "batch": 600, "corpus": 1_000}
    try:
        rows = list(FIGURE.measure(Case({"drift": "kinds and places", **settings}), context))
    finally:
        context.close()
    assert [(row["interval"], row["adjustment"]) for row in rows] == [
        (interval, name) for interval in range(2) for name in CONTENDERS
    ]
    assert {row["n_events"] for row in rows} == {1_200}
    assert all(row["n_adjustments"] == 0 for row in rows if row["adjustment"] == "none")


def test_a_gain_compares_the_same_interval_and_leaves_out_the_first() -> None:
    rows = rows_of("kinds", GAINING)
    gain = gain_of(rows, "kinds", "local")
    assert gain.n == 2
    assert gain.median == pytest.approx(0.25)
    local = summary(rows)[1]
    assert (local["adjustment"], local["gain"].median) == ("local", pytest.approx(0.25))


def test_the_most_that_balance_can_gain_is_limited_by_the_average_worker_and_by_dispatchers() -> None:
    rows = rows_of("kinds", GAINING)
    assert most_gain_of(rows, "kinds").median == pytest.approx(0.5)
    for row in rows:
        row["busiest_dispatcher_s"] = 2.5
    assert most_gain_of(rows, "kinds").median == pytest.approx(0.2)


@pytest.mark.parametrize("drift", ["kinds", "kinds and places"])
def test_local_and_global_adjustment_is_judged_whatever_local_alone_gains(drift: str) -> None:
    gaining, losing = (verdict_of(drift, rows_of(drift, rates)) for rates in (GAINING, LOSING))
    assert gaining.holds is True
    assert gaining.ours.startswith("+30.0%")
    assert "local adjustment alone +25.0%" in gaining.ours
    assert "of the workers alone +50.0%" in gaining.ours
    assert losing.holds is False


def test_a_stream_that_does_not_change_should_not_be_adjusted() -> None:
    quiet, restless = (verdict_of("nothing", rows_of("nothing", LOSING, n)) for n in (0, 2))
    assert quiet.holds is True
    assert restless.holds is False
    assert "local 4" in restless.ours


def test_what_was_not_measured_is_left_open() -> None:
    rows = [row for row in rows_of("kinds", GAINING) if row["adjustment"] != "local and global"]
    first = [row for row in rows_of("kinds", GAINING) if row["interval"] == 0]
    for few in (rows, first, []):
        assert [each.holds for each in verdicts(few)] == [None, None, None]
    assert "local" in FIGURE.page(rows).tables[0]
