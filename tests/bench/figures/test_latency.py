"""A page of latencies says what was met at which load, and on how busy a machine."""

from __future__ import annotations

from ps2stream_bench.figures.latency import ENGINES, cases, page
from ps2stream_bench.results import Row


def row(engine: str, load: int, p50: float, p99: float) -> Row:
    (case,) = [each for each in cases("tiny") if each["engine"] == engine]
    quantiles = {"p50": p50, "p90": p50, "p99": p99, "p99_9": p99, "max": p99}
    return {
        **case.settings,
        "repetition": 0,
        "load": load,
        "load_average_before": 7.5,
        "saturation_tuples_per_s": 1000.0,
        "flood_tuples_per_s": 1500.0,
        **{f"latency_{name}_ms": value for name, value in quantiles.items()},
    }


def test_there_is_a_case_for_every_engine() -> None:
    assert [case["engine"] for case in cases("tiny")] == list(ENGINES)


def test_engines_that_have_targets_are_judged_at_half_of_their_saturation() -> None:
    rows = [
        row("realtime", 80, 900.0, 900.0),
        row("realtime", 50, 20.0, 150.0),
        row("microbatch", 50, 300.0, 400.0),
        row("inline", 80, 1.0, 2.0),
        row("inline", 50, 11.0, 12.0),
    ]
    judged = [(verdict.claim.partition(",")[0], verdict.holds) for verdict in page(rows).verdicts]
    assert judged == [("realtime", True), ("realtime", False), ("inline", False)]


def test_the_table_tells_what_else_the_machine_did() -> None:
    (table,) = page([row("realtime", 50, 20.0, 90.0)]).tables
    assert "| 7.5 |" in table


def test_what_was_left_out_is_told() -> None:
    rows: list[Row] = [{**cases("tiny")[0].settings, "unavailable": "there is no broker"}]
    found = page(rows)
    assert "Left out: there is no broker." in found.ours
    assert (found.tables, found.drawings, found.verdicts) == ([], [], [])
