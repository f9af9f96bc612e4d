"""Owners that were edited own what the edits say, and make a plan that a job can load."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.samples import make_sample
from ps2stream.arrays import UInt64s
from ps2stream.balance.ownership import Ownership
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.plan import Plan, owner, owners_of_cells, owners_of_terms
from routing.plans import space_plan, text_plan

pytestmark = pytest.mark.kernel

N_WORKERS = 4
#: Known to tables and not, so that defaults are asked, too.
_DRAWN = [int(term) for term in np.random.default_rng(0).integers(0, 1 << 64, 20, np.uint64)]
TERMS = sorted(_DRAWN[:12])
PROBES = [*_DRAWN, 0, 1, (1 << 64) - 1]

Owners = list[list[int]]


def _owners(plan: Plan) -> Owners:
    """List the owner of every probe in every cell."""
    h1 = plan.h1
    cells = range(plan.grid.n_cells)
    return [[int(owner(h1, cell, np.uint64(term))) for term in PROBES] for cell in cells]


def _plan(seed: int, *, by_text: bool = True) -> Plan:
    rng = random.Random(seed)
    return text_plan(rng, N_WORKERS, 2, TERMS) if by_text else space_plan(rng, N_WORKERS, 2)


def _assert_loads(plan: Plan, directory: Path) -> None:
    """Let the plan pass the check that plans have to pass when they are read."""
    plan.save(directory / "plan.npz")
    assert _owners(Plan.load(directory / "plan.npz")) == _owners(plan)


def _terms(*terms: int) -> UInt64s:
    return np.array(terms, np.uint64)


@given(st.integers(0, 1 << 32), st.booleans(), st.integers(0, 8))
@settings(max_examples=40, deadline=None)
def test_any_edits_own_what_they_say(
    tmp_path_factory: pytest.TempPathFactory, seed: int, by_text: bool, n_edits: int
) -> None:
    rng = random.Random(seed)
    plan = _plan(seed, by_text=by_text)
    ownership, expected = Ownership(plan), _owners(plan)
    changed: set[int] = set()
    for _ in range(n_edits):
        source, destination = rng.randrange(N_WORKERS), rng.randrange(N_WORKERS)
        cells = sorted(rng.sample(range(16), rng.choice((1, 2, 16))))
        if rng.random() < 0.6:
            ownership.hand_over(np.array(cells), source, destination)
            for cell in cells:
                expected[cell] = [destination if each == source else each for each in expected[cell]]
        else:
            cells = cells[:1]
            given_away = rng.sample(TERMS, rng.randint(1, len(TERMS)))
            ownership.divide(cells[0], _terms(*given_away), source, destination)
            expected[cells[0]] = [
                destination if term in given_away and each == source else each
                for term, each in zip(PROBES, expected[cells[0]], strict=True)
            ]
        changed.update(cells)
        assert _owners(ownership.plan(2)) == expected
    assert ownership.changed_cells.tolist() == sorted(changed)
    for cell in range(16):
        assert ownership.owners_of(cell, _terms(*PROBES)).tolist() == expected[cell]
        assert set(expected[cell]) <= ownership.owners(cell)
        if not ownership.is_divided(cell):
            assert ownership.owners(cell) == set(expected[cell])
    _assert_loads(ownership.plan(2), tmp_path_factory.mktemp("plan"))
    assert _owners(plan) == _owners(_plan(seed, by_text=by_text)), "the plan itself stays as it was"


def test_without_edits_the_plan_is_the_same_but_for_its_number_and_its_past(tmp_path: Path) -> None:
    plan = partitioner_named("hybrid").plan(make_sample(300, 80), N_WORKERS, number=6)
    assert plan.estimate is not None
    assert plan.tree is not None
    edited = Ownership(plan).plan(7)
    assert (edited.number, edited.partitioner, edited.n_workers) == (7, plan.partitioner, N_WORKERS)
    assert (edited.estimate, edited.tree) == (None, None)
    assert edited.grid == plan.grid
    assert edited.frequencies is plan.frequencies, "what was posted under a term stays under it"
    rng = np.random.default_rng(1)
    cells, terms = rng.integers(0, plan.grid.n_cells, 500), rng.choice(plan.frequencies.terms, 500)
    for cell, term in zip(cells, terms, strict=True):
        assert owner(edited.h1, cell, term) == owner(plan.h1, cell, term)
    assert Ownership(plan).changed_cells.tolist() == []
    edited.save(tmp_path / "plan.npz")
    assert Plan.load(tmp_path / "plan.npz").number == 7


def test_a_divided_cell_has_two_owners_and_comes_together_again() -> None:
    plan = replace(_plan(1, by_text=False), h1=owners_of_cells(np.full(16, 1, np.int32)))
    ownership = Ownership(plan)
    assert not ownership.is_divided(5)
    ownership.divide(5, _terms(TERMS[3], TERMS[0]), 1, 2)
    assert ownership.is_divided(5)
    assert ownership.owners(5) == {1, 2}
    assert ownership.owners(6) == {1}
    assert ownership.owners_of(5, _terms(TERMS[0], TERMS[1], TERMS[3], 7)).tolist() == [2, 1, 2, 1]
    assert len(ownership.h1().table_offsets) == 2
    ownership.hand_over(np.array([5]), 2, 1)
    assert not ownership.is_divided(5)
    assert ownership.owners(5) == {1}
    h1 = ownership.h1()
    assert h1.cell_owner.tolist() == [1] * 16
    assert (h1.table_offsets.tolist(), h1.default_offsets.tolist()) == ([0], [0]), "unused tables are gone"
    assert len(h1.table_terms) == len(h1.default_workers) == 0


def test_both_halves_may_go_to_a_third_worker_in_any_order() -> None:
    plan = replace(_plan(1, by_text=False), h1=owners_of_cells(np.full(16, 1, np.int32)))
    ownership = Ownership(plan)
    ownership.divide(5, _terms(*TERMS[:4]), 1, 2)
    ownership.hand_over(np.array([5]), 1, 3)
    assert ownership.owners(5) == {2, 3}
    ownership.hand_over(np.array([5]), 2, 3)
    assert ownership.owners(5) == {3}
    assert not ownership.is_divided(5)


def test_only_what_the_source_owns_is_handed_over() -> None:
    plan = replace(_plan(1), h1=owners_of_cells(np.arange(16, dtype=np.int32) % N_WORKERS))
    ownership = Ownership(plan)
    ownership.hand_over(np.arange(16), 1, 3)
    assert ownership.h1().cell_owner.tolist() == [0, 3, 2, 3] * 4
    assert ownership.changed_cells.tolist() == list(range(16)), "all that may have changed"


def test_cells_that_shared_a_table_share_the_renamed_one() -> None:
    workers = np.arange(len(TERMS), dtype=np.int32) % N_WORKERS
    h1 = owners_of_terms(1024, _terms(*TERMS), workers, N_WORKERS)
    plan = Plan(1, "by hand", N_WORKERS, Grid.over(WORLD, 5), h1)
    ownership = Ownership(plan)
    for start in range(0, 600, 200):
        ownership.hand_over(np.arange(start, start + 200), 0, 2)
    h1 = ownership.h1()
    assert len(h1.table_offsets) - 1 == 1, "the terms are there once"
    assert h1.renames.tolist() == [[2, 1, 2, 3]], "for the cells that changed"
    assert len(set(h1.cell_owner[:600].tolist())) == 1
    assert len(set(h1.cell_owner[600:].tolist())) == 1
    ownership.hand_over(np.arange(600, 1024), 0, 2)
    assert len(ownership.h1().table_offsets) - 1 == 1
    ownership.hand_over(np.arange(1024), 2, 1)
    ownership.hand_over(np.arange(1024), 3, 1)
    assert not ownership.is_divided(0)
    assert len(ownership.h1().table_offsets) - 1 == 0


def test_dividing_by_no_terms_gives_nothing_away(tmp_path: Path) -> None:
    plan = replace(_plan(1, by_text=False), h1=owners_of_cells(np.full(16, 1, np.int32)))
    ownership = Ownership(plan)
    ownership.divide(3, _terms(), 1, 2)
    assert set(_owners(ownership.plan(2))[3]) == {1}
    _assert_loads(ownership.plan(2), tmp_path)


def test_cells_that_move_time_and_again_do_not_copy_their_terms() -> None:
    rng = np.random.default_rng(3)
    terms = np.arange(1, 5_001, dtype=np.uint64)
    h1 = owners_of_terms(1024, terms, rng.integers(0, N_WORKERS, 5_000).astype(np.int32), N_WORKERS)
    plan = Plan(1, "by hand", N_WORKERS, Grid.over(WORLD, 5), h1)
    for version in range(2, 12):
        ownership = Ownership(plan)
        for _ in range(3):
            source, destination = rng.integers(0, N_WORKERS, 2)
            ownership.hand_over(rng.integers(0, 1024, 40), int(source), int(destination))
        plan = ownership.plan(version)
    assert len(plan.h1.renames) > 5
    assert len(plan.h1.table_terms) == 5_000
