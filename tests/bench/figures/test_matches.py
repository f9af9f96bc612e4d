"""What is said about matches follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Case, Scale
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.matches import FIGURE, _contender, fit_of, page
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import N_STOP_WORDS, corpus_for


def rows_of(points: list[tuple[float, float]]) -> list[Row]:
    about = {"case": "a", "kind": "q1", "phase": "run"}
    return [
        {
            **about,
            "broad_share": share / 10,
            "repetition": turn,
            "cost_us": cost,
            "matches_per_publication": matches,
        }
        for share, (matches, cost) in enumerate(points)
        for turn in range(2)
    ]


def test_a_line_is_found_where_there_is_one() -> None:
    fit = fit_of(rows_of([(0.0, 4.0), (10.0, 7.0), (20.0, 10.0)]), "q1")
    assert fit is not None
    assert fit == pytest.approx((4.0, 0.3, 0.0), abs=1e-9)


@pytest.mark.parametrize(
    ("points", "holds"),
    [([(0.0, 4.0), (10.0, 7.1), (20.0, 10.0)], True), ([(0.0, 4.0), (10.0, 30.0), (20.0, 5.0)], False)],
)
def test_the_cost_is_compared_with_a_line(points: list[tuple[float, float]], holds: bool) -> None:
    (verdict,) = page(rows_of(points)).verdicts
    assert verdict.holds == holds
    assert "ns a match" in verdict.ours


def test_nothing_is_judged_where_points_do_not_tell_a_line() -> None:
    assert fit_of(rows_of([(0.0, 4.0), (1.0, 5.0)]), "q1") is None
    assert [each.holds for each in page(rows_of([(1.0, 4.0), (1.0, 4.0), (1.0, 4.0)])).verdicts] == [None]
    assert [each.holds for each in page([]).verdicts] == [None]


def test_broad_subscriptions_take_the_place_of_others() -> None:
    corpus = corpus_for("us", 500, 1)
    case = Case({"kind": "q1", "n_live": 1_000})
    none, half = (_contender(case, cost.contender(case, corpus), share) for share in (0.0, 0.5))
    assert none.n_live == half.n_live == 1_000
    assert [group.n for group in half.staying] == [500, 0]
    (broad,) = cost.chunks_of(half.staying[0], half.staying[0].corpus or corpus, "q1", 1, seed=1)
    frequent = set(corpus.words[N_STOP_WORDS : N_STOP_WORDS + 50].to_pylist())
    assert set(broad["expression"].to_pylist()) <= frequent


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
