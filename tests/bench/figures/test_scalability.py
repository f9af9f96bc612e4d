"""The figure on scalability: speed-ups and places are judged by the rows."""

from __future__ import annotations

from collections.abc import Mapping

from ps2stream_bench.figure import SCALES
from ps2stream_bench.figures.scalability import CONTENDERS, FIGURE
from ps2stream_bench.results import Row

Rates = Mapping[tuple[str, int], tuple[float, float, float]]


def rows_of(rates: Rates) -> list[Row]:
    return [
        {
            "case": f"{workload} {n_workers}",
            "workload": workload,
            "workers": n_workers,
            "partitioner": name,
            "repetition": repetition,
            "worker_tuples_per_s": rates[workload, n_workers][place],
            "projected_tuples_per_s": 1.0,
            "registrar_or_merger_tuples_per_s": 2.0,
            "live": 10,
            "dispatchers": 4,
            "repetitions": 2,
            "tuples": 100,
        }
        for workload, n_workers in rates
        for place, name in enumerate(CONTENDERS)
        for repetition in range(2)
    ]


# Rates of hybrid, metric and kd-tree.
GOOD = {
    ("UK-Q1", 8): (100.0, 60.0, 90.0),
    ("UK-Q1", 32): (350.0, 100.0, 300.0),
    ("UK-Q2", 8): (100.0, 90.0, 110.0),
    ("UK-Q2", 32): (300.0, 290.0, 150.0),
}
BAD = {
    ("UK-Q1", 8): (100.0, 110.0, 90.0),
    ("UK-Q1", 32): (150.0, 300.0, 200.0),
    ("UK-Q2", 8): (100.0, 90.0, 110.0),
    ("UK-Q2", 32): (190.0, 180.0, 200.0),
}


def judged(rates: Rates) -> dict[str, bool]:
    return {verdict.claim: verdict.holds for verdict in FIGURE.page(rows_of(rates)).verdicts}


def test_rates_that_grow_with_workers_confirm_the_claims() -> None:
    found = judged(GOOD)
    assert len(found) == 5
    assert all(found.values())


def test_rates_that_hardly_grow_refute_the_claims() -> None:
    found = judged(BAD)
    assert len(found) == 5
    assert not any(found.values())


def test_without_both_numbers_of_workers_there_is_no_speed_up() -> None:
    found = judged({("UK-Q1", 4): (100.0, 60.0, 90.0), ("UK-Q1", 8): (200.0, 120.0, 180.0)})
    assert list(found) == [
        "hybrid is the fastest in most cases",
        "UK-Q1: metric has the worst scalability (slowest with 8 workers)",
    ]


def test_a_table_has_a_line_for_each_contender_and_number_of_workers() -> None:
    (shown,) = FIGURE.page(rows_of(GOOD)).tables
    lines = [line.split(" | ")[:3] for line in shown.splitlines()[2:]]
    assert lines[:2] == [["| UK-Q1", "hybrid", "8"], ["| UK-Q1", "hybrid", "32"]]
    assert len(lines) == 12


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
        assert {8, 32} <= {case["workers"] for case in cases}
