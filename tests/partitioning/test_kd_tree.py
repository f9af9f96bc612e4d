"""The kd-tree partitioner finds the best of all cuts, costliest box first, and always ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.samples import make_sample
from ps2stream.arrays import Int64s
from ps2stream.partitioning.kd_tree import KdTreePartitioner, best_cut, box_cost, cut_up, running_sums
from ps2stream.partitioning.kdt_tree import Box, KdtTree, SpaceLeaf
from ps2stream.partitioning.load import LOAD_FUNCTIONS, Costs, LoadFunction, load_of, rates_of
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import cells_of, digest_of
from ps2stream.partitioning.space_split import Held, count_held, touching_box

pytestmark = pytest.mark.kernel


@st.composite
def cost_grids(draw: st.DrawFn) -> Int64s:
    """Draw small grids, most of whose cells cost nothing."""
    n_rows, n_columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    cell = st.one_of(st.just(0), st.integers(0, 9))
    cells = draw(st.lists(cell, min_size=n_rows * n_columns, max_size=n_rows * n_columns))
    return np.array(cells, np.int64).reshape(n_rows, n_columns)


def _whole(costs: Int64s) -> Box:
    return Box(0, 0, costs.shape[1], costs.shape[0])


def _cost(costs: Int64s, box: Box) -> int:
    return int(costs[box.row : box.row_stop, box.column : box.column_stop].sum())


def _all_halves(box: Box) -> list[tuple[Box, Box]]:
    columns = [box.halves(0, at) for at in range(box.column + 1, box.column_stop)]
    return columns + [box.halves(1, at) for at in range(box.row + 1, box.row_stop)]


@given(cost_grids(), st.data())
@settings(max_examples=60, deadline=None)
def test_running_sums_give_the_cost_of_any_box(costs: Int64s, data: st.DataObject) -> None:
    rows = sorted(data.draw(st.tuples(*[st.integers(0, costs.shape[0])] * 2)))
    columns = sorted(data.draw(st.tuples(*[st.integers(0, costs.shape[1])] * 2)))
    box = Box(columns[0], rows[0], columns[1], rows[1])
    assert box_cost(running_sums(costs), box) == _cost(costs, box)


@given(cost_grids(), st.data())
@settings(max_examples=100, deadline=None)
def test_no_line_divides_the_cost_of_a_box_better(costs: Int64s, data: st.DataObject) -> None:
    row, column = (data.draw(st.integers(0, n - 1)) for n in costs.shape)
    box = Box(column, row, costs.shape[1], costs.shape[0])
    if box.n_cells == 1:
        return
    cut = best_cut(running_sums(costs), box)

    def difference(halves: tuple[Box, Box]) -> int:
        return abs(_cost(costs, halves[0]) - _cost(costs, halves[1]))

    found = box.halves(*cut)
    assert min(half.n_cells for half in found) > 0
    assert difference(found) == min(map(difference, _all_halves(box)))


def test_without_any_cost_the_longer_side_is_halved() -> None:
    sums = running_sums(np.zeros((4, 8), np.int64))
    assert best_cut(sums, Box(0, 0, 8, 4)) == (0, 4)
    assert best_cut(sums, Box(0, 0, 2, 4)) == (1, 2)
    assert best_cut(sums, Box(4, 0, 8, 4)) == (0, 6)


def test_a_single_cell_that_costs_is_bare_after_four_cuts() -> None:
    costs = np.zeros((64, 64), np.int64)
    costs[20, 37] = 5
    cuts = cut_up(running_sums(costs), 5)
    assert any(Box(37, 20, 38, 21) in box.halves(*cut) for box, cut in cuts.items())


@given(cost_grids(), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_the_costliest_box_that_can_be_cut_is_cut_next(costs: Int64s, n_boxes: int) -> None:
    sums = running_sums(costs)
    boxes = [_whole(costs)]
    for _ in range(n_boxes - 1):
        divisible = [box for box in boxes if box.n_cells > 1]
        if not divisible:
            break
        costliest = max(divisible, key=lambda box: (_cost(costs, box), box.n_cells, *(-side for side in box)))
        boxes.remove(costliest)
        boxes += costliest.halves(*best_cut(sums, costliest))
    cuts = cut_up(sums, n_boxes)
    halves = [half for box, cut in cuts.items() for half in box.halves(*cut)]
    assert sorted(boxes) == sorted(box for box in [_whole(costs), *halves] if box not in cuts)
    assert len(boxes) == min(n_boxes, costs.size)


def _leaves(tree: KdtTree | None) -> list[SpaceLeaf]:
    assert tree is not None
    leaves = [leaf for leaf in tree.leaves() if isinstance(leaf, SpaceLeaf)]
    assert len(leaves) == len(list(tree.leaves()))
    return leaves


def _owners(plan: Plan) -> Int64s:
    side = 1 << plan.grid.bits
    return plan.h1.cell_owner.reshape(side, side).astype(np.int64)


@pytest.mark.parametrize("n_workers", [1, 2, 8, 13])
def test_every_worker_owns_the_cells_of_one_leaf(n_workers: int) -> None:
    plan = KdTreePartitioner(bits=5).plan(make_sample(300, 80), n_workers)
    leaves = _leaves(plan.tree)
    assert [leaf.worker for leaf in leaves] == list(range(n_workers))
    assert sum(leaf.box.n_cells for leaf in leaves) == plan.grid.n_cells
    for leaf in leaves:
        box = leaf.box
        assert (_owners(plan)[box.row : box.row_stop, box.column : box.column_stop] == leaf.worker).all()


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
def test_the_load_of_a_leaf_is_that_of_what_reaches_it(load: LoadFunction) -> None:
    costs = Costs(2.0, 3.0, 5.0, 7.0, load)
    sample = make_sample(200, 60)
    plan = KdTreePartitioner(costs, bits=4).plan(sample, 5)
    digest = digest_of(sample)
    cells = cells_of(plan.grid, digest.lon, digest.lat, digest.bounds)
    owners = _owners(plan)[cells.row, cells.column]
    rates = rates_of(costs, digest.live_weight, digest.churn_weight)
    for leaf in _leaves(plan.tree):
        held = Held(
            leaf.box, np.flatnonzero(owners == leaf.worker), touching_box(cells, np.arange(60), leaf.box)
        )
        assert leaf.load == pytest.approx(load_of(rates, *map(float, count_held(digest, held))))


def test_an_empty_sample_shares_the_map_out_by_area() -> None:
    plan = KdTreePartitioner(bits=4).plan(make_sample(0, 0), 8)
    assert {leaf.box.n_cells for leaf in _leaves(plan.tree)} == {32}


def test_fewer_cells_than_workers_leave_workers_without_one() -> None:
    plan = KdTreePartitioner(bits=1).plan(make_sample(100, 20), 9)
    assert sorted(plan.h1.cell_owner.tolist()) == [0, 1, 2, 3]
