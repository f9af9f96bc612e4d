"""Whether an engine keeps up is seen by whether latency grows, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest

from ps2stream_bench.live.quantiles import kept_up, quantiles_ms

DUE_S = np.linspace(0.0, 4.0, 1000)


def noise(scale: float) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.0, scale, len(DUE_S))


@pytest.mark.parametrize("latency_s", [0.02, 0.4, 2.0])
def test_an_engine_whose_latency_stays_keeps_up(latency_s: float) -> None:
    assert kept_up(DUE_S, latency_s + noise(latency_s / 2))


@pytest.mark.parametrize("latency_s", [0.02, 0.4])
def test_an_engine_that_does_a_fifth_less_than_is_offered_does_not_keep_up(latency_s: float) -> None:
    assert not kept_up(DUE_S, latency_s + 0.2 * DUE_S)


def test_a_single_stall_does_not_count() -> None:
    latency_s = np.full(len(DUE_S), 0.02)
    latency_s[-100:] = 0.5
    assert kept_up(DUE_S, latency_s)


def test_one_delivery_is_enough_to_be_judged() -> None:
    assert kept_up(np.array([1.0]), np.array([0.5]))


def test_a_quantile_is_the_latency_of_some_publication() -> None:
    row = quantiles_ms(np.array([0.001, 0.002, 0.2]))
    assert row["latency_p50_ms"] == pytest.approx(2.0)
    assert row["latency_max_ms"] == row["latency_p99_ms"] == pytest.approx(200.0)
    assert row["share_over_100_ms"] == pytest.approx(1 / 3)
