"""The frequency partitioner weighs terms by the work they bring and shares them out evenly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.samples import make_sample
from ps2stream.arrays import Float64s
from ps2stream.partitioning.frequency import FrequencyPartitioner, heaviest
from ps2stream.partitioning.load import STANDARD_COSTS, Rates, rates_of
from ps2stream.partitioning.plan import owner
from ps2stream.partitioning.sample import digest_of
from ps2stream.partitioning.text_split import all_terms, term_weights

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("is_paper", [True, False])
def test_a_term_costs_its_publications_its_subscriptions_and_what_meets(is_paper: bool) -> None:
    digest = digest_of(make_sample(80, 40))
    standing = Counter(digest.stands.lists.tolist())
    waiting, holding = Counter[int](), Counter[int]()
    looks = Counter[int]()
    for row in range(digest.n_subscriptions):
        waiting.update(set(digest.stands.terms[slice(*digest.stands.offsets[row : row + 2])].tolist()))
    for row in range(digest.n_publications):
        span = slice(*digest.reads.offsets[row : row + 2])
        holding.update(set(digest.reads.terms[span].tolist()))
        pairs = zip(digest.reads.terms[span].tolist(), digest.reads.lists[span].tolist(), strict=True)
        for term, each in pairs:
            looks[term] += 1 + standing[each]
    table = all_terms(digest)
    assert table.terms.tolist() == sorted(waiting)
    expected = [
        2.0 * (holding[term] * waiting[term] if is_paper else looks[term])
        + 3.0 * holding[term]
        + 5.0 * waiting[term]
        for term in sorted(waiting)
    ]
    np.testing.assert_allclose(term_weights(table, Rates(2.0, 3.0, 5.0, is_paper)), expected)
    assert sum(looks.values()) > 0


@pytest.mark.parametrize("n_workers", [1, 3, 8, 100])
def test_no_worker_has_more_than_the_lightest_and_one_term(n_workers: int) -> None:
    sample = make_sample(400, 200)
    plan = FrequencyPartitioner(bits=3).plan(sample, n_workers)
    digest = digest_of(sample)
    table = all_terms(digest)
    weights = term_weights(table, rates_of(STANDARD_COSTS, digest.live_weight, digest.churn_weight))
    assert plan.h1.table_terms.tolist() == digest.vocabulary[table.terms].tolist()
    totals = np.bincount(plan.h1.table_workers, weights, n_workers)
    assert totals.max() <= totals.min() + weights.max()


def test_only_the_heaviest_terms_are_in_the_table() -> None:
    sample = make_sample(400, 200)
    plan = FrequencyPartitioner(max_terms=5, bits=3).plan(sample, 4)
    digest = digest_of(sample)
    table = all_terms(digest)
    weights = term_weights(table, rates_of(STANDARD_COSTS, digest.live_weight, digest.churn_weight))
    order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    assert plan.h1.table_terms.tolist() == sorted(digest.vocabulary[table.terms[order[:5]]].tolist())
    others = digest.vocabulary[table.terms[order[5:]]]
    assert {owner(plan.h1, 0, term) for term in others} == set(range(4)), "hashes spread the others"


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 25))
@settings(max_examples=60, deadline=None)
def test_the_heaviest_are_no_lighter_than_the_rest_and_in_order(values: list[int], n: int) -> None:
    weights: Float64s = np.array(values, np.float64)
    chosen = heaviest(weights, n).tolist()
    rest = [i for i in range(len(values)) if i not in chosen]
    assert len(chosen) == min(n, len(values))
    assert chosen == sorted(set(chosen))
    assert not chosen or not rest or min(weights[chosen]) >= max(weights[rest])


def test_all_cells_are_divided_alike() -> None:
    plan = FrequencyPartitioner(bits=3).plan(make_sample(100, 50), 4)
    assert set(plan.h1.cell_owner.tolist()) == {-1}
    assert len(plan.h1.cell_owner) == 64
