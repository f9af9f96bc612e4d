"""What is said about keywords follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Scale
from ps2stream_bench.figures.keywords import FIGURE, page
from ps2stream_bench.results import Row


def rows_of(costs: dict[int, float]) -> list[Row]:
    about = {"case": "a", "kind": "q1", "phase": "run"}
    return [
        {**about, "keywords": n, "repetition": turn, "cost_us": cost + turn}
        for n, cost in costs.items()
        for turn in range(3)
    ]


@pytest.mark.parametrize(("costs", "holds"), [({1: 3.0, 8: 12.0}, True), ({1: 1.0, 8: 40.0}, False)])
def test_the_cost_is_compared_with_the_keywords(costs: dict[int, float], holds: bool) -> None:
    (verdict,) = page(rows_of(costs)).verdicts
    assert verdict.holds == holds
    assert verdict.ours.startswith("8 times the keywords cost: Q1")


def test_nothing_is_judged_where_one_value_or_none_was_measured() -> None:
    assert [each.holds for each in page(rows_of({3: 1.0})).verdicts] == [None]
    assert [each.holds for each in page([]).verdicts] == [None]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
