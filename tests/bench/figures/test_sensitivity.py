"""The figure on thresholds: one is varied at a time, and its values are compared with the default."""

from __future__ import annotations

import pytest

from ps2stream.partitioning.hybrid import HybridSettings
from ps2stream_bench.figure import SCALES, Case, Context, Setting
from ps2stream_bench.figures.sensitivity import FIGURE, VALUES, over_default
from ps2stream_bench.results import Row


def test_thresholds_are_varied_one_at_a_time() -> None:
    context = Context(seed=3)
    settings: dict[str, Setting] = {"country": "us", "kind": "q3", "sample": 150, "live": 300, "corpus": 400}
    case = Case({**settings, "workers": 3, "repetitions": 1})
    rows = list(FIGURE.measure(case, context))
    context.close()
    assert [(row["setting"], row["value"]) for row in rows] == [
        (setting, value) for setting, values in VALUES.items() for value in values
    ]
    assert sum(row["is_default"] for row in rows) == len(VALUES)
    for row in rows:
        assert 0 < row["max_load_ms"] <= row["load_ms"]
        assert row["max_over_mean"] == pytest.approx(3 * row["max_load_ms"] / row["load_ms"])
        assert row["units"] >= 1


def test_the_defaults_of_all_thresholds_are_among_what_is_tried() -> None:
    usual = HybridSettings()
    assert all(getattr(usual, setting) in values for setting, values in VALUES.items())


def loaded(value: float, repetition: int, load: float, *, is_default: bool = False) -> Row:
    about = {"workload": "US-Q1", "setting": "sigma", "value": value, "repetition": repetition}
    sizes = {"sample": 10, "live": 20, "workers": 8}
    return {**about, **sizes, "is_default": is_default, "max_load_ms": load}


def rows_with(best: float) -> list[Row]:
    return [
        loaded(1.1, 0, 10.0, is_default=True),
        loaded(1.1, 1, 20.0, is_default=True),
        loaded(1.5, 0, 10.0 * best),
        loaded(1.5, 1, 20.0 * best),
    ]


def test_values_are_compared_with_the_default_on_the_same_sample() -> None:
    found = over_default(rows_with(0.8))
    assert found["US-Q1", "sigma", 1.5].median == pytest.approx(0.8)
    assert found["US-Q1", "sigma", 1.1].median == pytest.approx(1.0)


def test_a_default_is_good_when_nothing_else_is_much_better() -> None:
    assert [verdict.holds for verdict in FIGURE.page(rows_with(0.95)).verdicts] == [True]
    assert [verdict.holds for verdict in FIGURE.page(rows_with(0.8)).verdicts] == [False]


def test_the_range_of_each_threshold_is_told() -> None:
    assert "sigma 0.80 to 1.00." in FIGURE.page(rows_with(0.8)).differs


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
