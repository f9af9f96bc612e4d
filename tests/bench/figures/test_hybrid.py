"""The figure on hybrid partitioning: offered load, what the tables show, and the cases."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Case, Context, Setting
from ps2stream_bench.figures.hybrid import CLOCKS, CONTENDERS, FIGURE, sustained
from ps2stream_bench.results import Row


def rated(name: str, measured: float, busy_s: float) -> Row:
    roles = ("registrar_busy_s", "busiest_dispatcher_s", "busiest_worker_s", "merger_busy_s")
    spent = dict.fromkeys(roles, busy_s / len(roles))
    return {"partitioner": name, "repetition": 0, "n_events": 1000, "tuples_per_s": measured, **spent}


def test_what_is_sustained_is_what_the_slowest_does_by_either_clock() -> None:
    found = sustained(
        [rated("hybrid", 500.0, 0.1), rated("metric", 400.0, 0.05), rated("kd-tree", 600.0, 0.02)]
    )
    assert found == pytest.approx({"measured": 400.0, "projected": 10_000.0})


def test_all_contenders_are_offered_the_same_and_their_rows_tell_it() -> None:
    settings: dict[str, Setting] = {
        "country": "us",
        "kind": "q2",
        "live": 200,
        "corpus": 300,
        "tuples": 120,
        "repetitions": 2,
        "batch": 60,
        "latency_tuples": 60,
        "latency_repetitions": 1,
        "latency_s": 1.0,
        "workers": 2,
        "dispatchers": 1,
    }
    case, context = Case(settings), Context(seed=2)
    rows = [{"case": str(case), **settings, **row} for row in FIGURE.measure(case, context)]
    context.close()
    rates = [row for row in rows if row["part"] == "rates"]
    latencies = [row for row in rows if row["part"] == "latency"]
    assert len(rates) == 2 * len(CONTENDERS)
    assert {row["worker_mb"] > 0 and row["dispatcher_mb"] > 0 for row in rates} == {True}
    for clock in CLOCKS:
        of_it = [row for row in latencies if row["clock"] == clock]
        assert sorted(row["partitioner"] for row in of_it) == sorted(CONTENDERS)
        (offered,) = {row["offered_tuples_per_s"] for row in of_it}
        assert offered == pytest.approx(0.5 * sustained(rates)[clock])
    page = FIGURE.page(rows)
    assert len(page.tables[0].splitlines()) == 2 + len(CONTENDERS)
    assert len(page.tables[1].splitlines()) == 2 + len(CLOCKS) * len(CONTENDERS)


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
    assert len(FIGURE.cases("small")) == 6
