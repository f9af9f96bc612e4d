"""The figure on load functions: errors and ranks are those of the rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ps2stream.partitioning import PARTITIONERS
from ps2stream_bench.figure import SCALES, Case, Context
from ps2stream_bench.figures.prediction import FIGURE, quietest
from ps2stream_bench.results import Row


def workers(ours: Callable[[float], float], papers: Callable[[float], float]) -> list[Row]:
    return [
        {
            "workload": "US-Q3",
            "partitioner": name,
            "n_workers": n_workers,
            "worker": worker,
            "repetition": repetition,
            "n_publications": 100,
            "n_subscriptions": 0,
            "busy_s": (1 + worker) * (1 + repetition),
            **{f"candidates_{origin}_s": ours(1 + worker) for origin in ("calibrated", "standard")},
            **{f"paper_{origin}_s": papers(1 + worker) for origin in ("calibrated", "standard")},
        }
        for name in ("grid", "metric")
        for n_workers in (2, 4)
        for worker in range(n_workers)
        for repetition in range(2)
    ]


def exact(busy_s: float) -> float:
    return busy_s


def wrong(busy_s: float) -> float:
    return 1.5 / busy_s


def test_a_function_that_is_exact_beats_one_that_is_wrong() -> None:
    page = FIGURE.page(workers(exact, wrong))
    assert [verdict.holds for verdict in page.verdicts] == [True]
    first = [cell.strip() for cell in page.tables[0].splitlines()[2].strip("|").split("|")]
    assert first == ["US-Q3", "candidates", "calibrated", "0%", "0%", "12", "1.000", "1.000", "1.000"]
    last = [cell.strip() for cell in page.tables[0].splitlines()[-1].strip("|").split("|")]
    assert last[1:3] == ["paper", "standard"]
    assert float(last[6]) == pytest.approx(-1.0)


def test_a_function_that_is_wrong_does_not_beat_one_that_is_exact() -> None:
    assert [verdict.holds for verdict in FIGURE.page(workers(wrong, exact)).verdicts] == [False]


def test_the_least_time_counts_and_idle_workers_do_not() -> None:
    rows = workers(exact, wrong)
    idle = [{**row, "worker": 99, "n_publications": 3} for row in rows]
    found = quietest([*rows, *idle])
    assert {row["worker"] for row in found} == {0, 1, 2, 3}
    assert all(row["busy_s"] == 1 + row["worker"] for row in found)


def test_every_worker_of_every_plan_is_tried() -> None:
    context = Context(seed=3)
    case = Case(
        {"kind": "q1", "country": "us", "sample": 300, "corpus": 400, "workers": "2 3", "repetitions": 2}
    )
    rows = list(FIGURE.measure(case, context))
    context.close()
    assert len(rows) == 2 * len(PARTITIONERS) * (2 + 3)
    assert all(row["busy_s"] > 0 and row["paper_standard_s"] > 0 for row in rows)
    of_grid = [
        row for row in rows if (row["partitioner"], row["n_workers"], row["repetition"]) == ("grid", 2, 0)
    ]
    assert 0 < sum(row["n_publications"] for row in of_grid) <= 300


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
