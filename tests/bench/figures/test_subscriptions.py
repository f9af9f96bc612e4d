"""What is said about the number of subscriptions follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Case, Scale
from ps2stream_bench.figures.subscriptions import FIGURE, _contender, page
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import corpus_for


def rows_of(costs: dict[int, float], n_bytes: dict[int, float]) -> list[Row]:
    about = {"case": "a", "kind": "q1"}
    turns = [
        {**about, "phase": "run", "subscriptions": n, "repetition": turn, "cost_us": cost}
        for n, cost in costs.items()
        for turn in range(2)
    ]
    loads = [
        {**about, "phase": "load", "subscriptions": n, "repetition": 0, "bytes_per_subscription": each}
        for n, each in n_bytes.items()
    ]
    return [*turns, *loads]


@pytest.mark.parametrize(("cost", "holds"), [(20.0, True), (400.0, False)])
def test_the_cost_is_compared_with_the_subscriptions(cost: float, holds: bool) -> None:
    verdict, *_ = page(rows_of({10_000: 3.0, 1_000_000: cost}, {})).verdicts
    assert verdict.holds == holds
    assert verdict.ours.startswith("100 times the subscriptions cost: Q1")


@pytest.mark.parametrize(("largest", "holds"), [(240.0, True), (300.0, False)])
def test_memory_is_compared_between_the_two_largest(largest: float, holds: bool) -> None:
    costs = {10: 1.0, 1_000: 2.0, 2_000: 3.0}
    *_, verdict = page(rows_of(costs, {10: 9_000.0, 1_000: 220.0, 2_000: largest})).verdicts
    assert verdict.holds == holds
    assert f"{largest / 220:.2f}" in verdict.ours


def test_nothing_is_judged_where_one_size_or_none_was_measured() -> None:
    assert [each.holds for each in page(rows_of({1_000: 3.0}, {1_000: 200.0})).verdicts] == [None, None]
    assert [each.holds for each in page([]).verdicts] == [None, None]


def test_what_comes_and_goes_is_the_same_for_all_sizes() -> None:
    case = Case({"kind": "q1"})
    corpus = corpus_for("us", 500, 1)
    found = [_contender(case, corpus, n, [100, 500]) for n in (100, 500)]
    assert [each.n_live for each in found] == [100, 500]
    assert [each.changing.n for each in found] == [50, 50]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
