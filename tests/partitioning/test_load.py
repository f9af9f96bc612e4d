"""Loads follow Definition 1, by either formula."""

from __future__ import annotations

from typing import Any

import pytest

from ps2stream.errors import ConfigError
from ps2stream.partitioning.load import Costs, load_of, rates_of

pytestmark = pytest.mark.kernel


def test_the_paper_charges_every_pair() -> None:
    rates = rates_of(Costs(2.0, 3.0, 5.0, 7.0, "paper"), live_weight=1.0, churn_weight=1.0)
    assert load_of(rates, 10, 4, 999) == 2 * 10 * 4 + 3 * 10 + 5 * 4 + 7 * 4


def test_looks_are_charged_instead_of_pairs() -> None:
    rates = rates_of(Costs(2.0, 3.0, 5.0, 7.0), live_weight=1.0, churn_weight=1.0)
    assert load_of(rates, 10, 4, 6) == 2 * 6 + 3 * 10 + (5 + 7) * 4


def test_a_sample_is_charged_for_the_stream_it_stands_for() -> None:
    paper = rates_of(Costs(2.0, 3.0, 5.0, 7.0, "paper"), live_weight=20.0, churn_weight=0.5)
    assert load_of(paper, 10, 4, 6) == 2 * 10 * 20 * 4 + 3 * 10 + 0.5 * (5 + 7) * 4
    looks = rates_of(Costs(2.0, 3.0, 5.0, 7.0), live_weight=20.0, churn_weight=0.5)
    assert load_of(looks, 10, 4, 6) == 2 * 6 + 3 * 10 + 0.5 * (5 + 7) * 4, "looks are weighted already"


@pytest.mark.parametrize(
    "wrong", [{"match": -1.0}, {"delete": float("nan")}, {"insert": float("inf")}, {"load": "guess"}]
)
def test_costs_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    values: dict[str, Any] = {"match": 1.0, "publication": 1.0, "insert": 1.0, "delete": 1.0, **wrong}
    with pytest.raises(ConfigError, match=r"load must be|costs must lie"):
        Costs(**values)
