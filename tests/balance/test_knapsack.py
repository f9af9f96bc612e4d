"""The dynamic program finds the cheapest cells; where it has to round, it still reaches the target."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ps2stream.arrays import Float64s, Int64s
from ps2stream.balance.knapsack import cheapest_cells, fill, trace
from ps2stream.balance.selection import GreedySelector, KnapsackSelector, MovableCells

pytestmark = pytest.mark.kernel

Pairs = list[tuple[int, int]]
pairs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9)), max_size=10)


def cells_of(pairs: Pairs) -> MovableCells:
    """Make cells of (load, bytes); whole loads add up to the same in any order."""
    return MovableCells(
        np.array([load for load, _ in pairs], float), np.array([size for _, size in pairs], int)
    )


def random_cells(n: int, seed: int) -> MovableCells:
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(4, 1, n).astype(int)
    return MovableCells(sizes * rng.lognormal(0, 1, n), sizes)


def fewest_bytes(cells: MovableCells, target: float) -> int | None:
    """Try all subsets."""
    rows = range(len(cells.loads))
    costs = [
        sum(cells.sizes[list(chosen)].tolist())
        for n in range(len(rows) + 1)
        for chosen in combinations(rows, n)
        if cells.loads[list(chosen)].sum() >= target
    ]
    return min(costs, default=None)


@given(pairs, st.integers(1, 45))
@example([(5, 7)], 5)  # one cell that fills its budget to the last byte
@example([(3, 4), (3, 4), (3, 4)], 6)  # ties
@example([(1, 0), (2, 0), (9, 3), (4, 1)], 7)  # free cells, but not enough of them
@example([(6, 6), (5, 5), (5, 5)], 10)  # all of the same relative cost, and the first is the wrong one
@settings(max_examples=120, deadline=None)
def test_dp_costs_what_the_best_of_all_subsets_costs(pairs: Pairs, target: int) -> None:
    cells = cells_of(pairs)
    selector = KnapsackSelector()
    rows = selector.select(cells, target)
    fewest = fewest_bytes(cells, target)
    if fewest is None:
        assert rows.tolist() == np.flatnonzero(cells.loads > 0).tolist()
    else:
        assert cells.loads[rows].sum() >= target
        assert cells.sizes[rows].sum() == fewest
    assert selector.unit == 1


@given(pairs, st.integers(1, 45))
@settings(max_examples=60, deadline=None)
def test_the_best_is_found_from_any_solution(pairs: Pairs, target: int) -> None:
    cells = cells_of(pairs)
    everything = np.flatnonzero(cells.loads > 0)
    if cells.loads[everything].sum() >= target:
        rows, unit = cheapest_cells(*cells, target, everything)
        assert cells.sizes[rows].sum() == fewest_bytes(cells, target)
        assert cells.loads[rows].sum() >= target
        assert unit == 1


def test_dp_beats_gr_where_the_best_relative_cost_misleads() -> None:
    # GR takes 0 first, which needs one more cell: 13 bytes. The others do it for 10.
    cells = cells_of([(9, 8), (5, 5), (5, 5)])
    assert GreedySelector().select(cells, 10).tolist() == [0, 1]
    assert KnapsackSelector().select(cells, 10).tolist() == [1, 2]


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 200)), max_size=12),
    st.floats(0, 1),
    st.integers(1, 60),
)
@settings(max_examples=80, deadline=None)
def test_in_units_the_target_is_reached_for_no_more_than_before(
    pairs: list[tuple[float, int]], share: float, max_columns: int
) -> None:
    cells = MovableCells(np.array([load for load, _ in pairs], float), np.array([n for _, n in pairs], int))
    target = share * float(cells.loads.sum())
    start = GreedySelector().select(cells, target)
    rows, unit = cheapest_cells(*cells, target, start, max_columns=max_columns)
    assert cells.loads[rows].sum() >= min(target, cells.loads[start].sum())
    assert cells.sizes[rows].sum() <= cells.sizes[start].sum()
    assert np.all(rows[1:] > rows[:-1])
    assert np.all(cells.loads[rows] > 0)
    if target > 0:
        assert (unit == 1) == (cells.sizes[start].sum() <= max_columns)


@pytest.mark.parametrize("seed", range(6))
def test_a_unit_costs_little(seed: int) -> None:
    cells = random_cells(25, seed)
    target = 0.3 * float(cells.loads.sum())
    start = np.arange(25)
    best, rounded = (cheapest_cells(*cells, target, start, max_columns=columns) for columns in (10_000, 250))
    assert (best.unit, rounded.unit > 1) == (1, True)
    cost = int(cells.sizes[rounded.rows].sum())
    assert cost < cells.sizes.sum()
    # Rounding errs by half a unit for each cell, of the best and of the one that seemed better.
    allowed = rounded.unit * (len(best.rows) + len(rounded.rows)) / 2
    assert cost <= cells.sizes[best.rows].sum() + allowed


def test_many_cells_get_a_coarser_unit() -> None:
    cells = random_cells(40, 0)
    target = 0.3 * float(cells.loads.sum())
    start = GreedySelector().select(cells, target)
    fine = cheapest_cells(*cells, target, start)
    coarse = cheapest_cells(*cells, target, start, max_table_bytes=40 * 4)
    hopeless = cheapest_cells(*cells, target, start, max_table_bytes=1)
    assert fine.unit == 1
    # 40 cells with 4 bytes each leave 31 columns after the first.
    assert coarse.unit >= cells.sizes[start].sum() / 31
    assert hopeless.unit >= cells.sizes[start].sum() / 2
    for packing in (coarse, hopeless):
        assert cells.loads[packing.rows].sum() >= target
        assert cells.sizes[packing.rows].sum() <= cells.sizes[start].sum()


def test_cells_too_small_for_the_unit_stay_as_they_were() -> None:
    # With a unit of 100 the cells of 1 byte have no size; those outside the first solution stay outside.
    cells = cells_of([(50, 600), (50, 400), (3, 1), (3, 1), (3, 1), (3, 0)])
    rows, unit = cheapest_cells(*cells, 52, np.array([0, 2]), max_columns=6)
    assert unit > 2
    assert rows.tolist() == [1, 2, 5]


def test_a_start_that_costs_nothing_or_falls_short_is_kept() -> None:
    cells = cells_of([(5, 0), (4, 3), (9, 2)])
    assert cheapest_cells(*cells, 5, np.array([0])).rows.tolist() == [0]
    assert cheapest_cells(*cells, 20, np.array([0, 1, 2])).rows.tolist() == [0, 1, 2]
    assert cheapest_cells(*cells, 5, np.empty(0, int)).rows.tolist() == []


def largest_loads(loads: Float64s, sizes: Int64s, n_columns: int, free: float) -> list[float]:
    """Compute A(n, j) for all j from all subsets."""
    best = [free] * (n_columns + 1)
    for n in range(len(loads) + 1):
        for chosen in combinations(range(len(loads)), n):
            for column in range(int(sizes[list(chosen)].sum()), n_columns + 1):
                best[column] = max(best[column], free + loads[list(chosen)].sum())
    return best


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 12)), max_size=6), st.integers(12, 40), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_the_last_row_holds_the_largest_loads_and_bits_lead_to_them(
    pairs: Pairs, n_columns: int, is_free: bool
) -> None:
    cells = cells_of(pairs)
    free = 2.0 * is_free
    bits = np.full((len(pairs), n_columns // 8 + 1), 255, np.uint8)
    row = fill(*cells, np.full(n_columns + 1, free), bits)
    assert row.tolist() == largest_loads(*cells, n_columns, free)
    for column in range(n_columns + 1):
        is_taken = np.zeros(len(pairs), np.bool_)
        trace(cells.sizes, bits, column, is_taken)
        assert cells.sizes[is_taken].sum() <= column
        assert free + cells.loads[is_taken].sum() == row[column]


@pytest.mark.parametrize("n_columns", [1, 6, 7, 8, 9, 63, 64, 65])
def test_a_cell_fits_from_its_own_size_on(n_columns: int) -> None:
    for size in {1, n_columns // 2 + 1, n_columns}:
        bits = np.empty((1, n_columns // 8 + 1), np.uint8)
        row = fill(np.array([3.0]), np.array([size]), np.zeros(n_columns + 1), bits)
        assert row.tolist() == [0.0] * size + [3.0] * (n_columns + 1 - size)
        assert int(np.bitwise_count(bits).sum()) == n_columns + 1 - size
