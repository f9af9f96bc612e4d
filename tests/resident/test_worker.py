"""A worker that stays: moved in at once, moved out late, an index for each generation of plans."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ps2stream.resident.entries import EntryKind
from resident.made import House

pytestmark = pytest.mark.kernel


def test_a_packet_sees_the_subscriptions_of_its_position_whatever_was_applied_beyond() -> None:
    house = House()
    house.update(10, "a", "b")
    house.update(20, "c", ends=["a"])
    assert house.publish(11) == ["a"]
    assert house.publish(13) == ["a", "b"]
    assert house.publish(21) == ["a", "b", "c"]
    assert house.publish(23) == ["b", "c"]


@pytest.mark.parametrize("is_late", [False, True])
def test_what_moves_is_found_once_on_either_side_of_the_move(is_late: bool) -> None:
    house = House()
    house.update(10, "a", "b")
    (source,) = {worker for worker, _, _ in house.packets(15)}
    early = house.packets(15)
    moved = house.adjust("move", source, 1 - source)
    if is_late:
        early = house.packets(15)
    after = house.packets(moved.since + 1)
    assert [worker for worker, _, _ in early] == [source]
    assert [worker for worker, _, _ in after] == [1 - source]
    assert house.deliver(after) == house.deliver(early) == ["a", "b"]


def test_what_moves_out_goes_when_no_earlier_packet_can_come() -> None:
    house = House()
    house.update(10, "a")
    ((source, _, _),) = house.packets(15)
    worker = house.workers[source]
    moved = house.adjust("move", source, 1 - source)
    worker.forget(moved.since)
    assert worker.newest.index.counts().n_subscriptions == 1
    worker.forget(moved.since + 1)
    assert worker.newest.index.counts().n_subscriptions == 0


def test_what_comes_back_before_it_has_gone_stays() -> None:
    house = House()
    house.update(10, "a", "b")
    ((source, _, _),) = house.packets(15)
    house.adjust("move", source, 1 - source)
    back = house.adjust("move", 1 - source, source)
    for worker in house.workers:
        worker.forget(back.since + 1)
    assert house.owners() == {source}
    assert house.publish(back.since + 1) == ["a", "b"]


def test_what_moved_out_and_comes_back_later_has_its_name_again() -> None:
    house = House()
    house.update(10, "a", "b")
    ((source, _, _),) = house.packets(15)
    gone = house.adjust("move", source, 1 - source)
    house.workers[source].forget(gone.since + 1)
    house.update(gone.upto + 100, "c", ends=["a"])
    back = house.adjust("move", 1 - source, source)
    assert house.publish(back.since + 1) == ["b", "c"]
    house.update(back.upto + 100, ends=["b"])
    assert house.publish(house.registrar.upto + 1) == ["c"]


def test_an_end_while_two_have_it_ends_it_for_later_packets_and_for_them_only() -> None:
    house = House()
    house.update(10, "a")
    ((source, _, _),) = house.packets(15)
    early = house.packets(15)
    moved = house.adjust("move", source, 1 - source)
    house.update(moved.upto + 100, ends=["a"])
    assert house.deliver(early) == ["a"]
    assert house.publish(moved.since + 1) == ["a"]
    assert house.publish(house.registrar.upto + 1) == []


def test_a_switch_and_its_end_change_no_match_of_any_position() -> None:
    house = House(3)
    house.update(10, "a", "b")
    before = house.packets(15)
    switched = house.adjust("switch")
    assert switched.kind is EntryKind.SWITCH
    house.update(switched.upto + 100, "c", ends=["a"])
    both = house.packets(house.registrar.upto + 1)
    united = house.adjust("unite")
    assert united.kind is EntryKind.UNITE
    house.update(united.upto + 100, "d")
    assert house.deliver(before) == ["a", "b"]
    assert house.deliver(both) == ["b", "c"]
    assert house.publish(15) == ["a", "b"]
    assert house.publish(united.since + 1) == ["b", "c"]
    assert house.publish(house.registrar.upto + 1) == ["b", "c", "d"]


def test_one_that_subscribes_anew_amid_a_switch_gets_publications_of_both_plans_in_their_order() -> None:
    house = House(1)
    house.update(10, "a")
    switched = house.adjust("switch")
    early = switched.since + 1
    house.update(switched.upto + 100, "a", "b")
    late = house.registrar.upto + 1
    ((_, packet, header),) = house.packets(early, late)
    (worker,) = house.workers
    found = pa.Table.from_batches(worker.name([worker.match(packet, header, 0)])).to_pylist()
    assert [(row["subscription_id"], row["publication_seq"]) for row in found] == [
        ("a", early),
        ("a", late),
        ("b", late),
    ]


def test_the_index_of_an_older_generation_goes_as_a_whole() -> None:
    house = House()
    house.update(10, "a")
    house.adjust("switch")
    united = house.adjust("unite")
    worker = house.workers[0]
    assert len(worker.workers) == 2
    worker.forget(united.since)
    assert len(worker.workers) == 2
    worker.forget(united.since + 1)
    assert len(worker.workers) == 1
    assert house.publish(united.since + 1) == ["a"]


def test_one_that_starts_with_a_snapshot_finds_what_one_finds_that_was_there() -> None:
    house = House()
    house.update(10, "a", "b")
    ((source, _, _),) = house.packets(15)
    moved = house.adjust("move", source, 1 - source)
    house.update(moved.upto + 100, "c", ends=["a"])
    position = house.registrar.upto + 1
    expected = house.publish(position)
    house.log[:] = [house.registrar.snapshot(moved.since + 1).made().entry]
    house.workers = [house.new_worker(number) for number in range(2)]
    house.dispatcher = house.new_dispatcher()
    assert house.publish(position) == expected == ["b", "c"]
    assert house.publish(moved.since + 101) == ["a", "b", "c"]  # what ended beyond the horizon is in it, too


def test_a_snapshot_amid_a_switch_has_both_generations() -> None:
    house = House()
    house.update(10, "a", "b")
    switched = house.adjust("switch")
    house.update(switched.upto + 100, "c", ends=["a"])
    house.log[:] = [house.registrar.snapshot(switched.since + 1).made().entry]
    house.workers = [house.new_worker(number) for number in range(2)]
    house.dispatcher, house.registrar = house.new_dispatcher(), house.new_registrar()
    assert house.publish(house.registrar.upto + 1) == ["b", "c"]
    united = house.adjust("unite")
    assert house.publish(united.since + 1) == ["b", "c"]
    assert house.publish(united.since - 1) == ["b", "c"]


def test_names_of_what_moved_out_are_forgotten() -> None:
    house = House()
    house.update(10, *(f"s{n}" for n in range(1_500)))
    ((source, _, _),) = house.packets(house.registrar.upto + 1)
    moved = house.adjust("move", source, 1 - source)
    worker: Any = house.workers[source]
    worker.forget(moved.since + 1)
    assert len(worker._names) == 0
    back = house.adjust("move", 1 - source, source)
    assert len(house.publish(back.since + 1)) == 1_500


def test_names_of_what_an_older_generation_had_are_forgotten_where_nothing_went_on() -> None:
    house = House()
    house.update(10, *(f"s{n}" for n in range(1_500)))
    house.adjust("switch")
    house.adjust("unite")
    moved = house.adjust("move", 0, 1)
    for worker in house.workers:
        worker.forget(moved.since + 1)
    first: Any = house.workers[0]
    assert len(first._names) == 0
    assert len(house.publish(moved.since + 1)) == 1_500


def test_what_ended_and_must_stay_is_not_copied_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(1)
    ids = [f"s{n}" for n in range(2_000)]
    house.update(10, *ids)
    house.update(10_000, ends=ids)
    (worker,) = house.workers
    index: Any = type(worker.newest.index)
    begun: list[int] = []
    begin = index.begin_compaction

    def counted(*given: Any) -> Any:
        begun.append(1)
        return begin(*given)

    monkeypatch.setattr(index, "begin_compaction", counted)
    for horizon in range(100, 200):  # before all ends
        worker.forget(horizon)
    assert len(begun) == 1
    assert worker.newest.index.counts().n_ended == 2_000
    while worker.newest.index.counts().n_ended:
        worker.forget(house.registrar.upto + 1)
    assert len(begun) == 2


def test_what_ended_while_it_was_to_leave_is_not_found_when_its_cells_come_back() -> None:
    house = House()
    house.update(10, "a", "b")
    ((source, _, _),) = house.packets(15)
    gone = house.adjust("move", source, 1 - source)
    house.update(gone.upto + 100, ends=["a"])
    back = house.adjust("move", 1 - source, source)
    assert house.publish(back.since + 1) == ["b"]
    assert house.publish(15) == ["a", "b"]
