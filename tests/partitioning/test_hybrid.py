"""Algorithm 1: it separates, divides, merges and balances as the paper says."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitioning.samples import make_sample
from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import dense_bounds
from ps2stream.partitioning.growth import Divisions, Ground
from ps2stream.partitioning.hybrid import (
    HybridPartitioner,
    HybridSettings,
    cost_of_parts,
    numbers_of_partitions,
    partition_unit,
    partition_workload,
    separate,
)
from ps2stream.partitioning.kdt_tree import SpaceLeaf, TextLeaf
from ps2stream.partitioning.load import STANDARD_COSTS, Costs
from ps2stream.partitioning.sample import Sample, digest_of

pytestmark = pytest.mark.kernel

SETTINGS = HybridSettings(min_publications=100, bits=5)


def ground_of(sample: Sample, costs: Costs = STANDARD_COSTS) -> Ground:
    return Ground(digest_of(sample), Grid.over(dense_bounds(sample, 0.9), 5), costs)


def two_towns(seed: int = 0) -> Sample:
    """In the west people ask for what is written, in the east for something else."""
    sample = make_sample(600, 300, seed)
    terms = sample.clause_terms.copy()
    starts = sample.term_offsets[sample.clause_offsets]
    for row in np.flatnonzero(sample.bounds[0::4] > 10.0):
        terms[starts[row] : starts[row + 1]] = 1 + row % 5
    return sample._replace(clause_terms=terms)


class FakeDivision:
    """A region whose loads are given."""

    is_paper = False

    def __init__(self, costs: list[float]) -> None:
        self.costs = costs

    def by_text(self, n_parts: int) -> float:
        return math.inf

    def by_space(self, n_parts: int) -> float:
        return self.costs[n_parts - 1] if n_parts <= len(self.costs) else math.inf

    @property
    def region(self) -> Any:
        return type("R", (), {"is_text": False})


@pytest.mark.parametrize("seed", range(10))
def test_numbers_of_partitions_are_those_that_exhaustive_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, total = int(rng.integers(1, 5)), int(rng.integers(5, 9))
    tables: list[Any] = [FakeDivision(rng.integers(1, 50, total).astype(float).tolist()) for _ in range(n)]
    found = numbers_of_partitions(tables, total, SETTINGS)
    assert sum(found) == total
    best = min(
        sum(table.by_space(k) for table, k in zip(tables, ways, strict=True))
        for ways in itertools.product(range(1, total + 1), repeat=n)
        if sum(ways) == total
    )
    assert sum(table.by_space(k) for table, k in zip(tables, found, strict=True)) == best


def test_regions_that_do_not_divide_so_far_get_as_many_parts_as_they_have() -> None:
    tables: list[Any] = [FakeDivision([5.0]), FakeDivision([9.0, 8.0])]
    assert numbers_of_partitions(tables, 8, SETTINGS) == [1, 2]


def test_a_similar_region_is_not_looked_into() -> None:
    ground = ground_of(two_towns())
    root = ground.everything()
    similar = replace(SETTINGS, delta=ground.similarity(root))
    assert separate(ground, root, similar, 100) == [root]
    assert not root.is_text


def test_regions_are_cut_as_long_as_they_grow_unlike() -> None:
    ground = ground_of(two_towns())
    root = ground.everything()
    regions = separate(ground, root, replace(SETTINGS, delta=1.0), 100)
    assert len(regions) > 1
    assert set(root.leaves()) == set(regions)
    assert all(region.is_text for region in regions), "with a delta of 1 nothing is similar"
    found = [ground.similarity(region) for region in regions]
    assert min(found) < ground.similarity(ground.everything()) - SETTINGS.epsilon
    slightly_more = ground.similarity(ground.everything()) + 1e-6
    mixed = separate(ground, ground.everything(), replace(SETTINGS, delta=slightly_more), 100)
    assert {region.is_text for region in mixed} == {True, False}


def test_no_more_regions_are_made_than_allowed() -> None:
    ground = ground_of(two_towns())
    root = ground.everything()
    assert len(separate(ground, root, replace(SETTINGS, delta=1.0, epsilon=0.0), 3)) <= 3


def test_regions_of_n_t_go_by_text_when_the_paper_is_followed() -> None:
    ground = ground_of(two_towns())
    region = ground.everything()
    region.is_text = True
    strict = replace(SETTINGS, force_text=True)
    division = Divisions(ground, region)
    assert cost_of_parts(division, 4, strict) == division.by_text(4)
    assert cost_of_parts(division, 4, SETTINGS) == min(division.by_text(4), division.by_space(4))
    done = partition_workload(ground, 4, replace(strict, delta=2.0, epsilon=2.0))
    assert all(unit.terms is not None for unit in done.units)


@pytest.mark.parametrize("n_workers", [1, 4])
def test_regions_where_nobody_waits_for_anything_stay_whole_even_then(n_workers: int) -> None:
    strict = replace(SETTINGS, force_text=True, delta=2.0, epsilon=0.0)
    far_away = make_sample(300, 40)._replace(bounds=np.tile([100.0, 0.0, 110.0, 5.0], 40))
    for sample in (far_away, make_sample(0, 0), make_sample(300, 0)):
        plan = HybridPartitioner(settings=strict).plan(sample, n_workers)
        assert plan.tree is not None
        assert sum(leaf.box.n_cells for leaf in plan.tree.leaves()) == plan.grid.n_cells


def test_by_the_papers_formula_many_sets_of_terms_may_be_cheaper_than_two() -> None:
    costs = replace(STANDARD_COSTS, match=5.0, load="paper")
    n_checked = 0
    for seed in range(4):
        division = Divisions(
            ground_of(two_towns(seed), costs), ground_of(two_towns(seed), costs).everything()
        )
        for k in (2, 4, 8):
            cheaper = min(division.by_text(k), division.by_space(k))
            assert cost_of_parts(division, k, SETTINGS) == cheaper
            n_checked += 1
    assert n_checked == 12


def test_without_publications_the_grid_lies_where_subscriptions_are() -> None:
    west, _, east, _ = HybridPartitioner(settings=SETTINGS).plan(make_sample(0, 50), 3).grid.bounds_of(33)
    assert east - west < 5.0


@pytest.mark.parametrize("n_workers", [2, 5, 8])
def test_sigma_is_kept_where_the_sample_divides(n_workers: int) -> None:
    plan = HybridPartitioner(settings=replace(SETTINGS, sigma=1.3)).plan(two_towns(), n_workers)
    assert plan.estimate is not None
    assert plan.estimate.balance <= 1.3
    assert plan.estimate.keeps_sigma


def test_a_sigma_that_cannot_be_kept_is_reported() -> None:
    sample = make_sample(200, 50, spread=0.0, n_terms=1)
    plan = HybridPartitioner(settings=SETTINGS).plan(sample, 4)
    assert plan.estimate is not None
    assert plan.estimate.balance == math.inf
    assert not plan.estimate.keeps_sigma


def test_theta_bounds_the_number_of_units() -> None:
    ground = ground_of(two_towns())
    done = partition_workload(ground, 4, replace(SETTINGS, sigma=1.0, theta=2))
    assert 4 <= len(done.units) <= 8


def test_the_load_function_of_the_paper_can_be_chosen() -> None:
    costs = replace(STANDARD_COSTS, match=0.5, load="paper")
    plan = HybridPartitioner(costs, SETTINGS).plan(two_towns(), 4)
    assert plan.estimate is not None
    assert plan.estimate.costs == costs
    assert plan.estimate.balance < 2


def test_a_unit_that_does_not_divide_is_final() -> None:
    ground = ground_of(make_sample(50, 20, spread=0.0, n_terms=1))
    (unit,) = Divisions(ground, ground.everything()).cut_space(1)
    assert partition_unit(ground, unit, SETTINGS) == [unit]
    assert unit.is_final


def test_the_tree_and_the_flat_plan_agree_on_every_cell_and_term() -> None:
    plan = HybridPartitioner(settings=replace(SETTINGS, delta=1.0, force_text=True)).plan(two_towns(), 4)
    assert plan.tree is not None
    h1, side = plan.h1, 1 << plan.grid.bits
    owners = h1.cell_owner.reshape(side, side)
    kinds = set()
    for leaf in plan.tree.leaves():
        cells = owners[leaf.box.row : leaf.box.row_stop, leaf.box.column : leaf.box.column_stop]
        kinds.add(type(leaf))
        if isinstance(leaf, SpaceLeaf):
            assert (cells == leaf.worker).all()
        else:
            assert (cells == -1 - leaf.table).all()
            start, stop = h1.table_offsets[leaf.table : leaf.table + 2]
            found = np.bincount(h1.table_workers[start:stop], minlength=4)
            expected = np.zeros(4, np.int64)
            for part in leaf.parts:
                expected[part.worker] += part.n_terms
            assert found.tolist() == expected.tolist()
    assert sum(leaf.box.n_cells for leaf in plan.tree.leaves()) == plan.grid.n_cells
    assert TextLeaf in kinds
