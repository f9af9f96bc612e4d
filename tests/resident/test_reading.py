"""Records become events with a place in the order: that of their arrival, or one that they bring."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.model.schemas import PLACED_PUBLICATIONS, PUBLICATIONS, SUBSCRIBE, UPDATES, empty
from ps2stream.resident.positions import last_update_seq, position_after, update_seq
from ps2stream.resident.reading import Arrival, Given, given_packet, no_updates
from ps2stream.resident.wire import Place, Received, Topic
from ps2stream.roles.packets import encode

PLACE = Place(Topic.PUBLICATIONS, 1)


def received(*values: Any, start: int = 0, place: Place = PLACE) -> list[Received]:
    return [
        Received(place, start + n, each if isinstance(each, bytes) else json.dumps(each).encode())
        for n, each in enumerate(values)
    ]


def publication(id: str, **demands: Any) -> dict[str, Any]:
    return {"id": id, "lat": 1, "lon": 2, "text": "tea", **demands}


def subscription(id: str) -> dict[str, Any]:
    return {"id": id, "expression": "tea", "region": [0, 0, 1, 1]}


def test_updates_are_numbered_by_offset_and_row() -> None:
    rows = [{"op": SUBSCRIBE, "id": id, "expression": "tea"} for id in "bc"]
    packet = encode(pa.RecordBatch.from_pylist(rows, schema=UPDATES))
    read = Arrival().updates(received(subscription("a"), packet, {"op": "dance"}, start=7))
    assert read.updates.column("id").to_pylist() == ["a", "b", "c"]
    assert read.updates.column("seq").to_pylist() == [update_seq(7), update_seq(8), update_seq(8, 1)]
    assert read.rejected.column("seq").to_pylist() == [update_seq(9)]
    assert read.upto == last_update_seq(9)


def test_the_number_of_an_update_does_not_depend_on_what_it_comes_with() -> None:
    records = received(*(subscription(str(n)) for n in range(5)), start=3)
    together = Arrival().updates(records).updates.to_pylist()
    alone = [row for record in records for row in Arrival().updates([record]).updates.to_pylist()]
    assert together == alone


def test_publications_say_how_much_of_the_log_they_need() -> None:
    order = Arrival()
    assert order.publications(received(publication("p"))).needs < 0
    read = order.publications(received(publication("p", after=8), publication("q", as_of=13)))
    assert (read.needs, read.upto) == (12, None)
    assert read.publications.schema == PLACED_PUBLICATIONS


def test_what_cannot_be_read_has_no_position() -> None:
    read = Arrival().publications(received(b"oops", publication("p", after="soon"), publication("q")))
    assert read.publications.column("id").to_pylist() == ["q"]
    assert read.rejected.column("seq").to_pylist() == [None, None]
    assert "after must be a seq" in read.rejected.column("reason").to_pylist()[1]


@pytest.mark.parametrize(
    ("demands", "position", "reason"),
    [
        ({}, 101, None),
        ({"after": 100}, 101, None),
        ({"after": 101}, 101, None),  # behind another publication
        ({"after": 102}, None, "after 102: no update up to there has come; the newest was 100"),
        ({"as_of": 60}, 61, None),
        ({"as_of": 61}, 61, None),
        ({"as_of": 100}, 101, None),
        ({"as_of": 102}, None, "as_of 102: no update up to there has come"),
        ({"as_of": 50}, 51, None),
        ({"as_of": 49}, None, "as_of 49 lies before 51, the first position that is kept"),
    ],
)
def test_a_publication_gets_the_position_that_it_asks_for_or_is_rejected(
    demands: dict[str, int], position: int | None, reason: str | None
) -> None:
    order = Arrival()
    read = order.publications(received(publication("p", **demands), publication("q")))
    placed, rejected = order.placed(read.publications, 100, 51)
    assert placed.schema == PUBLICATIONS
    expected = {"q": position_after(100)} | ({} if position is None else {"p": position})
    assert (
        dict(zip(placed.column("id").to_pylist(), placed.column("seq").to_pylist(), strict=True)) == expected
    )
    rows = rejected.to_pylist()
    assert [row["id"] for row in rows] == ([] if reason is None else ["p"])
    assert all(reason is not None and reason in row["reason"] and row["seq"] is None for row in rows)


def test_events_may_bring_their_order() -> None:
    updates = pa.RecordBatch.from_pylist([{"seq": 4, "op": SUBSCRIBE, "id": "a"}], schema=UPDATES)
    read = Given().updates(received(given_packet(updates, 6), given_packet(empty(UPDATES), 9)))
    assert (read.updates.to_pylist(), read.upto) == (updates.to_pylist(), 9)
    row = {"seq": 7, "id": "p", "lon": 1.0, "lat": 1.0, "text": "tea"}
    publications = pa.RecordBatch.from_pylist([row], schema=PUBLICATIONS)
    found = Given().publications(received(given_packet(publications, 8)))
    assert (found.publications.to_pylist(), found.needs, found.upto) == ([row], 6, 8)
    assert Given().placed(found.publications, 6, 0)[0].to_pylist() == [row]


def test_without_publications_nothing_is_needed() -> None:
    assert Given().publications(received(given_packet(empty(PUBLICATIONS), 8))).needs < 0
    assert no_updates().updates.num_rows == 0
