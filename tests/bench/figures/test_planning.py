"""The figure on the time to plan: every partitioner is timed for every number of workers."""

from __future__ import annotations

from itertools import product

from ps2stream.partitioning import PARTITIONERS
from ps2stream_bench.figure import SCALES, Case, Context
from ps2stream_bench.figures.planning import FIGURE
from ps2stream_bench.results import Row


def test_partitioners_take_turns_for_every_number_of_workers() -> None:
    context = Context(seed=3)
    case = Case(
        {"country": "us", "kind": "q3", "sample": 150, "corpus": 300, "workers": "2 3", "repetitions": 1}
    )
    rows = list(FIGURE.measure(case, context))
    context.close()
    turns = [(row["repetition"], row["n_workers"], row["partitioner"]) for row in rows]
    assert sorted(turns) == sorted(product((0,), (2, 3), PARTITIONERS))
    assert all(row["build_s"] > 0 for row in rows)


def timed(name: str, sample: int, n_workers: int, seconds: float) -> Row:
    about = {"workload": "US-Q3", "partitioner": name, "sample": sample, "repetition": 0}
    return {**about, "n_workers": n_workers, "build_s": seconds}


def test_a_line_has_the_times_for_all_numbers_of_workers() -> None:
    rows = [
        timed("hybrid", 200, 8, 2.0),
        timed("grid", 200, 8, 1.0),
        timed("grid", 100, 8, 0.5),
        timed("grid", 100, 64, 0.75),
    ]
    (shown,) = FIGURE.page(rows).tables
    assert shown.splitlines()[2:] == [
        "| US-Q3 | grid | 100 | 0.50 | 0.75 |",
        "| US-Q3 | grid | 200 | 1.00 | - |",
        "| US-Q3 | hybrid | 200 | 2.00 | - |",
    ]


def test_the_explanation_tells_who_is_quick_and_how_hybrid_grows() -> None:
    rows = [timed("hybrid", 200, 8, 2.0), timed("hybrid", 200, 64, 5.0), timed("grid", 200, 64, 1.0)]
    differs = FIGURE.page(rows).differs
    assert "grid is the quickest (1.00 s), hybrid the slowest (5.00 s)" in differs
    assert "Hybrid takes 2.5 times as long for 64 workers as for 8." in differs


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
