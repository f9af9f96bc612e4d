"""grid^t never sends a publication past a subscription, and forgets what has left."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.scan import TERMS, Stored, cells_of, offsets, random_subscriptions
from ps2stream.arrays import HeapStorage, Int64s, MappedStorage, Ragged, create_struct, frozen
from ps2stream.errors import StateError
from ps2stream.model.space import WORLD, Grid, Region, cover
from ps2stream.partitioning.plan import Plan, owner, owners_of_cells
from ps2stream.routing.index import MAX_CELLS, GridT, Routed, asked_by, route_by
from ps2stream.routing.layout import DTYPES, H2, HEAD_SIZE, LEVELS, N_KEYS
from ps2stream.routing.route import NOBODY
from ps2stream.routing.routing import Routing
from ps2stream.routing.update import COUNT
from ps2stream.testing.generators import random_point
from routing.plans import space_plan, text_plan
from routing.postings import postings_of
from sizes import examples

pytestmark = pytest.mark.kernel

seeds = st.integers(0, 1 << 32)


def routing_of(grid_ts: list[GridT]) -> Routing[GridT]:
    return Routing(grid_ts[0], grid_ts[1] if len(grid_ts) > 1 else None)


def route_all(grid_ts: list[GridT], points: list[tuple[float, float]], texts: list[list[int]]) -> Routed:
    lon, lat = np.array(points, np.float64).reshape(-1, 2).T
    values = np.array([*itertools.chain(*texts)], np.uint64)
    return route_by(
        routing_of(grid_ts), frozen(lon), frozen(lat), Ragged(frozen(values), frozen(_starts(texts)))
    )


def routed(grid_t: GridT, points: list[tuple[float, float]], texts: list[list[int]]) -> list[list[int]]:
    """Return the owner of every term of every publication."""
    (owners,) = route_all([grid_t], points, texts).owners.tolist()
    return [owners[a:b] for a, b in itertools.pairwise(_starts(texts).tolist())]


def _starts(texts: list[list[int]]) -> Int64s:
    return offsets(map(len, texts))


def inside(rng: random.Random, region: Region) -> tuple[float, float]:
    """Draw a point of a region, most often from its rim."""
    if region.min_lon <= region.max_lon:
        lon = rng.choice((region.min_lon, region.max_lon, rng.uniform(region.min_lon, region.max_lon)))
    else:
        lon = rng.choice((region.min_lon, region.max_lon, rng.uniform(region.min_lon, 180.0), 180.0, -180.0))
    lat = rng.choice((region.min_lat, region.max_lat, rng.uniform(region.min_lat, region.max_lat)))
    lon, lat = min(max(lon, -180.0), 180.0), min(max(lat, region.min_lat), region.max_lat)
    assert region.contains(lon, lat)
    return lon, lat


@given(seeds, st.integers(1, 8), st.integers(1, 6), st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_who_owns_a_posting_term_inside_a_region_has_the_subscription(
    seed: int, n_workers: int, bits: int, by_text: bool
) -> None:
    rng = random.Random(seed)
    plan = (text_plan if by_text else space_plan)(rng, n_workers, bits)
    stored = random_subscriptions(rng, 25, 1)
    grid_t = GridT.create(plan)
    grid_t.add(postings_of(stored))
    workers = grid_t.workers_of(postings_of(stored))
    for row, each in enumerate(stored):
        held = workers.row(row).tolist()
        assert held == sorted(set(held))
        terms = [clause[0] for clause in each.clauses]
        points = [inside(rng, each.region) for _ in range(3)]
        for point, owners in zip(points, routed(grid_t, points, [terms] * 3), strict=True):
            assert NOBODY not in owners
            assert set(owners) <= set(held)
            assert owners == [plan.owner(*point, term) for term in terms]


@given(seeds, st.integers(1, 6), st.booleans())
@settings(max_examples=examples(15), deadline=None)
def test_what_was_added_and_removed_leaves_nothing(seed: int, bits: int, by_text: bool) -> None:
    rng = random.Random(seed)
    plan = (text_plan if by_text else space_plan)(rng, 3, bits)
    grid_t = GridT.create(plan)
    stored = random_subscriptions(rng, 30, 1)
    for start in range(0, 30, 10):
        grid_t.add(postings_of(stored[start : start + 10]))
    assert grid_t.n_live > 0
    rng.shuffle(stored)
    for start in range(0, 30, 6):
        grid_t.remove(postings_of(stored[start : start + 6]))
    assert grid_t.n_live == 0
    assert not grid_t._h2.head[LEVELS:].any()
    assert not (grid_t._h2.cells & COUNT).any()
    assert not (grid_t._h2.terms & COUNT).any()
    points = [random_point(rng) for _ in range(10)]
    assert routed(grid_t, points, [TERMS] * 10) == [[NOBODY] * len(TERMS)] * 10


@given(seeds, st.integers(1, 6))
@settings(max_examples=examples(15), deadline=None)
def test_h2_holds_exactly_the_cells_and_terms_of_who_is_left(seed: int, bits: int) -> None:
    rng = random.Random(seed)
    plan = space_plan(rng, 3, bits)
    stored = random_subscriptions(rng, 30, 1)
    grid_t = GridT.create(plan)
    grid_t.add(postings_of(stored))
    grid_t.remove(postings_of(stored[10:]))
    fresh = GridT.create(plan)
    fresh.add(postings_of(stored[:10]))
    assert grid_t.n_live == fresh.n_live == len(_entries(grid_t.h2_grid, stored[:10]))
    points = [random_point(rng, stored[0].bounds) for _ in range(20)]
    assert routed(grid_t, points, [TERMS] * 20) == routed(fresh, points, [TERMS] * 20)


def _entries(grid: Grid, stored: list[Stored]) -> set[tuple[int, int, int, int]]:
    entries = set()
    for each in stored:
        area = cover(grid, np.array(each.bounds), 0, MAX_CELLS)
        n = 1 << (grid.bits - area.level)
        for r in range(area.n_rows):
            for c in range(area.n_columns):
                cell = ((area.column + c) % n, area.row + r)
                entries |= {(area.level, *cell, clause[0]) for clause in each.clauses}
    return entries


def test_publications_nobody_waits_for_are_discarded_and_the_others_counted_once_a_worker() -> None:
    plan = Plan(1, "by hand", 2, Grid.over(WORLD, 1), owners_of_cells(np.array([0, 1, 0, 1], np.int32)))
    grid_t = GridT.create(plan)
    west, both = (
        Stored(1, Region(-10, 0, -5, 5), ((TERMS[0],),)),
        Stored(3, Region(-5, 0, 5, 5), ((TERMS[1],),)),
    )
    grid_t.add(postings_of([west, both]))
    texts = [[TERMS[0], TERMS[1]], [TERMS[0]], [TERMS[0]], [], [TERMS[1]]]
    done = route_all([grid_t], [(lon, 1.0) for lon in (-5.0, -7.0, -7.0, -7.0, 3.0)], texts)
    # H2 knows cells, not regions: what is in the cell of a subscription may still miss its region.
    assert done.n_publications.tolist() == [3, 1]
    assert [done.rows.row(worker).tolist() for worker in range(2)] == [[0, 1, 2], [4]]
    assert done.n_discarded == 1
    assert done.owners.tolist() == [[0, 0, 0, 0, 1]]


def _tiny(plan: Plan, storage: MappedStorage | None = None) -> GridT:
    sizes = {"head": HEAD_SIZE, "cells": 2, "terms": 2}
    where = storage or HeapStorage()
    return GridT(plan, where, create_struct(H2, DTYPES, sizes, where))


def test_h2_grows_from_nothing_and_uses_dead_keys_again() -> None:
    rng = random.Random(8)
    plan = space_plan(rng, 4, 6)
    grid_t, large = _tiny(plan), GridT.create(plan)
    kept = random_subscriptions(rng, 20, 1)
    for each in kept:
        grid_t.add(postings_of([each]))
    large.add(postings_of(kept))
    size = len(grid_t._h2.cells)
    for _ in range(40):
        passing = random_subscriptions(rng, 3, 1)
        grid_t.add(postings_of(passing))
        grid_t.remove(postings_of(passing))
    assert len(grid_t._h2.cells) <= 4 * size, "dead keys are dropped, the table does not grow with them"
    assert grid_t._h2.head[N_KEYS] == np.count_nonzero(grid_t._h2.cells)
    assert grid_t.n_live == large.n_live
    points = [random_point(rng, rng.choice(kept).bounds) for _ in range(40)]
    assert routed(grid_t, points, [TERMS] * 40) == routed(large, points, [TERMS] * 40)


def test_another_process_routes_by_what_the_registrar_wrote(tmp_path: Path) -> None:
    rng = random.Random(9)
    plan = text_plan(rng, 4, 5)
    grid_t = _tiny(plan, MappedStorage(tmp_path))
    points = [random_point(rng) for _ in range(20)]
    for _ in range(4):
        grid_t.add(postings_of(random_subscriptions(rng, 10, 1)))
        opened = GridT.open(plan, MappedStorage(tmp_path))
        assert opened.n_live == grid_t.n_live
        assert routed(opened, points, [TERMS] * 20) == routed(grid_t, points, [TERMS] * 20)
        assert opened.n_bytes == grid_t.n_bytes


@pytest.mark.parametrize("name", ["head", "cells", "terms"])
def test_a_file_that_was_cut_short_is_reported(tmp_path: Path, name: str) -> None:
    plan = space_plan(random.Random(1), 2, 3)
    GridT.create(plan, MappedStorage(tmp_path)).add(
        postings_of(random_subscriptions(random.Random(1), 10, 1))
    )
    path = tmp_path / f"{name}.array"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(StateError, match=rf"{name}\.array is cut short"):
        GridT.open(plan, MappedStorage(tmp_path))


def test_no_subscriptions_and_no_publications_are_fine() -> None:
    grid_t = GridT.create(space_plan(random.Random(1), 2, 3))
    grid_t.add(postings_of([]))
    assert grid_t.workers_of(postings_of([])).n_rows == 0
    assert grid_t.marks_of(postings_of([])).shape == (0, 2)
    done = route_all([grid_t], [], [])
    assert done.n_publications.tolist() == [0, 0]
    assert done.n_discarded == 0


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_by_two_plans_a_publication_goes_to_whom_it_goes_by_one_of_them(
    seed: int, n_workers: int, bits: int, by_text: bool
) -> None:
    rng = random.Random(seed)
    newer = GridT.create((text_plan if by_text else space_plan)(rng, n_workers, bits))
    older = GridT.create((space_plan if by_text else text_plan)(rng, n_workers, rng.randint(1, 6)))
    stored = random_subscriptions(rng, 24, 1)
    newer.add(postings_of(stored[:12]))
    older.add(postings_of(stored[12:]))
    points = [random_point(rng, rng.choice(stored).bounds) for _ in range(30)]
    texts = [rng.sample(TERMS, rng.randint(0, 4)) for _ in points]
    both = route_all([newer, older], points, texts)
    alone = [route_all([grid_t], points, texts) for grid_t in (newer, older)]
    assert both.owners.tolist() == [each.owners[0].tolist() for each in alone], "newest first"
    for worker in range(n_workers):
        rows = both.rows.row(worker).tolist()
        assert rows == sorted(set(rows)), "once, also where both plans send it"
        assert set(rows) == {row for each in alone for row in each.rows.row(worker).tolist()}
    sent = {row for worker in range(n_workers) for row in both.rows.row(worker).tolist()}
    assert both.n_discarded == len(points) - len(sent), "only what nobody wants under either"
    assert both.n_publications.tolist() == [len(both.rows.row(worker)) for worker in range(n_workers)]
    assert route_all([older, newer], points, texts).owners.tolist() == both.owners[::-1].tolist()


def test_what_one_plan_discards_the_other_may_want() -> None:
    plans = [
        Plan(version, "by hand", 2, Grid.over(WORLD, 1), owners_of_cells(np.full(4, worker, np.int32)))
        for version, worker in ((2, 1), (1, 0))
    ]
    newer, older = map(GridT.create, plans)
    newer.add(postings_of([Stored(9, Region(0, 0, 5, 5), ((TERMS[0],),))]))
    older.add(postings_of([Stored(1, Region(0, 0, 5, 5), ((TERMS[1],),))]))
    texts = [[TERMS[0]], [TERMS[1]], [TERMS[0], TERMS[1]], [TERMS[2]], []]
    done = route_all([newer, older], [(1.0, 1.0)] * 5, texts)
    assert done.owners.tolist() == [
        [1, NOBODY, 1, NOBODY, NOBODY],
        [NOBODY, 0, NOBODY, 0, NOBODY],
    ]
    assert [done.rows.row(worker).tolist() for worker in range(2)] == [[1, 2], [0, 2]]
    assert done.n_discarded == 2


@given(seeds, st.integers(1, 5), st.booleans())
@settings(max_examples=examples(15), deadline=None)
def test_marks_name_the_owners_of_posting_terms_in_all_cells_of_a_region(
    seed: int, bits: int, by_text: bool
) -> None:
    rng = random.Random(seed)
    plan = (text_plan if by_text else space_plan)(rng, 4, bits)
    stored = random_subscriptions(rng, 15, 1)
    grid_t = GridT.create(plan)
    marks = grid_t.marks_of(postings_of(stored))
    assert marks.shape == (15, 4)
    for row, each in enumerate(stored):
        expected = {
            int(owner(plan.h1, cell, np.uint64(clause[0])))
            for cell in cells_of(plan.grid, each.region)
            for clause in each.clauses
        }
        assert np.flatnonzero(marks[row]).tolist() == sorted(expected)
        assert grid_t.workers_of(postings_of(stored)).row(row).tolist() == sorted(expected)


def test_other_owners_change_who_gets_a_publication_but_not_whether_anybody_does() -> None:
    rng = random.Random(4)
    plan = text_plan(rng, 4, 4)
    grid_t = GridT.create(plan)
    stored = random_subscriptions(rng, 30, 1)
    grid_t.add(postings_of(stored))
    turned = plan.h1._replace(
        cell_owner=np.where(plan.h1.cell_owner >= 0, (plan.h1.cell_owner + 1) % 4, plan.h1.cell_owner)
    )
    adjusted = grid_t.adjusted(replace(plan, number=2, h1=turned))
    points = [random_point(rng, rng.choice(stored).bounds) for _ in range(40)]
    one, other = (route_all([each], points, [TERMS] * 40) for each in (grid_t, adjusted))
    assert one.n_discarded == other.n_discarded < 40
    np.testing.assert_array_equal(one.owners == NOBODY, other.owners == NOBODY)
    assert one.owners.tolist() != other.owners.tolist()
    fresh = GridT.create(adjusted.plan)
    fresh.add(postings_of(stored))
    assert other.owners.tolist() == route_all([fresh], points, [TERMS] * 40).owners.tolist()
    # It goes on counting where the other one stopped, in the same storage.
    more = random_subscriptions(rng, 400, 1000)
    adjusted.add(postings_of(more))
    adjusted.remove(postings_of(stored))
    fresh.add(postings_of(more))
    fresh.remove(postings_of(stored))
    assert adjusted.n_live == fresh.n_live


@given(seeds, st.integers(1, 6), st.integers(1, 2))
@settings(max_examples=examples(15), deadline=None)
def test_who_is_not_asked_for_would_not_be_routed(seed: int, bits: int, n_versions: int) -> None:
    rng = random.Random(seed)
    versions = [GridT.create(space_plan(rng, 3, bits)) for _ in range(n_versions)]
    stored = [random_subscriptions(rng, 2, 1) for _ in versions]
    for grid_t, each in zip(versions, stored, strict=True):
        grid_t.add(postings_of(each))
    texts = [[rng.choice(TERMS) for _ in range(rng.randint(0, 4))] for _ in range(30)]
    written = Ragged(np.array([*itertools.chain(*texts)], np.uint64), _starts(texts))
    posted = {clause[0] for each in itertools.chain(*stored) for clause in each.clauses}
    asked = asked_by(routing_of(versions), written)
    assert asked.tolist() == [bool(posted & set(text)) for text in texts], (
        "a term that somebody posts anywhere, in any order and as often as it is written"
    )
    routed = route_all(versions, [random_point(rng) for _ in texts], [sorted(set(text)) for text in texts])
    assert asked[routed.rows.values].all()
    for grid_t, each in zip(versions, stored, strict=True):
        grid_t.remove(postings_of(each))
    assert not asked_by(routing_of(versions), written).any()


def test_owners_are_those_of_the_plan_also_where_tables_were_renamed() -> None:
    rng = random.Random(3)
    plan = text_plan(rng, 4, 3)
    n_tables = len(plan.h1.table_offsets) - 1
    renamed = plan.h1._replace(
        cell_owner=np.where(np.arange(64) % 2, plan.h1.cell_owner, np.int32(-1 - n_tables)),
        renamed_tables=np.zeros(1, np.int32),
        renames=np.array([[3, 2, 1, 0]], np.int32),
    )
    grid_t = GridT.create(replace(plan, h1=renamed))
    grid_t.add(postings_of([Stored(1, Region(-180, -90, 180, 90), tuple((term,) for term in TERMS))]))
    points = [random_point(rng) for _ in range(50)]
    expected = [[grid_t.plan.owner(*point, term) for term in TERMS] for point in points]
    assert routed(grid_t, points, [TERMS] * 50) == expected


def test_a_count_at_its_limit_stays_there_rather_than_become_another_key() -> None:
    grid_t = GridT.create(space_plan(random.Random(1), 2, 3))
    postings = postings_of([Stored(1, Region(1.0, 1.0, 1.0, 1.0), ((TERMS[3],),))])
    grid_t.add(postings)
    for table in (grid_t._h2.cells, grid_t._h2.terms):
        table[table != 0] |= COUNT
    for change in (grid_t.add, grid_t.remove, grid_t.remove):
        change(postings)
        assert routed(grid_t, [(1.0, 1.0)], [[TERMS[3]]]) != [[NOBODY]]
        assert grid_t.n_live == 1


def test_removing_what_was_never_added_harms_nobody() -> None:
    grid_t = GridT.create(space_plan(random.Random(1), 2, 3))
    here, never = (
        postings_of([Stored(1, Region(1.0, 1.0, 1.0, 1.0), ((term,),))]) for term in (TERMS[3], TERMS[4])
    )
    grid_t.remove(never)
    grid_t.add(here)
    grid_t.remove(never)
    assert routed(grid_t, [(1.0, 1.0)], [[TERMS[3]]]) != [[NOBODY]]
    assert grid_t.n_live == 1
    grid_t.add(never)
    assert routed(grid_t, [(1.0, 1.0)], [[TERMS[4]]]) != [[NOBODY]]
    grid_t.remove(never)
    assert routed(grid_t, [(1.0, 1.0)], [[TERMS[4]]]) == [[NOBODY]]
