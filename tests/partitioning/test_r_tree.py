"""The R-tree partitioner tiles the map by its publications and deals the tiles out by load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.samples import make_sample
from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import all_held, dense_bounds
from ps2stream.partitioning.load import LOAD_FUNCTIONS, Costs, LoadFunction, load_of, rates_of
from ps2stream.partitioning.r_tree import RTreePartitioner, even_lines, tiles
from ps2stream.partitioning.sample import Cells, Digest, Sample, cells_of, digest_of
from ps2stream.partitioning.space_split import Held, count_held, touching_box

pytestmark = pytest.mark.kernel


def _placed(sample: Sample, bits: int) -> tuple[Digest, Cells, Held]:
    digest = digest_of(sample)
    grid = Grid.over(dense_bounds(digest, 0.9), bits)
    return digest, cells_of(grid, digest.lon, digest.lat, digest.bounds), all_held(grid, digest)


@given(st.integers(0, 80), st.integers(0, 20), st.integers(1, 200), st.sampled_from([0.0, 1.0, 20.0, 2000.0]))
@settings(max_examples=40, deadline=None)
def test_tiles_are_disjoint_and_cover_the_map(n_pubs: int, n_subs: int, n_leaves: int, spread: float) -> None:
    digest, cells, held = _placed(make_sample(n_pubs, n_subs, spread=spread), 4)
    times = np.zeros((16, 16), np.int64)
    seen: list[int] = []
    for tile in tiles(cells, held, n_leaves):
        box = tile.box
        times[box.row : box.row_stop, box.column : box.column_stop] += 1
        seen += tile.publications.tolist()
        is_inside = (cells.column >= box.column) & (cells.column < box.column_stop)
        is_inside &= (cells.row >= box.row) & (cells.row < box.row_stop)
        assert tile.publications.tolist() == np.flatnonzero(is_inside).tolist()
        everyone = np.arange(digest.n_subscriptions)
        assert tile.subscriptions.tolist() == touching_box(cells, everyone, box).tolist()
    assert (times == 1).all()
    assert sorted(seen) == list(range(digest.n_publications))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("n_parts", [2, 3, 7])
def test_lines_are_those_nearest_to_the_quantiles(axis: int, n_parts: int) -> None:
    _, cells, held = _placed(make_sample(300, 20), 5)
    at = np.sort((cells.column, cells.row)[axis])
    before = {line: int((at < line).sum()) for line in range(1, 32)}
    wanted = [300 * part / n_parts for part in range(1, n_parts)]
    lines = even_lines(cells, held, axis, n_parts)
    assert len(lines) == n_parts - 1
    for line, n in zip(lines, wanted, strict=True):
        assert abs(before[line] - n) == min(abs(each - n) for each in before.values())


def test_as_many_slices_as_runs_hold_about_as_many_publications() -> None:
    _, cells, held = _placed(make_sample(4000, 20), 8)
    leaves = tiles(cells, held, 15)
    assert len(leaves) == 16, "S is the root of the number of leaves, rounded up"
    sizes = [len(leaf.publications) for leaf in leaves]
    assert min(sizes) > 200
    assert max(sizes) < 300


def test_without_publications_tiles_are_evenly_spaced() -> None:
    _, cells, held = _placed(make_sample(0, 0), 4)
    assert {tile.box.n_cells for tile in tiles(cells, held, 16)} == {16}
    plan = RTreePartitioner(leaves_per_worker=2, bits=4).plan(make_sample(0, 0), 8)
    assert np.bincount(plan.h1.cell_owner).tolist() == [32] * 8


def test_a_cell_that_holds_everything_is_not_cut() -> None:
    _, cells, held = _placed(make_sample(50, 10, spread=0.0), 4)
    assert [tile.box for tile in tiles(cells, held, 64)] == [held.box]


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
@pytest.mark.parametrize("n_workers", [1, 3, 8])
def test_no_worker_has_more_than_the_lightest_and_one_leaf(load: LoadFunction, n_workers: int) -> None:
    costs = Costs(2.0, 3.0, 5.0, 7.0, load)
    sample = make_sample(300, 80)
    plan = RTreePartitioner(costs, bits=5).plan(sample, n_workers)
    digest, cells, held = _placed(sample, 5)
    rates = rates_of(costs, digest.live_weight, digest.churn_weight)
    owners = plan.h1.cell_owner.reshape(32, 32)
    totals, heaviest = np.zeros(n_workers), 0.0
    for leaf in tiles(cells, held, 8 * n_workers):
        box = leaf.box
        (worker,) = set(owners[box.row : box.row_stop, box.column : box.column_stop].reshape(-1).tolist())
        charged = load_of(rates, *map(float, count_held(digest, leaf)))
        totals[worker] += charged
        heaviest = max(heaviest, charged)
    assert totals.min() > 0
    assert totals.max() <= totals.min() + heaviest
