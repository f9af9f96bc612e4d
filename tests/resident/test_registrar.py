"""A registrar that stays: entries of the log, each at a position of its own; and snapshots."""

from __future__ import annotations

import numpy as np
import pytest

from ps2stream.errors import StateError
from ps2stream.registry.segments import BEGIN, DROP, END, MOVE
from ps2stream.resident.entries import EntryKind
from ps2stream.resident.registrar import ResidentRegistrar
from resident.made import House

pytestmark = pytest.mark.kernel


def changes_in(house: House) -> list[int]:
    changes: list[int] = house.log[-1].segment.column("change").to_pylist()
    return changes


def test_an_entry_says_how_far_all_is_decided_and_by_which_plans() -> None:
    house = House()
    entry = house.update(10, "a", "b")
    assert (entry.kind, entry.upto, entry.generation) == (EntryKind.UPDATES, 14, 0)
    assert entry.routing == house.log[0].routing
    assert changes_in(house) == [BEGIN, BEGIN]


def test_each_adjustment_is_at_a_seq_of_its_own_behind_all_that_is_decided() -> None:
    house = House()
    house.update(10, "a")
    ((source, _, _),) = house.packets(15)
    upto = house.registrar.upto
    first = house.adjust("move", source, 1 - source)
    second = house.adjust("move", 1 - source, source)
    assert upto < first.since == first.upto < second.since == second.upto
    assert sorted(changes_in(house)) == [MOVE, DROP]
    assert first.kind is EntryKind.RELOCATE


def test_only_a_switch_begins_another_generation() -> None:
    house = House()
    house.update(10, "a")
    assert house.adjust("move", 0, 1).generation == 0
    switched = house.adjust("switch")
    assert (switched.generation, switched.routing.older) != (0, None)
    assert house.adjust("unite").generation == 1
    assert house.log[-1].routing.older is None


def test_plans_that_are_new_are_written_and_no_others() -> None:
    house = House()
    house.update(10, "a")
    n = len(house.files.store.list())
    house.adjust("switch")
    house.adjust("unite")
    assert len(house.files.store.list()) == n + 1


@pytest.mark.parametrize(
    "what", [(), ("move",), ("switch",), ("switch", "unite"), ("move", "switch", "move")]
)
def test_one_that_takes_over_decides_as_the_one_before_would(what: tuple[str, ...]) -> None:
    house = House()
    house.update(10, "a", "b", "c")
    for each in what:
        house.adjust(each, 0, 1)
    house.update(house.registrar.upto + 100, "d", "a", ends=["b"])
    other = house.new_registrar()
    assert other.upto == house.registrar.upto
    assert other.n_subscriptions == house.registrar.n_subscriptions == 3
    assert other.n_since_snapshot == house.registrar.n_since_snapshot
    assert other.snapshot(0).made().entry == house.registrar.snapshot(0).made().entry


def test_a_snapshot_has_what_lives_and_what_ended_beyond_the_horizon() -> None:
    house = House()
    house.update(10, "a", "b", "c")
    house.update(20, ends=["a"])
    house.update(30, ends=["b"])
    kept = house.registrar.snapshot(25).made().entry
    rows = zip(*(kept.segment.column(name).to_pylist() for name in ("change", "id")), strict=True)
    assert sorted(rows) == [(BEGIN, "b"), (BEGIN, "c"), (END, "b")]
    assert (kept.kind, kept.horizon, kept.upto) == (EntryKind.SNAPSHOT, 25, house.registrar.upto)
    assert house.registrar.n_since_snapshot == 0


def test_a_snapshot_of_a_snapshot_is_the_same() -> None:
    house = House()
    house.update(10, "a", "b")
    house.update(20, "c", ends=["a"])
    first = house.registrar.snapshot(15).made().entry
    house.log[:] = [first]
    assert house.new_registrar().snapshot(15).made().entry == first


def test_a_subscription_that_came_again_is_one_in_a_snapshot_and_two_while_both_can_be_seen() -> None:
    house = House()
    house.update(10, "a")
    house.update(20, "a")
    both = house.registrar.snapshot(15).made().entry
    house.log[:] = [both]
    assert house.new_registrar().n_subscriptions == 1
    assert both.segment.num_rows == 3
    assert house.new_registrar().snapshot(21).made().entry.segment.num_rows == 1


def test_a_snapshot_waits_until_no_packet_from_before_the_newest_adjustment_can_come() -> None:
    house = House()
    house.update(10, "a")
    assert house.registrar.may_snapshot(-100)
    moved = house.adjust("move", 0, 1)
    assert not house.registrar.may_snapshot(moved.since)
    assert house.registrar.may_snapshot(moved.since + 1)
    assert not house.new_registrar().may_snapshot(moved.since)


def test_what_ended_and_may_be_asked_for_is_not_copied_again_and_again() -> None:
    house = House()
    ids = [f"s{n}" for n in range(2_000)]
    house.update(10, *ids)
    house.update(10_000, ends=ids)
    registrar = house.registrar.registrar
    house.registrar.compact(100)
    before = registrar.registry
    house.registrar.compact(101)
    assert registrar.registry is before
    house.registrar.compact(house.registrar.upto + 1)
    assert registrar.registry.n_ended == 0


def test_a_log_must_begin_with_something() -> None:
    with pytest.raises(StateError, match="must begin with a snapshot"):
        ResidentRegistrar([], House().files.read_plan, gives_order=True)


def test_a_stop_names_its_run_and_changes_nothing() -> None:
    house = House()
    house.update(10, "a")
    stop = house.registrar.stop("mine")
    assert (stop.kind, stop.run, stop.upto) == (EntryKind.STOP, "mine", 12)
    house.tell(stop)
    assert house.new_registrar().n_subscriptions == 1
    assert house.publish(13) == ["a"]


def test_subscriptions_are_handed_over_by_the_archive_and_matched_by_workers_only() -> None:
    house = House()
    house.update(10, "a", "b")
    found = house.registrar._archive.fetch(0, np.array([10]))
    assert found.seq_from.tolist() == [10]
