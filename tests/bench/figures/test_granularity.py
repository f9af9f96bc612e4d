"""What is said about the granularity follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream.config import Settings
from ps2stream_bench.figure import SCALES, Scale
from ps2stream_bench.figures.granularity import FIGURE, page
from ps2stream_bench.results import Row

DEFAULT = Settings().grid_bits


def rows_of(costs: dict[int, float]) -> list[Row]:
    about = {"case": "a", "kind": "q1", "phase": "run"}
    return [
        {**about, "grid_bits": bits, "repetition": turn, "cost_us": cost * (1 + turn)}
        for bits, cost in costs.items()
        for turn in range(3)
    ]


@pytest.mark.parametrize(("default", "holds"), [(5.2, True), (5.0, True), (6.0, False)])
def test_the_default_is_compared_with_the_best(default: float, holds: bool) -> None:
    (verdict,) = page(rows_of({4: 7.0, DEFAULT - 1: 5.0, DEFAULT: default, 12: 9.0})).verdicts
    assert verdict.holds == holds
    assert verdict.ours.endswith(f"the cost with {DEFAULT - 1} bits")


def test_nothing_is_judged_without_the_default_or_anything_to_compare_it_with() -> None:
    assert [each.holds for each in page(rows_of({4: 7.0, DEFAULT + 1: 5.0})).verdicts] == [None]
    assert [each.holds for each in page(rows_of({DEFAULT: 7.0})).verdicts] == [None]
    assert [each.holds for each in page([]).verdicts] == [None]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
