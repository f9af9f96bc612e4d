"""What is said about the size of regions follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Scale
from ps2stream_bench.figures.region_size import FIGURE, page
from ps2stream_bench.results import Row


def rows_of(costs: dict[float, float], matches: dict[float, float]) -> list[Row]:
    about = {"case": "a", "kind": "q2", "phase": "run"}
    return [
        {
            **about,
            "side_km": side,
            "repetition": turn,
            "cost_us": cost,
            "matches_per_publication": matches[side],
        }
        for side, cost in costs.items()
        for turn in range(2)
    ]


@pytest.mark.parametrize(("cost", "holds"), [(30.0, True), (500.0, False)])
def test_the_cost_is_compared_with_the_matches(cost: float, holds: bool) -> None:
    (verdict,) = page(rows_of({1.0: 2.0, 500.0: cost}, {1.0: 0.1, 500.0: 10.0})).verdicts
    assert verdict.holds == holds
    assert "matches 100.0" in verdict.ours


def test_nothing_is_judged_where_the_smallest_regions_match_nothing() -> None:
    assert [
        each.holds for each in page(rows_of({1.0: 2.0, 500.0: 4.0}, {1.0: 0.0, 500.0: 10.0})).verdicts
    ] == [None]
    assert [each.holds for each in page([]).verdicts] == [None]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
