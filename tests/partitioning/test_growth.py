"""Regions divide into units without losing anything, by space and by text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partitioning.samples import make_sample
from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import dense_bounds
from ps2stream.partitioning.growth import Divisions, Ground
from ps2stream.partitioning.load import STANDARD_COSTS
from ps2stream.partitioning.sample import Sample, digest_of

pytestmark = pytest.mark.kernel


def ground_of(sample: Sample, bits: int = 4) -> Ground:
    return Ground(digest_of(sample), Grid.over(dense_bounds(sample, 0.9), bits), STANDARD_COSTS)


def test_boxes_of_a_region_are_disjoint_and_hold_everything() -> None:
    ground = ground_of(make_sample(300, 100))
    root = ground.everything()
    units = Divisions(ground, root).cut_space(7)
    assert len(units) == 7
    assert sorted(row for unit in units for row in unit.region.held.publications) == list(range(300))
    for unit in units:
        assert set(unit.publications) <= set(unit.region.held.publications)
        assert unit.counts[:2] == (len(unit.publications), len(unit.subscriptions))
    assert {row for unit in units for row in unit.subscriptions} == set(range(100))
    assert sum(unit.region.held.box.n_cells for unit in units) == 256
    assert list(root.leaves()) == [unit.region for unit in units]


def test_what_so_many_boxes_would_cost_is_what_they_cost() -> None:
    ground = ground_of(make_sample(300, 100))
    expected = [Divisions(ground, ground.everything()).by_space(k) for k in range(1, 9)]
    for k, total in enumerate(expected, 1):
        units = Divisions(ground, ground.everything()).cut_space(k)
        assert sum(unit.load for unit in units) == pytest.approx(total)


def test_what_so_many_sets_of_terms_would_cost_is_what_they_cost() -> None:
    ground = ground_of(make_sample(300, 100))
    for k in (1, 2, 5):
        division = Divisions(ground, ground.everything())
        units = division.cut_text(k)
        assert sum(unit.load for unit in units) == pytest.approx(division.by_text(k))
        terms = np.concatenate([unit.terms for unit in units if unit.terms is not None])
        assert sorted(terms) == list(range(len(ground.table(division.region).terms)))


def test_a_single_cell_and_a_single_term_do_not_divide() -> None:
    ground = ground_of(make_sample(50, 20, spread=0.0, n_terms=1))
    division = Divisions(ground, ground.everything())
    assert division.by_space(2) == math.inf
    assert division.by_text(2) == math.inf
    assert len(division.cut_space(2)) == 1
    assert len(division.cut_text(2)) == 1


def test_some_terms_of_a_region_divide_on_their_own() -> None:
    ground = ground_of(make_sample(200, 80))
    region = ground.everything()
    first = Divisions(ground, region).cut_text(2)[0]
    assert first.terms is not None
    halves = ground.text_units(region, first.terms, 2)
    assert sorted(np.concatenate([half.terms for half in halves])) == sorted(first.terms)
    assert set(first.publications) == set().union(*(half.publications.tolist() for half in halves))
