"""What every selector promises, and what GR, SI and RA choose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ps2stream.arrays import Int64s, frozen
from ps2stream.balance.selection import (
    SELECTORS,
    GreedySelector,
    MovableCells,
    RandomSelector,
    scan,
    selector_named,
)
from ps2stream.errors import ConfigError

pytestmark = pytest.mark.kernel

NAMES = sorted(SELECTORS)


def cells_of(*pairs: tuple[float, int]) -> MovableCells:
    """Make cells of (load, bytes)."""
    return MovableCells(np.array([load for load, _ in pairs], float), np.array([n for _, n in pairs], int))


def random_cells(n: int, seed: int = 0) -> MovableCells:
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(3, 1, n).astype(int)
    return MovableCells(sizes * rng.lognormal(0, 1, n), sizes)


#: Loads whose sums are exact in any order, next to loads of all kinds.
whole_loads = st.integers(0, 8).map(float)
any_loads = st.one_of(whole_loads, st.floats(0, 1e9))
any_cells = st.lists(st.tuples(any_loads, st.integers(0, 30)), max_size=12).map(lambda cs: cells_of(*cs))
whole_cells = st.lists(st.tuples(whole_loads, st.integers(0, 9)), max_size=10).map(lambda cs: cells_of(*cs))


def assert_solves(cells: MovableCells, target: float, rows: Int64s) -> None:
    assert rows.dtype == np.int64
    assert np.all(rows[1:] > rows[:-1]), "ascending, and none twice"
    assert np.all(cells.loads[rows] > 0)
    movable = np.flatnonzero(cells.loads > 0)
    if target <= 0:
        assert len(rows) == 0
    elif cells.loads[movable].sum() < target:
        assert rows.tolist() == movable.tolist()
    else:
        assert cells.loads[rows].sum() >= target


@pytest.mark.parametrize("name", NAMES)
@given(any_cells, st.one_of(st.floats(-1, 1e9), st.floats(0, 30)), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_what_is_chosen_reaches_the_target(name: str, cells: MovableCells, target: float, seed: int) -> None:
    assert_solves(cells, target, selector_named(name, seed).select(cells, target))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.999999, 1.0])
def test_a_share_of_the_load_of_many_cells_is_reached(name: str, share: float) -> None:
    cells = random_cells(60)
    target = share * float(cells.loads.sum())
    assert_solves(cells, target, selector_named(name).select(cells, target))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", [-1.0, 0.0, 1e-9, 5.0, 1e12])
@pytest.mark.parametrize(
    ("cells", "movable"),
    [
        pytest.param(cells_of(), [], id="no cells"),
        pytest.param(cells_of((0.0, 5), (0.0, 0)), [], id="no load"),
        pytest.param(cells_of((0.0, 1), (5.0, 7)), [1], id="one cell"),
        pytest.param(cells_of((5.0, 0)), [0], id="one cell without bytes"),
        pytest.param(cells_of((-3.0, 1), (5.0, 7)), [1], id="a load below zero"),
    ],
)
def test_odd_cells_leave_no_choice(name: str, cells: MovableCells, movable: list[int], target: float) -> None:
    rows = selector_named(name).select(cells, target)
    assert rows.tolist() == (movable if target > 0 else [])
    assert rows.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "sizes", "chosen"),
    [("gr", [6, 3, 1, 1000], [3]), ("dp", [1, 1, 0, 50], [3]), ("si", [1, 2, 3, 0], [0, 1, 2, 3])],
)
def test_cells_that_reach_the_target_in_one_order_only_do_not_reach_it(
    name: str, sizes: list[int], chosen: list[int]
) -> None:
    # 0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1, and selectors add up in an order of their own.
    cells = MovableCells(np.array([0.3, 0.2, 0.1, 9.0]), np.array(sizes))
    target = 0.1 + 0.2 + 0.3
    assert cells.loads[:3].sum() < target
    assert selector_named(name).select(cells, target).tolist() == chosen


@pytest.mark.parametrize("name", NAMES)
def test_all_cells_with_load_move_where_they_stay_below_the_target(name: str) -> None:
    cells = cells_of((1.0, 9), (0.0, 0), (2.0, 1), (3.0, 4))
    for target in (6.0, 6.1, float("inf")):
        assert selector_named(name).select(cells, target).tolist() == [0, 2, 3]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_chooses_the_same_at_every_call(name: str) -> None:
    cells = random_cells(60)
    target = 0.2 * float(cells.loads.sum())
    selector = selector_named(name, seed=7)
    chosen = [each.select(cells, target).tolist() for each in (selector, selector, selector_named(name, 7))]
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_only_read(name: str) -> None:
    cells = MovableCells(*map(frozen, random_cells(30)))
    loads, sizes = cells.loads.copy(), cells.sizes.copy()
    assert len(selector_named(name).select(cells, 0.3 * float(loads.sum())))
    assert (cells.loads.tolist(), cells.sizes.tolist()) == (loads.tolist(), sizes.tolist())


def test_a_selector_is_chosen_by_name() -> None:
    assert NAMES == ["dp", "gr", "ra", "si"]
    assert [selector_named(name).name for name in NAMES] == NAMES
    with pytest.raises(ConfigError, match="selector must be one of dp, gr, si, ra; got 'best'"):
        selector_named("best")


def candidates(cells: MovableCells, target: float) -> list[set[int]]:
    """Scan as Sec. V-A says and return all solutions GS + g'."""
    movable = [row for row in range(len(cells.loads)) if cells.loads[row] > 0]
    taken: list[int] = []
    found = []
    for row in sorted(movable, key=lambda row: cells.sizes[row] / cells.loads[row]):
        if sum(cells.loads[[*taken, row]]) < target:
            taken.append(row)
        else:
            found.append({*taken, row})
    return found


@given(whole_cells, st.integers(1, 40))
@example(cells_of((4.0, 2), (5.0, 3), (9.0, 8), (6.0, 5)), 9)
@settings(max_examples=150, deadline=None)
def test_gr_is_part_of_a_solution_it_met_and_dearer_than_none(cells: MovableCells, target: int) -> None:
    rows = GreedySelector().select(cells, target)
    met = candidates(cells, target)
    assert cells.loads[rows].sum() >= target or not met
    assert not met or any(set(rows.tolist()) <= each for each in met)
    for each in met:
        assert cells.sizes[rows].sum() <= cells.sizes[list(each)].sum()
    for row in rows:
        assert not met or cells.loads[np.setdiff1d(rows, [row])].sum() < target, "every cell is needed"


def test_gr_finds_a_better_last_cell_further_on() -> None:
    # By bytes per load 0, 1, 2; the first to reach 10 is 1, at a cost of 16, and 2 does it for 12.
    cells = cells_of((6.0, 1), (9.0, 15), (5.0, 11))
    assert GreedySelector().select(cells, 10.0).tolist() == [0, 2]


def test_gr_takes_a_cell_that_comes_after_a_candidate() -> None:
    # 1 reaches 10 and is put aside (101), 2 is taken, and with it 3 is the cheapest end (1 + 5 + 30).
    cells = cells_of((6.0, 1), (100.0, 100), (2.0, 5), (3.0, 30))
    assert GreedySelector().select(cells, 10.0).tolist() == [0, 2, 3]


def test_gr_drops_what_its_last_cell_makes_superfluous() -> None:
    # 0 and 1 stay below 10; only 2 reaches it, and does so without 1.
    cells = cells_of((2.0, 1), (3.0, 2), (9.0, 40))
    assert GreedySelector().select(cells, 10.0).tolist() == [0, 2]


def test_gr_compares_solutions_without_what_is_superfluous() -> None:
    # 2 and then 3 reach 10, for 5 + 15 and 5 + 18 bytes. Only 3 can do without 1, and so needs 19.
    cells = cells_of((2.0, 1), (2.0, 4), (7.0, 15), (8.0, 18))
    assert GreedySelector().select(cells, 10.0).tolist() == [0, 3]


def test_gr_stops_looking_for_superfluous_cells_but_keeps_its_promises() -> None:
    # All of one relative cost: no candidate can be ruled out, and there are too many to look at each.
    sizes = np.random.default_rng(3).permutation(400)[:200] + 100
    cells = cells_of(*((2.0 * size, size) for size in sizes.tolist()))
    target = 0.4 * float(cells.loads.sum()) + 0.5
    rows = GreedySelector().select(cells, target)
    assert cells.loads[rows].sum() >= target
    assert cells.sizes[rows].sum() <= min(cells.sizes[list(each)].sum() for each in candidates(cells, target))


def test_gr_takes_cells_without_bytes_first() -> None:
    cells = cells_of((9.0, 5), (4.0, 0), (5.0, 0), (2.0, 1))
    assert GreedySelector().select(cells, 9.0).tolist() == [1, 2]


def test_gr_scans_a_cell_with_next_to_no_load_last() -> None:
    cells = cells_of((5e-324, 1 << 60), (2.0, 3), (1.0, 2))
    assert GreedySelector().select(cells, 2.5).tolist() == [1, 2]


def test_a_scan_without_a_candidate_chooses_all() -> None:
    cells = cells_of((1.0, 1), (2.0, 2))
    chosen = np.empty(2, int)
    assert scan(cells, cells.sizes / cells.loads, np.arange(2), 3.5, chosen) == 2
    assert chosen.tolist() == [0, 1]


def test_si_takes_the_largest_cells() -> None:
    cells = cells_of((1.0, 5), (1.0, 9), (0.0, 99), (1.0, 7), (1.0, 9))
    assert selector_named("si").select(cells, 2.0).tolist() == [1, 4]
    assert selector_named("si").select(cells, 2.5).tolist() == [1, 3, 4]


def test_ra_takes_every_cell_for_some_seed_and_no_more_than_it_needs() -> None:
    cells = cells_of(*[(1.0, 1)] * 10)
    chosen = [RandomSelector(seed).select(cells, 3.0).tolist() for seed in range(40)]
    assert {len(rows) for rows in chosen} == {3}
    assert {row for rows in chosen for row in rows} == set(range(10))
