"""The figure on scalability: speed-ups and places are judged by the rows."""

from __future__ import annotations

from collections.abc import Mapping

from ps2stream_bench.figure import SCALES
from ps2stream_bench.figures.scalability import CONTENDERS, FIGURE
from ps2stream_bench.results import Row

Rates = Mapping[tuple[str, int], tuple[float, float, float]]


def rows_of(rates: Rates, alone: float = 2.0) -> list[Row]:
    return [
        {
            "case": f"{workload} {n_workers}",
            "workload": workload,
            "workers": n_workers,
            "partitioner": name,
            "repetition": repetition,
            "projected_tuples_per_s": rates[workload, n_workers][index],
            "worker_tuples_per_s": alone * rates[workload, n_workers][index],
            "workers_busy_s": n_workers / 8,
            "limit": "dispatcher",
            "registrar_or_merger_tuples_per_s": 2.0,
            "live": 10,
            "dispatchers": 4,
            "repetitions": 2,
            "tuples": 100,
        }
        for workload, n_workers in rates
        for index, name in enumerate(CONTENDERS)
        for repetition in range(2)
    ]


# Rates of hybrid, metric and kd-tree.
GOOD = {
    ("UK-Q1", 8): (100.0, 60.0, 90.0),
    ("UK-Q1", 32): (350.0, 100.0, 300.0),
    ("UK-Q2", 8): (100.0, 90.0, 110.0),
    ("UK-Q2", 32): (300.0, 290.0, 150.0),
    ("UK-Q3", 8): (100.0, 90.0, 80.0),
    ("UK-Q3", 32): (300.0, 290.0, 150.0),
}
BAD = {
    ("UK-Q1", 8): (100.0, 110.0, 90.0),
    ("UK-Q1", 32): (150.0, 300.0, 200.0),
    ("UK-Q2", 8): (100.0, 90.0, 110.0),
    ("UK-Q2", 32): (190.0, 180.0, 200.0),
    ("UK-Q3", 8): (100.0, 90.0, 100.0),
    ("UK-Q3", 32): (190.0, 190.0, 200.0),
}


def judged(rates: Rates) -> dict[str, bool | None]:
    return {verdict.claim: verdict.holds for verdict in FIGURE.page(rows_of(rates)).verdicts}


def test_rates_that_grow_with_workers_confirm_the_claims() -> None:
    found = judged(GOOD)
    assert len(found) == 6
    assert all(found.values())


def test_rates_that_hardly_grow_refute_the_claims() -> None:
    found = judged(BAD)
    assert len(found) == 6
    assert set(found.values()) == {False}


def test_without_both_numbers_of_workers_there_is_no_speed_up() -> None:
    found = judged({("UK-Q1", 4): (100.0, 60.0, 90.0), ("UK-Q1", 8): (200.0, 120.0, 180.0)})
    known = {claim for claim, holds in found.items() if holds is not None}
    assert known == {
        "hybrid is the fastest in most cases",
        "UK-Q1: metric has the worst scalability (slowest with 8 workers)",
    }
    assert len(found) == 6


def test_a_tie_is_neither_hybrids_win_nor_anybodys_last_place() -> None:
    found = judged({("UK-Q1", 8): (100.0, 100.0, 100.0), ("UK-Q1", 32): (400.0, 400.0, 400.0)})
    assert found["hybrid is the fastest in most cases"] is False
    assert found["UK-Q1: metric has the worst scalability (slowest with 32 workers)"] is False
    assert (
        found["UK-Q1: hybrid scales well from 8 to 32 workers (50 % of the ideal speed-up or more)"] is True
    )


def test_the_projected_rate_decides_and_workers_alone_are_told_beside() -> None:
    rows = [
        {**row, "worker_tuples_per_s": 1.0 if row["partitioner"] == "hybrid" else 9.0}
        for row in rows_of(GOOD)
    ]
    best, scales = FIGURE.page(rows).verdicts[:2]
    assert (best.holds, best.ours) == (True, "in 5 of 6 cases projected, in 0 by workers alone")
    assert scales.holds is True
    assert scales.ours.startswith(
        "3.50 [3.50 to 3.50] times as fast projected, 1.00 [1.00 to 1.00] by workers"
    )


def test_a_speed_up_has_the_interval_of_both_ends() -> None:
    rows = rows_of({("UK-Q1", 8): (100.0, 60.0, 90.0), ("UK-Q1", 32): (300.0, 100.0, 200.0)})
    noisy = [
        {**row, "projected_tuples_per_s": row["projected_tuples_per_s"] * (1 + row["repetition"])}
        for row in rows
    ]
    assert "3.00 [1.50 to 6.00] times as fast projected" in FIGURE.page(noisy).verdicts[1].ours


def test_the_explanation_tells_limits_and_growth_of_the_rows() -> None:
    differs = FIGURE.page(rows_of(GOOD)).differs
    assert "in 18 of 18 lines the busiest dispatcher" in differs
    assert "4.00 to 4.00 times with hybrid" in differs


def test_a_table_has_a_line_for_each_contender_and_number_of_workers() -> None:
    (shown,) = FIGURE.page(rows_of(GOOD)).tables
    lines = [line.split(" | ")[:3] for line in shown.splitlines()[2:]]
    assert lines[:2] == [["| UK-Q1", "hybrid", "8"], ["| UK-Q1", "hybrid", "32"]]
    assert len(lines) == 18


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
        assert {8, 32} <= {case["workers"] for case in cases}
