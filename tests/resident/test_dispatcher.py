"""A dispatcher that stays routes each publication by the plan of its position."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ps2stream.model.schemas import PUBLICATIONS
from resident.made import House

pytestmark = pytest.mark.kernel


def workers_at(house: House, position: int) -> list[int]:
    return sorted(worker for worker, _, _ in house.packets(position))


def test_nobody_gets_what_nobody_waits_for() -> None:
    house = House()
    house.update(10, "a")
    assert workers_at(house, 13) != []
    assert house.packets(13, text="coffee") == []


def test_publications_of_one_batch_are_routed_each_by_its_position() -> None:
    house = House()
    house.update(10, "a")
    (source,) = workers_at(house, 13)
    moved = house.adjust("move", source, 1 - source)
    rows = [
        {"seq": seq, "id": f"p{seq}", "lon": 1.0, "lat": 1.0, "text": "tea"}
        for seq in (moved.since + 1, 13, moved.since - 1)
    ]
    publications = pa.RecordBatch.from_pylist(rows, schema=PUBLICATIONS)
    found = {
        seq: worker
        for _, done in house.dispatcher.dispatch(publications)
        for worker, packet in done.packets.items()
        for seq in packet.column("seq").to_pylist()
    }
    assert found == {13: source, moved.since - 1: source, moved.since + 1: 1 - source}


def test_an_end_is_counted_out_when_no_publication_before_it_can_come() -> None:
    house = House()
    house.update(10, "a")
    house.update(20, ends=["a"])
    house.dispatcher.forget(19)
    assert workers_at(house, 19) != []
    house.dispatcher.forget(21)
    assert workers_at(house, 21) == []


def test_plans_that_are_out_of_use_are_forgotten_and_the_one_in_use_stays() -> None:
    house = House()
    house.update(10, "a")
    (source,) = workers_at(house, 13)
    for n in range(4):
        moved = house.adjust("move", (source + n) % 2, (source + n + 1) % 2)
    dispatcher: Any = house.dispatcher
    assert len(dispatcher._routings) == 5
    house.dispatcher.forget(moved.since)
    assert len(dispatcher._routings) == 2
    house.dispatcher.forget(moved.since + 1)
    assert len(dispatcher._routings) == 1
    assert workers_at(house, moved.since + 1) == [source]


def test_tables_of_a_generation_go_with_the_last_plan_that_needs_them() -> None:
    house = House()
    house.update(10, "a")
    house.adjust("switch")
    united = house.adjust("unite")
    dispatcher: Any = house.dispatcher
    assert sorted(dispatcher._grid_ts) == [0, 1]
    house.dispatcher.forget(united.since)
    assert sorted(dispatcher._grid_ts) == [0, 1]
    house.dispatcher.forget(united.since + 1)
    assert sorted(dispatcher._grid_ts) == [1]
    assert workers_at(house, united.since + 1) != []


def test_an_end_after_a_switch_is_counted_out_where_the_subscription_was_counted_in() -> None:
    house = House()
    house.update(10, "a")
    house.adjust("switch")
    house.update(house.registrar.upto + 100, "b", ends=["a"])
    united = house.adjust("unite")
    house.update(united.upto + 100, ends=["b"])
    last = house.registrar.upto + 1
    house.dispatcher.forget(last)
    assert workers_at(house, last) == []
    dispatcher: Any = house.dispatcher
    assert [grid_t.n_live for grid_t in dispatcher._grid_ts.values()] == [0]


def test_one_that_starts_with_a_snapshot_routes_as_one_that_was_there() -> None:
    house = House()
    house.update(10, "a", "b")
    moved = house.adjust("move", 0, 1)
    house.update(moved.upto + 100, ends=["a", "b"])
    expected = workers_at(house, moved.since + 1)
    house.log[:] = [house.registrar.snapshot(moved.since + 1).made().entry]
    house.dispatcher = house.new_dispatcher()
    assert workers_at(house, moved.since + 1) == expected != []
    last = house.registrar.upto + 1
    house.dispatcher.forget(last)
    assert workers_at(house, last) == []
    assert house.dispatcher.applied == house.registrar.upto


def test_the_routing_of_a_position_is_the_last_that_began_before_it() -> None:
    house = House()
    house.update(10, "a")
    first = house.dispatcher.routing_at(13)
    moved = house.adjust("move", 0, 1)
    assert house.dispatcher.routing_at(moved.since - 1) == first
    assert house.dispatcher.routing_at(moved.since + 1).plans.newest.number == first.plans.newest.number + 1
