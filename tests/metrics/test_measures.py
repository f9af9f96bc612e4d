"""Histograms count exactly and estimate closely; measures go through JSON and pickle."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import SchemaError
from ps2stream.metrics.measures import BOUNDS_S, Histogram, RoleMeasures

seconds = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=50)


def histogram_of(values: list[float]) -> Histogram:
    histogram = Histogram()
    histogram.observe(values)
    return histogram


def test_bounds_rise_evenly_from_half_a_millisecond_to_a_minute() -> None:
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (0.0005, 60.0)
    ratios = np.divide(BOUNDS_S[1:], BOUNDS_S[:-1])
    assert ratios.min() > 1.4
    assert ratios.max() < 1.55


@given(seconds)
def test_a_bucket_counts_what_is_at_most_its_bound(values: list[float]) -> None:
    reached = np.cumsum(histogram_of(values).counts)
    assert reached[:-1].tolist() == [sum(value <= bound for value in values) for bound in BOUNDS_S]
    assert reached[-1] == len(values)


@given(seconds)
def test_a_quantile_is_in_the_bucket_of_the_exact_one(values: list[float]) -> None:
    for q in (0.01, 0.5, 0.99, 1.0):
        exact = sorted(values)[max(0, math.ceil(q * len(values)) - 1)]
        bucket = int(np.searchsorted(BOUNDS_S, exact))
        estimate = histogram_of(values).quantile(q)
        if bucket == len(BOUNDS_S):
            assert estimate == BOUNDS_S[-1]
        else:
            low = BOUNDS_S[bucket - 1] if bucket else 0.0
            assert low <= estimate <= BOUNDS_S[bucket]


@given(seconds, seconds)
def test_merged_histograms_are_those_of_all_values(one: list[float], other: list[float]) -> None:
    merged = histogram_of(one)
    merged.merge(histogram_of(other))
    assert merged.counts.tolist() == histogram_of([*one, *other]).counts.tolist()
    assert merged.sum_s == pytest.approx(sum(one) + sum(other))
    assert merged.since(histogram_of(one)).counts.tolist() == histogram_of(other).counts.tolist()


def test_counts_are_weights() -> None:
    weighted = Histogram()
    weighted.observe([0.25, 2.0], [3, 2])
    assert weighted == histogram_of([0.25, 0.25, 0.25, 2.0, 2.0])


def test_clocks_that_differ_make_no_negative_time() -> None:
    histogram = histogram_of([-3.0])
    assert (histogram.counts[0], histogram.sum_s) == (1, 0.0)


def test_nothing_has_no_quantile() -> None:
    assert math.isnan(Histogram().quantile(0.5))


def test_a_copy_does_not_change_with_the_original() -> None:
    histogram = histogram_of([0.1])
    copy = histogram.copy()
    histogram.observe([0.2])
    assert (copy.n, histogram.n) == (1, 2)
    assert copy != histogram


def test_measures_come_back_from_json_and_pickle_as_they_were() -> None:
    measures = RoleMeasures(
        "worker",
        3,
        17,
        "host-2",
        {"candidates": 5.0},
        {"lag_events@alerts.updates": 2.0},
        {"commit_seconds": histogram_of([0.01, 70.0])},
    )
    assert RoleMeasures.from_json(measures.to_json()) == measures
    assert RoleMeasures.from_json(measures.to_json().encode()) == measures
    assert pickle.loads(pickle.dumps(measures)) == measures


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"role": "worker"}',
        '{"role":"w","number":0,"incarnation":0,"host":"","counters":{},"gauges":{},'
        '"histograms":{"commit_seconds":{"counts":[1],"sum_s":0}}}',
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        RoleMeasures.from_json(text)
