"""A local adjustment relieves the busiest worker, moves no more than it says, and is the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balance.cells import cell_sample, cell_table, posted_only
from partitioning.samples import make_sample
from ps2stream.arrays import Float64s, Int64s
from ps2stream.balance import local_adjustment
from ps2stream.balance.halves import divide_terms, merged_load
from ps2stream.balance.loads import CellTable
from ps2stream.balance.local_adjustment import Contents, LocalAdjustment, adjust, is_unbalanced
from ps2stream.balance.ownership import Ownership
from ps2stream.balance.selection import SELECTORS, selector_named
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.load import LOAD_FUNCTIONS, STANDARD_COSTS, Costs, LoadFunction
from ps2stream.partitioning.plan import Plan, balance_of, owners_of_cells
from ps2stream.partitioning.sample import Sample
from sizes import examples

pytestmark = pytest.mark.kernel

GRID = Grid.over(WORLD, 2)
N_CELLS = GRID.n_cells
PAPER = replace(STANDARD_COSTS, load="paper")
SAMPLES = [posted_only(make_sample(40, 30, seed, spread=0.5, n_terms=10)) for seed in range(4)]
NOTHING = cell_sample([], [])


def _evidence(cell: int) -> Sample:
    return SAMPLES[cell % len(SAMPLES)]


def _nothing_known(cell: int) -> Sample:
    return NOTHING


def _plan(owners: Sequence[int], n_workers: int) -> Plan:
    whole = np.resize(np.array(owners, np.int32), N_CELLS)
    return Plan(3, "by hand", n_workers, GRID, owners_of_cells(whole))


class Case(NamedTuple):
    plan: Plan
    tables: list[CellTable]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw owners, some cells of which are divided, and loads of what workers own."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    n_workers = draw(st.integers(2, 5))
    ownership = Ownership(_plan(rng.integers(0, n_workers, N_CELLS).tolist(), n_workers))
    for cell in np.flatnonzero(rng.random(N_CELLS) < draw(st.sampled_from([0.0, 0.2, 0.6]))).tolist():
        terms = rng.permutation(np.unique(_evidence(cell).clause_terms))[:5]
        source = next(iter(ownership.owners(cell)))
        ownership.divide(cell, terms, source, int(rng.integers(n_workers)))
    plan = ownership.plan(3)
    spread = draw(st.sampled_from([0.1, 1.0, 3.0]))
    tables = []
    for worker in range(n_workers):
        mine = [cell for cell in range(N_CELLS) if worker in ownership.owners(cell) and rng.random() < 0.8]
        loads = 1000.0 * rng.lognormal(0, spread, len(mine))
        sizes = rng.integers(0, 5000, len(mine)).tolist()
        tables.append(
            cell_table(dict(zip(mine, loads.tolist(), strict=True)), dict(zip(mine, sizes, strict=True)))
        )
    return Case(plan, tables)


chosen_settings = st.builds(
    AdjustmentSettings,
    target=st.sampled_from([1.0, 1.1, 1.25]),
    hot_cells=st.sampled_from([0, 1, 8]),
    sigma=st.just(1.3),
)


def _adjust(
    case: Case, name: str = "gr", costs: Costs = STANDARD_COSTS, chosen: AdjustmentSettings | None = None
) -> LocalAdjustment | None:
    return adjust(
        case.plan, case.tables, chosen or AdjustmentSettings(), selector_named(name), _evidence, costs
    )


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("costs", [STANDARD_COSTS, PAPER], ids=LOAD_FUNCTIONS)
@given(case=cases(), chosen=chosen_settings)
@settings(max_examples=examples(25), deadline=None)
def test_an_adjustment_lowers_the_largest_load_or_is_not_made(
    name: str, costs: Costs, case: Case, chosen: AdjustmentSettings
) -> None:
    before = [float(table.loads.sum()) for table in case.tables]
    adjusted = _adjust(case, name, costs, chosen)
    if adjusted is None:
        return
    assert adjusted.before.tolist() == pytest.approx(before)
    assert balance_of(before) > chosen.target, "nothing to do otherwise"
    assert adjusted.after.max() < adjusted.before.max()
    if costs.load == "candidates" and all(step.phase != "merge" for step in adjusted.steps):
        # What saves load may leave a worker with less than anybody had; what shifts it does not.
        assert adjusted.after.min() >= adjusted.before.min()
        assert balance_of(adjusted.after.tolist()) <= balance_of(before)
    assert adjusted.after.min() >= 0.0
    assert adjusted.steps
    assert all(step.source != step.destination for step in adjusted.steps)
    assert adjusted.plan.number == case.plan.number + 1
    assert adjusted.plan.grid == case.plan.grid


@pytest.mark.parametrize("name", SELECTORS)
@given(case=cases(), chosen=chosen_settings)
@settings(max_examples=examples(20), deadline=None)
def test_no_round_leaves_a_larger_load_behind_than_it_found(
    name: str, case: Case, chosen: AdjustmentSettings
) -> None:
    seen: list[Float64s] = []

    class Watched(local_adjustment._Adjusting):
        def totals(self) -> Float64s:
            seen.append(super().totals())
            return seen[-1]

    for costs in (STANDARD_COSTS, PAPER):
        seen.clear()
        watched = Watched(case.plan, case.tables, chosen, selector_named(name), _evidence, costs)
        watched.run()
        watched.totals()
        largest = [loads.max() for loads in seen]
        assert all(later <= earlier for earlier, later in pairwise(largest))
        assert len(seen) <= 2 * case.plan.n_workers + 1


@pytest.mark.parametrize("name", SELECTORS)
@given(case=cases())
@settings(max_examples=examples(20), deadline=None)
def test_what_is_moved_leaves_one_worker_and_arrives_at_another(name: str, case: Case) -> None:
    """Without evidence there is nothing but moves, and they can be followed step by step."""
    adjusted = adjust(
        case.plan, case.tables, AdjustmentSettings(), selector_named(name), _nothing_known, STANDARD_COSTS
    )
    if adjusted is None:
        return
    loads = [dict(zip(table.cells.tolist(), table.loads.tolist(), strict=True)) for table in case.tables]
    sizes = [dict(zip(table.cells.tolist(), table.sizes.tolist(), strict=True)) for table in case.tables]
    ownership = Ownership(case.plan)
    for step in adjusted.steps:
        assert step.phase == "move"
        totals = [sum(each.values()) for each in loads]
        assert totals[step.source] == pytest.approx(max(totals))
        assert totals[step.destination] == pytest.approx(min(totals))
        moved = {cell: loads[step.source].pop(cell) for cell in step.cells}
        n_bytes = [sizes[step.source].pop(cell) for cell in step.cells]
        assert step.load == pytest.approx(sum(moved.values()))
        assert step.n_bytes == sum(n_bytes)
        for cell, n in zip(step.cells, n_bytes, strict=True):
            loads[step.destination][cell] = loads[step.destination].get(cell, 0.0) + moved[cell]
            sizes[step.destination][cell] = sizes[step.destination].get(cell, 0) + n
        after = [sum(each.values()) for each in loads]
        larger = max(totals[step.source], totals[step.destination])
        assert max(after[step.source], after[step.destination]) < larger
        ownership.hand_over(np.array(step.cells), step.source, step.destination)
    assert adjusted.after.tolist() == pytest.approx([sum(each.values()) for each in loads])
    assert adjusted.after.sum() == pytest.approx(adjusted.before.sum())
    assert adjusted.cells.tolist() == sorted({cell for step in adjusted.steps for cell in step.cells})
    for mine, theirs in zip(adjusted.plan.h1, ownership.h1(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
@given(case=cases())
@settings(max_examples=examples(8), deadline=None)
def test_the_same_loads_are_adjusted_in_the_same_way(name: str, load: LoadFunction, case: Case) -> None:
    before = [[column.copy() for column in table] for table in case.tables]
    one, other = (_adjust(case, name, replace(STANDARD_COSTS, load=load)) for _ in range(2))
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.steps == other.steps
        assert one.after.tolist() == other.after.tolist()
        for mine, theirs in zip(one.plan.h1, other.plan.h1, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    for table, columns in zip(case.tables, before, strict=True):
        for mine, theirs in zip(table, columns, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg="reports stay as they were")


@pytest.mark.parametrize("name", SELECTORS)
def test_many_cells_are_brought_within_the_target(name: str) -> None:
    rng = np.random.default_rng(2)
    grid = Grid.over(WORLD, 4)
    plan = Plan(1, "by hand", 6, grid, owners_of_cells(np.arange(256, dtype=np.int32) % 6))
    tables = []
    for worker, weight in enumerate((9.0, 1.0, 4.0, 2.0, 0.1, 3.0)):
        cells = range(worker, 256, 6)
        loads = weight * rng.lognormal(0, 1, len(cells))
        tables.append(cell_table(dict(zip(cells, loads.tolist(), strict=True))))
    chosen, selector = AdjustmentSettings(target=1.1), selector_named(name)
    adjusted = adjust(plan, tables, chosen, selector, _nothing_known, STANDARD_COSTS)
    assert adjusted is not None
    assert balance_of(adjusted.before.tolist()) > 20
    # What is left is not worth a step any more.
    assert balance_of(adjusted.after.tolist()) <= 1.15
    everything = _loads(tables)
    owners = adjusted.plan.h1.cell_owner
    again = [
        cell_table({cell: load for cell, load in everything.items() if owners[cell] == worker})
        for worker in range(6)
    ]
    assert [float(table.loads.sum()) for table in again] == pytest.approx(adjusted.after.tolist())
    settled = adjust(adjusted.plan, again, chosen, selector, _nothing_known, STANDARD_COSTS)
    assert settled is None, "what has been adjusted stays as it is"


def _loads(tables: list[CellTable]) -> dict[int, float]:
    return {
        cell: load
        for table in tables
        for cell, load in zip(table.cells.tolist(), table.loads.tolist(), strict=True)
    }


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("costs", [STANDARD_COSTS, PAPER], ids=LOAD_FUNCTIONS)
def test_a_worker_with_all_its_load_in_one_hot_cell_gets_it_divided_by_terms(name: str, costs: Costs) -> None:
    case = Case(_plan([0, 1], 2), [cell_table({4: 1000.0}, {4: 600}), cell_table({})])
    adjusted = _adjust(case, name, costs)
    assert adjusted is not None
    (step,) = adjusted.steps
    assert (step.phase, step.source, step.destination, step.cells) == ("split", 0, 1, (4,))
    halves = divide_terms(_evidence(4), costs)
    assert halves is not None
    assert adjusted.after.tolist() == pytest.approx([1000 * halves.stays, 1000 * halves.goes])
    assert step.load == pytest.approx(1000 * halves.goes)
    assert step.n_bytes == round(600 * halves.size)
    owned = Ownership(adjusted.plan)
    assert owned.owners(4) == {0, 1}
    posted = np.unique(_evidence(4).clause_terms)
    assert set(posted[owned.owners_of(4, posted) == 1].tolist()) == set(halves.terms.tolist())
    assert adjusted.cells.tolist() == [4]


def test_a_cell_that_nobody_knows_anything_about_is_not_divided() -> None:
    plan, tables = _plan([0, 1], 2), [cell_table({4: 1000.0}), cell_table({})]
    selector = selector_named("gr")
    assert adjust(plan, tables, AdjustmentSettings(), selector, _nothing_known, STANDARD_COSTS) is None
    none_hot = AdjustmentSettings(hot_cells=0)
    assert adjust(plan, tables, none_hot, selector, _evidence, STANDARD_COSTS) is None


def test_a_cell_as_busy_as_the_gap_is_not_carried_over() -> None:
    """It would only make the other worker the busiest one."""
    plan = _plan([0, 1], 2)
    tables = [cell_table({0: 900.0, 2: 80.0, 4: 60.0}), cell_table({1: 200.0})]
    for name in SELECTORS:
        adjusted = adjust(
            plan, tables, AdjustmentSettings(), selector_named(name), _nothing_known, STANDARD_COSTS
        )
        assert adjusted is not None
        assert {cell for step in adjusted.steps for cell in step.cells} == {2, 4}
        assert adjusted.after.tolist() == [900.0, 340.0]


def test_halves_of_a_cell_come_together_where_that_saves_load() -> None:
    sample = cell_sample([[1, 2]] * 20, [[1], [2]])
    ownership = Ownership(_plan([0, 1], 2))
    ownership.divide(0, np.array([2], np.uint64), 0, 1)
    plan = ownership.plan(3)
    tables = [cell_table({0: 60.0, 2: 40.0}, {0: 500}), cell_table({0: 20.0}, {0: 300})]
    adjusted = adjust(
        plan, tables, AdjustmentSettings(), selector_named("gr"), lambda cell: sample, STANDARD_COSTS
    )
    assert adjusted is not None
    step = adjusted.steps[0]
    assert (step.phase, step.source, step.destination, step.cells) == ("merge", 0, 1, (0,))
    assert (step.load, step.n_bytes) == (60.0, 500), "what goes, not what comes of it"
    share = merged_load(sample, np.array([0, 1], np.int32), 0, 1, STANDARD_COSTS)
    assert share is not None
    assert share < 1.0
    assert not Ownership(adjusted.plan).is_divided(0)
    assert adjusted.after.sum() < adjusted.before.sum()
    assert adjusted.after.sum() == pytest.approx(40.0 + share * 80.0)


def test_hot_cells_are_divided_first_where_the_papers_load_falls_by_it() -> None:
    topics = cell_sample([[1]] * 50 + [[2]] * 50, [[1]] * 40 + [[2]] * 40)
    plan = _plan([0, 1], 2)
    tables = [cell_table({0: 500.0, 2: 100.0, 4: 100.0}), cell_table({1: 100.0})]
    adjusted = adjust(plan, tables, AdjustmentSettings(), selector_named("gr"), lambda cell: topics, PAPER)
    assert adjusted is not None
    assert adjusted.steps[0].phase == "split"
    assert adjusted.steps[0].cells == (0,)
    assert adjusted.after.sum() < adjusted.before.sum()
    with_looks = adjust(
        plan, tables, AdjustmentSettings(), selector_named("gr"), lambda cell: topics, STANDARD_COSTS
    )
    assert with_looks is not None
    assert with_looks.steps[0].phase == "move", "dividing saves no looks, so moving comes first"


@pytest.mark.parametrize("tables", [[{}, {}], [{0: 5.0}, {1: 5.0}], [{0: 5.4}, {1: 5.0}]])
def test_what_is_balanced_is_left_alone(tables: list[dict[int, float]]) -> None:
    case = Case(_plan([0, 1], 2), [cell_table(loads) for loads in tables])
    for name in SELECTORS:
        assert _adjust(case, name) is None
        assert _adjust(case, name, PAPER) is None


def test_a_worker_without_any_load_gets_some() -> None:
    tables = [cell_table(dict.fromkeys(range(0, 16, 2), 10.0)), cell_table({})]
    adjusted = _adjust(Case(_plan([0, 1], 2), tables))
    assert adjusted is not None
    assert adjusted.after.tolist() == [40.0, 40.0]


def test_cells_without_bytes_go_first() -> None:
    tables = [cell_table(dict.fromkeys(range(0, 16, 2), 10.0), {0: 0, 6: 0}), cell_table({1: 40.0})]
    adjusted = _adjust(Case(_plan([0, 1], 2), tables))
    assert adjusted is not None
    assert adjusted.steps[0].cells[:1] == (0,)
    assert 6 in adjusted.steps[0].cells
    assert adjusted.steps[0].n_bytes == 1000 * (len(adjusted.steps[0].cells) - 2)


@pytest.mark.parametrize(
    ("halves", "expected"),
    [
        ([(3.0, 1.0), (3.0, 1.0)], True),
        ([(3.0, 1.0), (1.0, 1.0)], False),
        ([(1.0, 1.0), (3.0, 1.0)], False),
        ([(3.0, 1.0), (1.0, 3.0)], True),
        ([(1.3, 1.0), (1.3, 1.0)], False),
        ([(0.0, 1.0), (0.0, 1.0)], True),
        ([(0.0, 0.0), (0.0, 0.0)], False),
    ],
)
def test_loads_are_unbalanced_when_they_were_so_before_and_are_so_now(
    halves: list[tuple[float, float]], expected: bool
) -> None:
    assert is_unbalanced([np.array(loads) for loads in halves], 1.3) == expected


def _contents(*workers: dict[int, int]) -> Contents:
    def of(worker: int) -> Int64s:
        sizes = np.zeros(N_CELLS, np.int64)
        sizes[list(workers[worker])] = list(workers[worker].values())
        return sizes

    return of


@pytest.mark.parametrize("name", ["dp", "gr"])
def test_cells_that_the_destination_knows_already_are_cheap_to_move(name: str) -> None:
    mine = dict.fromkeys(range(0, 8, 2), 10.0)
    plan, tables = _plan([0, 1], 2), [cell_table(mine), cell_table({1: 25.0})]
    stored = _contents(dict.fromkeys(mine, 1000), {1: 800, 4: 900, 15: 7})
    adjusted = adjust(
        plan, tables, AdjustmentSettings(), selector_named(name), _nothing_known, STANDARD_COSTS, stored
    )
    assert adjusted is not None
    (step,) = adjusted.steps
    assert (step.phase, step.cells, step.n_bytes) == ("move", (4,), 100), "the others would move whole"
    unknown = adjust(plan, tables, AdjustmentSettings(), selector_named(name), _nothing_known, STANDARD_COSTS)
    assert unknown is not None
    assert unknown.steps[0].n_bytes == 1000


def test_the_parts_of_a_divided_cell_have_no_bytes_in_common() -> None:
    ownership = Ownership(_plan([0, 1], 2))
    ownership.divide(0, np.array([2], np.uint64), 0, 1)
    plan, tables = ownership.plan(3), [cell_table({0: 10.0, 2: 40.0}), cell_table({0: 35.0})]
    stored = _contents({0: 500, 2: 400}, {0: 300})
    adjusted = adjust(
        plan, tables, AdjustmentSettings(), selector_named("gr"), _nothing_known, STANDARD_COSTS, stored
    )
    assert adjusted is not None
    (step,) = adjusted.steps
    assert (step.phase, step.cells, step.n_bytes) == ("move", (0,), 500)


@pytest.mark.parametrize("name", SELECTORS)
def test_by_the_papers_load_a_half_does_not_go_back_where_the_other_is(name: str) -> None:
    """Two halves at one worker cost more pairs than apart; just adding their loads up would not show it."""
    apart = cell_sample([[1]] * 100 + [[2]] * 100, [[1]] * 100 + [[2]] * 100)
    alike = cell_sample([[1]] * 100, [[1]] * 100)
    plan, tables = _plan([0, 1], 2), [cell_table({0: 100.0}), cell_table({1: 70.0})]
    adjusted = adjust(
        plan,
        tables,
        AdjustmentSettings(),
        selector_named(name),
        lambda cell: apart if cell == 0 else alike,
        PAPER,
    )
    assert adjusted is not None
    assert [step.phase for step in adjusted.steps] == ["split"]
    assert Ownership(adjusted.plan).owners(0) == {0, 1}


def test_a_cell_that_is_too_hot_for_two_workers_is_shared_by_more() -> None:
    terms = [[term] for term in range(1, 33)]
    hot = cell_sample(terms * 10, terms)
    adjusted = adjust(
        _plan([0, 1, 2, 3], 4),
        [cell_table({0: 1000.0}), *(cell_table({worker: 1.0}) for worker in (1, 2, 3))],
        AdjustmentSettings(),
        selector_named("gr"),
        lambda cell: hot if cell == 0 else NOTHING,
        STANDARD_COSTS,
    )
    assert adjusted is not None
    assert Ownership(adjusted.plan).owners(0) == {0, 1, 2, 3}
    assert adjusted.after.max() < 400
