"""What is said about the dispatcher follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Scale
from ps2stream_bench.figures.dispatcher import FIGURE, page
from ps2stream_bench.micro.dispatcher import NO_SUBSCRIPTIONS, ROUTED, STRANGERS
from ps2stream_bench.results import Row
from ps2stream_bench.workloads.scripts import ASCII


def rows_of(rates: dict[tuple[str, str], float]) -> list[Row]:
    return [
        {"case": "a", "kind": "q1", "repetition": turn, "waiting": waiting, "script": script}
        | {"publications_per_s": rate}
        for (waiting, script), rate in rates.items()
        for turn in range(2)
    ]


@pytest.mark.parametrize(("factor", "holds"), [(1.01, True), (0.99, False)])
def test_rates_are_compared_with_their_targets(factor: float, holds: bool) -> None:
    targets = {(NO_SUBSCRIPTIONS, ASCII): 1e6, (STRANGERS, ASCII): 1e6, (ROUTED, ASCII): 5e5}
    verdicts = page(rows_of({key: factor * rate for key, rate in targets.items()})).verdicts
    assert [verdict.holds for verdict in verdicts] == [holds] * 3


@pytest.mark.parametrize(("rate", "holds"), [(4e5, True), (3e5, False)])
def test_scripts_are_compared_with_ascii_in_the_same_turn(rate: float, holds: bool) -> None:
    verdict = page(rows_of({(STRANGERS, ASCII): 1.1e6, (STRANGERS, "Cyrillic"): rate})).verdicts[-1]
    assert "Cyrillic" in verdict.claim
    assert verdict.holds == holds


def test_what_was_not_measured_is_not_judged() -> None:
    verdicts = page(rows_of({(STRANGERS, "Cyrillic"): 1e6})).verdicts
    assert [verdict.holds for verdict in verdicts] == [None] * 4
    assert list(page([]).verdicts) == []


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_cases_and_no_case_twice(scale: Scale) -> None:
    told = [str(case) for case in FIGURE.cases(scale)]
    assert told
    assert len(set(told)) == len(told)
