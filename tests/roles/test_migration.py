"""What migrates is exactly the difference of who has to store what before and after."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.deployments import (
    Deployment,
    Holders,
    holders_of,
    local_stream,
    posting_terms,
    random_edit,
    random_plan,
)
from engines.streams import batches_of, events_of, publications_of, subscribe, unsubscribe
from matching.indexes import COUNTERS, built
from matching.scan import Stored as StoredSubscription
from matching.scan import cells_of, columns_of, random_subscriptions
from ps2stream.arrays import Int64s, frozen
from ps2stream.balance.ownership import Ownership
from ps2stream.errors import StateError
from ps2stream.matching.contract import FOREVER, IndexSettings, Subscriptions
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream.registry.segments import DROP, MOVE, SEGMENT, changes
from ps2stream.roles.migration import (
    Stored,
    fetched,
    first_terms,
    joined,
    nothing_migrated,
    touching_cells,
    workers_column,
)
from sizes import examples
from strategies import regions

pytestmark = pytest.mark.kernel

seeds = st.integers(0, 1 << 32)
EXTENTS = [WORLD, (-10.0, -10.0, 10.0, 10.0), (170.0, 60.0, 180.0, 90.0)]


@given(st.lists(regions, max_size=12), st.sampled_from(EXTENTS), st.integers(1, 4), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_touching_names_the_regions_that_share_a_cell_with_the_chosen_ones(
    drawn: list[tuple[float, float, float, float]],
    extent: tuple[float, float, float, float],
    bits: int,
    data: st.DataObject,
) -> None:
    grid = Grid.over(extent, bits)
    cells = data.draw(st.sets(st.integers(0, grid.n_cells - 1), max_size=6))
    touched = touching_cells(grid, np.array(drawn, np.float64).reshape(-1), np.array(sorted(cells), np.int64))
    assert touched.tolist() == [
        row for row, bounds in enumerate(drawn) if cells & cells_of(grid, Region(*bounds))
    ]


def test_a_region_across_the_antimeridian_touches_both_ends_and_nothing_between() -> None:
    grid = Grid.over(WORLD, 2)
    across = np.array([170.0, 10.0, -170.0, 20.0])
    row = grid.cell(0.0, 15.0) >> 2 << 2
    assert [touching_cells(grid, across, np.array([row + column])).tolist() for column in range(4)] == [
        [0],
        [],
        [],
        [0],
    ]
    assert touching_cells(grid, across, np.empty(0, np.int64)).tolist() == []


def test_beyond_the_bounds_of_a_grid_regions_touch_its_outer_cells() -> None:
    grid = Grid.over((0.0, 0.0, 4.0, 4.0), 2)
    far = np.array([100.0, 80.0, 120.0, 85.0])
    assert touching_cells(grid, far, np.array([15])).tolist() == [0]
    assert touching_cells(grid, far, np.arange(15)).tolist() == []


def _changed(rows: pa.RecordBatch, change: int) -> set[tuple[int, int]]:
    found = [
        (row["seq_from"], worker) for row in changes(rows, change).to_pylist() for worker in row["workers"]
    ]
    assert len(found) == len(set(found)), "nobody is told twice"
    return set(found)


def _pairs(holders: Holders) -> set[tuple[int, int]]:
    return {(seq, worker) for seq, workers in holders.items() for worker in workers}


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_a_relocation_moves_and_drops_what_makes_the_difference_and_no_more(seed: int) -> None:
    rng = random.Random(seed)
    events = local_stream(120, seed)
    publications = publications_of(events)
    deployment = Deployment(random_plan(rng))
    for batch in batches_of(events, 40):
        deployment.process(batch)
        before, found = deployment.holders(), deployment.matches(publications)
        assert before == deployment.expected_holders()
        migrated = deployment.relocate(random_edit(rng, deployment.registrar.plan))
        after = deployment.expected_holders()
        assert _changed(migrated.rows, MOVE) == _pairs(after) - _pairs(before)
        assert _changed(migrated.rows, DROP) == _pairs(before) - _pairs(after)
        assert migrated.n_subscriptions == changes(migrated.rows, MOVE).num_rows
        assert (migrated.n_bytes > 0) == (migrated.n_subscriptions > 0)
        assert changes(migrated.rows, DROP).num_rows + migrated.n_subscriptions == migrated.rows.num_rows
        deployment.process()
        assert deployment.holders() == after
        assert deployment.matches(publications) == found


def _assert_complete(deployment: Deployment, rows: pa.RecordBatch) -> None:
    """See that what moves comes with its region, its id and its clauses, each with its rarest term first."""
    plan, live = deployment.registrar.plan, deployment.live()
    for row in changes(rows, MOVE).to_pylist():
        begun: dict[str, Any] = live[row["seq_from"]]
        for name in ("id", "min_lon", "min_lat", "max_lon", "max_lat"):
            assert row[name] == begun[name], name
        assert [sorted(clause) for clause in row["clauses"]] == [sorted(each) for each in begun["clauses"]]
        assert [clause[0] for clause in row["clauses"]] == posting_terms(plan, begun)
        assert row["seq_to"] == FOREVER


def test_what_moves_is_complete() -> None:
    rng = random.Random(11)
    events = local_stream(200, 11)
    deployment = Deployment(random_plan(rng))
    deployment.process(events)
    n_moved = 0
    for _ in range(4):
        migrated = deployment.relocate(random_edit(rng, deployment.registrar.plan))
        deployment.process()
        _assert_complete(deployment, migrated.rows)
        n_moved += migrated.n_subscriptions
    deployment.switch(random_plan(rng))
    deployment.process()
    united = deployment.unite()
    deployment.process()
    _assert_complete(deployment, united.rows)
    assert n_moved > 10
    assert united.n_subscriptions == len(deployment.live())


def test_a_relocation_that_changes_no_owner_moves_nothing() -> None:
    deployment = Deployment(random_plan(random.Random(2)))
    deployment.process(local_stream(80, 2))
    plan = deployment.registrar.plan
    ownership = Ownership(plan)
    for worker in range(plan.n_workers):
        ownership.hand_over(np.arange(plan.grid.n_cells), worker, worker)
    migrated = deployment.relocate(ownership)
    assert (migrated.rows.num_rows, migrated.n_subscriptions, migrated.n_bytes) == (0, 0, 0)
    assert migrated.rows.schema == SEGMENT
    assert deployment.registrar.plan.number == plan.number + 1


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_a_switch_moves_nothing_and_the_union_brings_everything_to_the_newer_plan(seed: int) -> None:
    rng = random.Random(seed)
    events = local_stream(150, seed)
    publications = publications_of(events)
    first, second, third = batches_of(events, 50)
    deployment = Deployment(random_plan(rng))
    deployment.process(first)
    before, found = deployment.holders(), deployment.matches(publications)
    n_live = len(before)
    deployment.switch(random_plan(rng))
    deployment.process()
    assert deployment.holders() == before, "those there were stay where they are"
    assert deployment.matches(publications) == found
    assert deployment.registrar.n_older() == n_live
    deployment.process(second)
    deployment.process(third)
    assert deployment.holders() == deployment.expected_holders()
    plan, older = deployment.registrar.plan, deployment.registrar.n_older()
    found = deployment.matches(publications)
    migrated = deployment.unite()
    assert migrated.n_subscriptions == older
    assert deployment.registrar.n_older() == 0
    assert deployment.registrar.routing.older is None
    deployment.process()
    expected = {seq: holders_of(plan, row) for seq, row in deployment.live().items()}
    assert deployment.holders() == expected
    assert deployment.matches(publications) == found


def test_what_moves_before_a_batch_may_be_replaced_or_ended_in_it() -> None:
    rng = random.Random(5)
    deployment = Deployment(random_plan(rng))
    deployment.process(events_of(*(subscribe(seq, f"s{seq}", "fire OR rain") for seq in range(1, 21))))
    deployment.switch(random_plan(rng))
    deployment.process(events_of(unsubscribe(30, "s1"), subscribe(31, "s2", "smoke"), subscribe(32, "new")))
    deployment.unite()
    segment = deployment.process(
        events_of(unsubscribe(40, "s3"), subscribe(41, "s4"), unsubscribe(42, "new"))
    )
    assert {3, 4} <= set(changes(segment, MOVE).column("seq_from").to_pylist())
    assert deployment.holders() == deployment.expected_holders()
    stored = [worker.index.stored(frozen(np.array([3, 4, 32]))) for worker in deployment.workers]
    for part in stored:
        ends = dict(zip(part.seq_from.tolist(), part.seq_to.tolist(), strict=True))
        assert ends == {seq: {3: 40, 4: 41, 32: 42}[seq] for seq in ends}
    assert {seq for part in stored for seq in part.seq_from.tolist()} == {3, 4, 32}


def _store(numbers: Int64s, stored: list[StoredSubscription]) -> Subscriptions:
    return columns_of([each for each in stored if each.seq_from in numbers])


def test_each_subscription_is_fetched_from_the_first_worker_that_stores_it() -> None:
    stored = random_subscriptions(random.Random(1), 6, 1)
    seqs = np.array([each.seq_from for each in stored])
    marks = np.zeros((6, 4), np.bool_)
    marks[[0, 1, 2, 3, 4, 5], [2, 0, 2, 3, 0, 3]] = True
    marks[:, 3] = True
    asked: dict[int, list[int]] = {}

    def fetch(worker: int, wanted: Int64s) -> Subscriptions:
        asked[worker] = wanted.tolist()
        return _store(wanted, stored)

    found = fetched(Stored(seqs, marks), fetch)
    assert asked == {0: seqs[[1, 4]].tolist(), 2: seqs[[0, 2]].tolist(), 3: seqs[[3, 5]].tolist()}
    expected = columns_of([stored[row] for row in (1, 4, 0, 2, 3, 5)])
    for name, mine, theirs in zip(Subscriptions._fields, found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_a_worker_that_lacks_what_it_should_hand_over_is_an_error() -> None:
    stored = random_subscriptions(random.Random(1), 4, 1)
    index = built(IndexSettings(Grid.over(WORLD, 4), COUNTERS), stored[:3])
    before = Stored(np.array([each.seq_from for each in stored]), np.ones((4, 1), np.bool_))
    with pytest.raises(StateError, match="must hold the 4 subscriptions they hand over; found 3"):
        fetched(before, lambda worker, seqs: index.stored(seqs))


def test_nothing_is_fetched_from_nobody() -> None:
    none = fetched(Stored(np.empty(0, np.int64), np.zeros((0, 3), np.bool_)), _unasked)
    assert len(none.seq_from) == 0
    assert (none.clause_offsets.tolist(), none.term_offsets.tolist()) == ([0], [0])
    assert none.terms.dtype == np.uint64
    assert nothing_migrated().rows.schema == SEGMENT


def _unasked(worker: int, seqs: Int64s) -> Subscriptions:
    pytest.fail("nobody has to be asked")


@given(seeds, st.lists(st.integers(0, 5), max_size=5))
@settings(max_examples=examples(20), deadline=None)
def test_parts_are_joined_one_after_the_other(seed: int, lengths: list[int]) -> None:
    rng = random.Random(seed)
    parts = [random_subscriptions(rng, n, 1 + 100 * i) for i, n in enumerate(lengths)]
    whole = joined([columns_of(part) for part in parts])
    expected = columns_of([each for part in parts for each in part])
    for name, mine, theirs in zip(Subscriptions._fields, whole, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
        assert mine.dtype == theirs.dtype
    firsts = [clause[0] for part in parts for each in part for clause in each.clauses]
    assert first_terms(whole).tolist() == firsts


def test_marks_become_lists_of_workers() -> None:
    marks = np.array([[True, False, True], [False, False, False], [False, True, False]])
    assert workers_column(marks).to_pylist() == [[0, 2], [], [1]]
    assert workers_column(marks[:0]).to_pylist() == []
