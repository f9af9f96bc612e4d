"""Costs explain the seconds of trials; standard ones depend on nothing but the sample."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from matching.scan import Published, Stored, n_candidates, offsets, random_publications, random_subscriptions
from ps2stream.arrays import Float64s, Int64s, Ragged, frozen
from ps2stream.partitioning.load import LOAD_FUNCTIONS, STANDARD_COSTS, Costs, LoadFunction
from ps2stream.partitioning.sample import LIST_GRID, LIST_MAX_CELLS, Sample, digest_of
from ps2stream.planning.calibration import (
    calibrate,
    fit,
    looks_per_pair,
    part_of,
    prediction,
    quietest,
    rank_correlation,
    standard_costs,
)
from ps2stream.planning.trial import Trial


def _sample(stored: list[Stored], published: list[Published]) -> Sample:
    clauses = [clause for each in stored for clause in each.clauses]
    words = [term for each in published for term in each.terms]
    return Sample(
        frozen(np.array([each.lon for each in published], np.float64)),
        frozen(np.array([each.lat for each in published], np.float64)),
        Ragged(np.array(words, np.uint64), offsets(len(each.terms) for each in published)),
        frozen(np.array([bound for each in stored for bound in each.bounds], np.float64)),
        frozen(offsets(len(each.clauses) for each in stored)),
        frozen(offsets(map(len, clauses))),
        frozen(np.array([term for clause in clauses for term in clause], np.uint64)),
    )


def _drawn(n_subscriptions: int, n_publications: int, seed: int = 1) -> Sample:
    rng = random.Random(seed)
    stored = random_subscriptions(rng, n_subscriptions, 1)
    return _sample(stored, random_publications(rng, n_publications, range(1, 2), stored))


def _trial(costs: Costs, seed: int, **changed: Any) -> Trial:
    """Make up a trial whose seconds are exactly what the costs say."""
    rng = np.random.default_rng(seed)
    n_pubs, n_subs = rng.integers(100, 5000, (2, 6))
    counts: dict[str, Int64s] = {
        "n_publications": n_pubs,
        "n_subscriptions": n_subs,
        "n_lookups": rng.integers(0, 9_000, 6),
        "n_candidates": rng.integers(0, 20_000, 6),
        **changed,
    }
    looks = counts["n_lookups"] + counts["n_candidates"]
    pairs = looks if costs.load == "candidates" else n_pubs * n_subs
    return Trial(
        **counts,
        n_matches=np.zeros(6, np.int64),
        match_s=1e-9 * (costs.match * pairs + costs.publication * n_pubs),
        insert_s=1e-9 * costs.insert * n_subs,
        delete_s=1e-9 * costs.delete * n_subs,
        n_discarded=0,
        sample=_drawn(20, 40),
    )


def _values(costs: Costs) -> list[float]:
    return [costs.match, costs.publication, costs.insert, costs.delete]


KNOWN = {
    "candidates": Costs(170.0, 300.0, 1200.0, 90.0, "candidates"),
    "paper": Costs(0.1, 300.0, 1200.0, 90.0, "paper"),
}


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
def test_a_fit_finds_the_costs_that_made_the_seconds(load: LoadFunction) -> None:
    known = KNOWN[load]
    standard = Costs(2 * known.match, 500.0, 900.0, 150.0, load)
    found = fit([_trial(known, seed) for seed in range(30)], standard)
    assert found.load == load
    assert _values(found) == pytest.approx(_values(known), rel=0.03)


def test_a_fit_of_nothing_gives_the_standard_costs() -> None:
    assert _values(fit([], STANDARD_COSTS)) == pytest.approx(_values(STANDARD_COSTS))


def test_what_the_trials_cannot_tell_costs_the_standard() -> None:
    known, nothing = KNOWN["candidates"], np.zeros(6, np.int64)
    trials = [_trial(known, seed, n_lookups=nothing, n_candidates=nothing) for seed in range(8)]
    found = fit(trials, STANDARD_COSTS)
    assert found.match == pytest.approx(STANDARD_COSTS.match)
    assert found.publication == pytest.approx(known.publication, rel=0.03)


def test_no_cost_is_negative_where_seconds_contradict_the_work() -> None:
    trials = [_trial(KNOWN["candidates"], seed) for seed in range(8)]
    upside_down = [replace(trial, n_candidates=20_000 - trial.n_candidates) for trial in trials]
    assert min(_values(fit(upside_down, STANDARD_COSTS))) >= 0


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
@pytest.mark.parametrize("sizes", [(0, 0), (1, 0), (0, 1), (30, 40)], ids=str)
def test_a_sample_too_small_to_measure_gets_the_standard_costs(
    sizes: tuple[int, int], load: LoadFunction
) -> None:
    sample = _drawn(*sizes)
    assert calibrate(sample, load) == standard_costs(sample, load)


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
def test_calibrated_costs_are_those_of_this_machine(load: LoadFunction) -> None:
    costs = calibrate(_drawn(600, 800), load)
    assert costs.load == load
    assert all(cost > 0 for cost in _values(costs))
    assert _values(costs) != _values(standard_costs(_drawn(600, 800), load))


def test_standard_costs_of_candidates_are_the_same_for_all_samples() -> None:
    assert standard_costs(_drawn(30, 40), "candidates") == STANDARD_COSTS


@pytest.mark.parametrize("seed", range(3))
def test_standard_costs_of_the_paper_spread_looks_over_all_pairs(seed: int) -> None:
    rng = random.Random(seed)
    stored = [
        # A clause is found under its rarest term; with one term each there is no choice.
        Stored(each.seq_from, each.region, tuple(dict.fromkeys((clause[0],) for clause in each.clauses)))
        for each in random_subscriptions(rng, 30, 1)
    ]
    published = random_publications(rng, 40, range(1, 2), stored)
    everywhere = [each._replace(owned=frozenset(each.terms)) for each in published]
    n = sum(n_candidates(LIST_GRID, LIST_MAX_CELLS, stored, each) for each in everywhere)
    sample = _sample(stored, published)
    assert n > 0
    n += len(digest_of(sample).reads.lists)
    assert looks_per_pair(sample) == pytest.approx(n / 1200)
    costs = standard_costs(sample, "paper")
    assert costs.match == pytest.approx(STANDARD_COSTS.match * n / 1200)
    assert _values(costs)[1:] == _values(STANDARD_COSTS)[1:]
    assert costs.load == "paper"


def test_pairs_cost_something_even_where_no_candidate_was_seen() -> None:
    assert standard_costs(_drawn(0, 0), "paper").match > 0


def test_a_part_is_taken_from_all_over_the_sample() -> None:
    sample = _drawn(31, 40)._replace(n_live=1000)
    part = part_of(sample, 8, 10)
    assert (part.n_publications, part.n_subscriptions, part.n_live) == (8, 10, 0)
    for new, old in zip(range(8), range(0, 40, 5), strict=True):
        assert part.terms.row(new).tolist() == sample.terms.row(old).tolist()
        assert (part.lon[new], part.lat[new]) == (sample.lon[old], sample.lat[old])
    for new in range(10):
        old = 31 * new // 10
        assert _clauses(part, new) == _clauses(sample, old)
        assert part.bounds[4 * new : 4 * new + 4].tolist() == sample.bounds[4 * old : 4 * old + 4].tolist()


def _clauses(sample: Sample, row: int) -> list[list[int]]:
    first, stop = sample.clause_offsets[row], sample.clause_offsets[row + 1]
    ends = sample.term_offsets[first : stop + 1]
    return [sample.clause_terms[a:b].tolist() for a, b in pairwise(ends)]


def test_a_part_of_a_smaller_sample_is_the_whole() -> None:
    sample = _drawn(31, 40)
    whole = part_of(sample, 100, 100)
    for name in ("lon", "lat", "bounds", "clause_offsets", "term_offsets", "clause_terms"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(sample, name))
    assert part_of(_drawn(0, 0), 100, 100).n_publications == 0


def test_of_several_trials_the_least_seconds_count() -> None:
    known = KNOWN["candidates"]
    trial = _trial(known, 1)
    noisy = replace(trial, match_s=trial.match_s * [1, 2, 1, 3, 1, 1], delete_s=2 * trial.delete_s)
    other = replace(trial, match_s=trial.match_s * [2, 1, 1, 1, 5, 1], insert_s=3 * trial.insert_s)
    joined = quietest([noisy, other])
    for name in ("match_s", "insert_s", "delete_s", "n_candidates"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(trial, name))


def test_costs_that_made_the_seconds_predict_them() -> None:
    known = KNOWN["candidates"]
    trials = [_trial(known, seed) for seed in range(3)]
    found = prediction(trials, known)
    assert found.n_workers == 18
    assert found.rank_correlation == pytest.approx(1.0)
    assert found.max_error == pytest.approx(0.0, abs=1e-9)
    doubled = prediction(trials, Costs(340.0, 600.0, 2400.0, 180.0))
    assert [doubled.mean_error, doubled.max_error] == pytest.approx([1.0, 1.0])
    assert doubled.rank_correlation == pytest.approx(1.0)


def test_predictions_leave_idle_workers_out() -> None:
    known = KNOWN["candidates"]
    idle = {name: np.array([0, 0, 0, 0, 10, 500]) for name in ("n_publications", "n_subscriptions")}
    assert prediction([_trial(known, 1, **idle)], known).n_workers == 1
    nobody = {name: np.zeros(6, np.int64) for name in idle}
    found = prediction([_trial(known, 1, **nobody)], known)
    assert found.n_workers == 0
    assert math.isnan(found.rank_correlation)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0, 3.0], [10.0, 100.0, 1000.0], 1.0),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
        ([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0], 0.6),
        ([1.0, 2.0, 2.0, 3.0], [1.0, 3.0, 3.0, 9.0], 1.0),
        ([1.0, 1.0, 2.0], [1.0, 2.0, 3.0], math.sqrt(3) / 2),
    ],
)
def test_ranks_are_correlated(a: list[float], b: list[float], expected: float) -> None:
    first: Float64s = np.array(a)
    assert rank_correlation(first, np.array(b)) == pytest.approx(expected)


def test_what_is_all_the_same_correlates_with_nothing() -> None:
    assert math.isnan(rank_correlation(np.ones(3), np.arange(3.0)))
