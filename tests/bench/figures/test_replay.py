"""Engines are compared on hand-made rows."""

import pytest

from ps2stream_bench.figures.replay import FIGURE
from ps2stream_bench.results import Row


def _rows(n: int, microbatch: float) -> list[Row]:
    rates = {"inline": 100.0, "microbatch": microbatch}
    return [
        {"subscriptions": n, "engine": engine, "repetition": turn, "matching_tuples_per_s": rate * (1 + turn)}
        for engine, rate in rates.items()
        for turn in range(3)
    ]


@pytest.mark.parametrize(("rate", "holds"), [(120.0, True), (119.0, False)])
def test_two_cores_have_to_be_worth_more_than_one(rate: float, holds: bool) -> None:
    verdicts = FIGURE.page(_rows(1_000_000, rate)).verdicts
    assert [verdict.holds for verdict in verdicts] == [holds]
    assert verdicts[0].ours.startswith("1.20" if holds else "1.19")


def test_nothing_is_claimed_of_few_subscriptions() -> None:
    assert FIGURE.page(_rows(100_000, 10.0)).verdicts == []
