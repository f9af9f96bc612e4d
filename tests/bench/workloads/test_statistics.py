"""Figures of a corpus are what they are said to be, on corpora whose figures are known."""

import math

import numpy as np
import pyarrow as pa
import pytest

from ps2stream_bench.workloads import Frame, statistics_of
from ps2stream_bench.workloads.statistics import gini


def test_gini_is_nothing_when_all_are_alike_and_one_less_a_part_when_one_has_all() -> None:
    assert gini(np.full(10, 3)) == pytest.approx(0.0)
    assert gini(np.array([0, 0, 0, 8])) == pytest.approx(0.75)
    assert gini(np.array([1, 3])) == pytest.approx(0.25)


def test_places_are_counted_by_cells_of_a_tenth_of_a_degree() -> None:
    # A hundred cells; 30 publications in one, and one in each of ten others.
    lon = np.concatenate([np.full(30, 0.55), np.arange(10) / 10 + 0.05])
    lat = np.concatenate([np.full(30, 0.55), np.full(10, 0.05)])
    found = statistics_of(lon, lat, pa.array(["storm"] * 40), frame=Frame(0.0, 0.0, 1.0, 1.0))
    assert found.top_cells_share == pytest.approx(30 / 40)
    assert found.n_occupied_cells == 11
    assert found.gini == pytest.approx(gini(np.array([30] + [1] * 10 + [0] * 89)))
    assert found.gini_of_occupied == pytest.approx(gini(np.array([30] + [1] * 10)))


def test_terms_are_counted_once_a_text_and_texts_without_any_not_at_all() -> None:
    texts = pa.array(["a b a", "a", "", "a b c d"])
    found = statistics_of(np.arange(4.0), np.arange(4.0), texts)
    assert found.mean_terms == pytest.approx(7 / 3)
    assert (found.n_publications, found.median_terms) == (4, 2.0)
    assert found.top_terms_share == 1.0
    assert math.isnan(found.zipf_slope)
    assert math.isnan(found.region_cosine)


@pytest.mark.parametrize("slope", [0.7, 1.2])
def test_the_slope_of_a_power_law_is_found(slope: float) -> None:
    counts = (20_000 * np.arange(1, 801) ** -slope).astype(np.int64)
    texts = pa.array([f"w{rank}" for rank in np.repeat(np.arange(800), counts)])
    found = statistics_of(np.zeros(len(texts)), np.zeros(len(texts)), texts)
    assert found.zipf_slope == pytest.approx(slope, abs=0.02)
    assert found.top_terms_share == pytest.approx(counts[:100].sum() / counts.sum())


def test_regions_that_write_of_other_things_are_less_alike_than_random_groups() -> None:
    rng = np.random.default_rng(1)
    n = 12_000
    stops = " ".join(f"s{number}" for number in range(100))
    place = rng.integers(0, 4, n)
    shared = np.where(rng.random(n) < 0.5, rng.integers(0, 20, n), 100 * (1 + place) + rng.integers(0, 20, n))
    texts = pa.array([f"{stops} t{word}" for word in shared])
    found = statistics_of(7.0 * place.astype(np.float64), np.zeros(n), texts)
    # Half of a region's words are its own, so half of the squared length is shared.
    assert found.region_cosine == pytest.approx(0.5, abs=0.03)
    assert found.random_cosine > 0.95


def test_only_what_lies_in_the_frame_counts() -> None:
    lon = np.array([0.5, 0.5, 70.0])
    found = statistics_of(lon, lon, pa.array(["a b", "a b", "far away from here"]), frame=Frame(0, 0, 1, 1))
    assert (found.n_publications, found.mean_terms) == (2, 2.0)
    with pytest.raises(ValueError, match="must hold publications"):
        statistics_of(lon, lon, pa.array(["a", "b", "c"]), frame=Frame(5, 5, 6, 6))
