"""What is said about the length of publications follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Scale
from ps2stream_bench.figures.publication_length import FIGURE, page
from ps2stream_bench.results import Row


def rows_of(costs: dict[float, float]) -> list[Row]:
    about = {"case": "a", "kind": "q1", "phase": "run"}
    return [
        {**about, "mean_terms": mean, "repetition": turn, "cost_us": cost, "n_terms": mean / 2}
        for mean, cost in costs.items()
        for turn in range(2)
    ]


@pytest.mark.parametrize(("cost", "holds"), [(8.0, True), (60.0, False)])
def test_the_cost_is_compared_with_the_terms(cost: float, holds: bool) -> None:
    (verdict,) = page(rows_of({4.0: 2.0, 44.0: cost})).verdicts
    assert verdict.holds == holds
    assert "11.0 times the terms" in verdict.ours


def test_nothing_is_judged_where_one_length_or_none_was_measured() -> None:
    assert [each.holds for each in page(rows_of({3.0: 1.0})).verdicts] == [None]
    assert [each.holds for each in page([]).verdicts] == [None]


def test_corpora_are_small_at_every_scale() -> None:
    assert all(case["n_corpus"] <= 50_000 for scale in SCALES for case in FIGURE.cases(scale))


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
