"""A cell is divided into halves whose loads are those that a plain count over its sample gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balance.cells import Texts, cell_sample, posted_only
from partitioning.samples import make_sample
from ps2stream.balance.halves import Halves, divide_terms, merged_load
from ps2stream.partitioning.load import STANDARD_COSTS, Costs
from ps2stream.partitioning.sample import Sample

pytestmark = pytest.mark.kernel

PAPER = replace(STANDARD_COSTS, load="paper")
#: As Definition 1 without anything but pairs.
PAIRS = Costs(match=1.0, publication=0.0, insert=0.0, delete=0.0, load="paper")
ALL_COSTS = [STANDARD_COSTS, PAPER, PAIRS]


def _load(sample: Sample, texts: Texts, posted: Texts, terms: set[int], costs: Costs) -> float:
    """Charge a worker that has some terms, by counting who has one of them (Definition 1)."""
    wanted = terms & {term for some in posted for term in some}
    n_publications = sum(bool(wanted & set(text)) for text in texts)
    n_subscriptions = sum(bool(wanted & set(some)) for some in posted)
    return (
        costs.match * sample.live_weight * n_publications * n_subscriptions
        + costs.publication * n_publications
        + (costs.insert + costs.delete) * sample.churn_weight * n_subscriptions
    )


words = st.integers(1, 9)
texts = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=12)
posted = st.lists(st.lists(words, min_size=1, max_size=2, unique=True), min_size=1, max_size=10)


@given(texts, posted, st.sampled_from([PAPER, replace(PAIRS, publication=0.5, insert=0.1)]))
@settings(max_examples=60, deadline=None)
def test_the_loads_of_halves_are_shares_of_the_load_of_the_whole(
    texts: Texts, posted: Texts, costs: Costs
) -> None:
    sample = cell_sample(texts, posted)
    everything = {term for some in posted for term in some}
    whole = _load(sample, texts, posted, everything, costs)
    halves = divide_terms(sample, costs)
    if halves is None:  # also where all terms belong together
        return
    going = set(halves.terms.tolist())
    assert going < everything
    assert going
    assert halves.goes == pytest.approx(_load(sample, texts, posted, going, costs) / whole)
    assert halves.stays == pytest.approx(_load(sample, texts, posted, everything - going, costs) / whole)
    assert halves.lowers_total == (halves.stays + halves.goes < 1.0)


@given(st.integers(0, 1000), st.sampled_from(ALL_COSTS))
@settings(max_examples=20, deadline=None)
def test_a_merger_of_two_halves_gives_the_whole_back(seed: int, costs: Costs) -> None:
    sample = posted_only(make_sample(60, 40, seed, spread=0.5, n_terms=12))
    halves = divide_terms(sample, costs)
    assert halves is not None
    owners = _owners(sample, halves)
    share = merged_load(sample, owners, 0, 1, costs)
    assert share == pytest.approx(1.0 / (halves.stays + halves.goes))
    assert merged_load(sample, owners, 1, 0, costs) == pytest.approx(share)


def _owners(sample: Sample, halves: Halves) -> np.ndarray:
    return np.isin(sample.clause_terms, halves.terms).astype(np.int32)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_dividing_never_saves_looks(seed: int) -> None:
    sample = posted_only(make_sample(60, 40, seed, spread=0.5, n_terms=12))
    halves = divide_terms(sample, STANDARD_COSTS)
    assert halves is not None
    assert halves.stays + halves.goes >= 1.0 - 1e-9
    share = merged_load(sample, _owners(sample, halves), 0, 1, STANDARD_COSTS)
    assert share is not None
    assert share <= 1.0 + 1e-9


@given(st.integers(0, 1000), st.sampled_from(ALL_COSTS))
@settings(max_examples=20, deadline=None)
def test_halves_are_about_as_heavy_and_the_smaller_one_goes(seed: int, costs: Costs) -> None:
    halves = divide_terms(posted_only(make_sample(200, 100, seed, spread=0.5, n_terms=30)), costs)
    assert halves is not None
    assert 0.0 < halves.size <= 0.5
    assert max(halves.stays, halves.goes) < 1.0
    assert max(halves.stays, halves.goes) < 2.0 * min(halves.stays, halves.goes)


def test_topics_that_nobody_mixes_quarter_the_pairs() -> None:
    texts: Texts = [[1, 7]] * 10 + [[2, 8]] * 10
    posted: Texts = [[1], [1], [2], [2]]
    halves = divide_terms(cell_sample(texts, posted), PAIRS)
    assert halves is not None
    assert (halves.stays, halves.goes, halves.size) == (0.25, 0.25, 0.5)
    assert halves.lowers_total
    assert halves.terms.tolist() in ([1], [2])
    owners = np.array([0, 0, 1, 1], np.int32)
    assert merged_load(cell_sample(texts, posted), owners, 0, 1, PAIRS) == pytest.approx(2.0)


def test_words_that_everybody_uses_together_are_not_divided_and_save_half_when_they_are_merged() -> None:
    texts: Texts = [[1, 2]] * 10
    posted: Texts = [[1, 2]] * 6
    assert divide_terms(cell_sample(texts, posted), PAIRS) is None
    owners = np.array([0, 1] * 6, np.int32)
    assert merged_load(cell_sample(texts, posted), owners, 0, 1, PAIRS) == pytest.approx(0.5)


def test_only_the_parts_of_the_two_workers_are_merged() -> None:
    texts: Texts = [[1], [2], [3], [1, 3], [5]]
    posted: Texts = [[1], [2], [3], [3]]
    sample = cell_sample(texts, posted)
    owners = np.array([4, 7, 9, 9], np.int32)
    apart = sum(_load(sample, texts, posted, {term}, PAPER) for term in (1, 3))
    together = _load(sample, texts, posted, {1, 3}, PAPER)
    assert merged_load(sample, owners, 4, 9, PAPER) == pytest.approx(together / apart)


@pytest.mark.parametrize("costs", ALL_COSTS)
def test_where_there_is_nothing_to_divide_or_to_merge_there_is_no_answer(costs: Costs) -> None:
    nobody = np.empty(0, np.int32)
    for sample in (cell_sample([], []), cell_sample([[1]], []), cell_sample([], [[1]])):
        assert divide_terms(sample, costs) is None
        assert merged_load(sample, nobody, 0, 1, costs) is None
    one_term = cell_sample([[1, 2], [1]], [[1], [1]])
    assert divide_terms(one_term, costs) is None
    assert merged_load(one_term, np.array([0, 0], np.int32), 0, 1, costs) is None, "the other has nothing"
    assert merged_load(one_term, np.array([2, 2], np.int32), 0, 1, costs) is None


def test_terms_that_nobody_writes_may_go_but_weigh_only_their_subscriptions() -> None:
    texts: Texts = [[1]] * 5
    posted: Texts = [[1], [8], [9]]
    sample = cell_sample(texts, posted)
    halves = divide_terms(sample, PAPER)
    assert halves is not None
    assert halves.stays + halves.goes < 1.0 + 1e-9
