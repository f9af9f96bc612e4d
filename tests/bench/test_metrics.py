"""Medians, intervals and ratios are those of statistics, and compare only what was measured side by side."""

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream_bench.metrics import distinct, medians, middle, middles, ratio, where
from ps2stream_bench.results import Row

figures = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(figures)
def test_the_middle_is_the_median_and_lies_in_its_interval(values: list[float]) -> None:
    found = middle(values)
    assert found.median == pytest.approx(median(values))
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.n == len(values)


def test_fewer_than_six_values_give_the_range() -> None:
    found = middle([5.0, 1.0, 3.0])
    assert (found.low, found.high) == (1.0, 5.0)


@pytest.mark.parametrize("n", [6, 11, 25])
def test_the_interval_holds_the_true_median_in_95_of_100_cases(n: int) -> None:
    rng = np.random.default_rng(1)
    found = [middle(rng.exponential(size=n)) for _ in range(2000)]
    covered = np.mean([each.low <= math.log(2) <= each.high for each in found])
    assert 0.94 < covered < 0.995


def test_more_repetitions_give_a_narrower_interval() -> None:
    rng = np.random.default_rng(2)
    few, many = middle(rng.normal(size=8)), middle(rng.normal(size=200))
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_what_is_not_known_does_not_count() -> None:
    assert middle([1.0, math.nan, None, 3.0]).median == 2.0
    assert math.isnan(middle([]).median)


def test_a_middle_is_written_with_its_interval() -> None:
    assert f"{middle([1.0, 2.0, 4.0]):.1f}" == "2.0 [1.0 to 4.0]"
    assert f"{middle([2.0]):.1f}" == "2.0"


def _rows() -> list[Row]:
    # The machine is twice as slow in the second turn, for both.
    rates = {0: {"a": 300.0, "b": 100.0}, 1: {"a": 150.0, "b": 50.0}}
    return [
        {"case": "c", "repetition": turn, "contender": name, "rate": rate}
        for turn, measured in rates.items()
        for name, rate in measured.items()
    ]


def test_a_ratio_compares_rows_of_the_same_turn() -> None:
    found = ratio(_rows(), "rate", {"contender": "a"}, {"contender": "b"})
    assert (found.low, found.median, found.high, found.n) == (3.0, 3.0, 3.0, 2)


def test_a_ratio_leaves_out_turns_that_one_of_them_lacks() -> None:
    rows = [row for row in _rows() if (row["repetition"], row["contender"]) != (1, "b")]
    assert ratio(rows, "rate", {"contender": "a"}, {"contender": "b"}).n == 1
    assert ratio(rows, "rate", {"contender": "a"}, {"contender": "none"}).n == 0


def test_medians_join_numbers_and_keep_what_else_there_is() -> None:
    (a, b) = medians(_rows(), ["contender"])
    assert (a["contender"], a["rate"], a["case"]) == ("a", 225.0, "c")
    assert b["rate"] == 75.0


def test_rows_are_chosen_and_told_apart_by_their_fields() -> None:
    rows = _rows()
    assert [row["rate"] for row in where(rows, contender="b")] == [100.0, 50.0]
    assert distinct(rows, "contender") == ["a", "b"]
    assert middles(rows, ["contender"], "rate")[("b",)].median == 75.0


def test_medians_leave_out_what_is_not_known_and_take_the_most_frequent_word() -> None:
    rows = [{"limit": limit, "rate": rate} for limit, rate in (("a", 1.0), ("b", None), ("b", 3.0))]
    (found,) = medians(rows, [])
    assert found == {"limit": "b", "rate": 2.0}


def test_a_ratio_does_not_mix_seeds() -> None:
    rows = [
        {"case": "c", "seed": seed, "repetition": 0, "contender": name, "rate": rate}
        for seed, rates in {1: (2.0, 1.0), 2: (50.0, 100.0)}.items()
        for name, rate in zip("ab", rates, strict=True)
    ]
    found = ratio(rows, "rate", {"contender": "a"}, {"contender": "b"})
    assert (found.low, found.high) == (0.5, 2.0)
