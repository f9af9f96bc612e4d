"""Records are due at times known beforehand, and tell which publication they hold."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE
from ps2stream.roles.packets import decode
from ps2stream_bench.live.schedule import FLOOD_PACKET, GATHER_S, flood, scheduled

TOPICS = Topics(Kafka("nobody:1"), "bench")


def events_of(ops: str) -> pa.RecordBatch:
    """Return an event for each letter: p publishes, s subscribes."""
    rows = [
        {"seq": n, "op": PUBLISH, "id": "any", "lat": 1.0, "lon": 2.0, "text": f"text {n}"}
        if op == "p"
        else {
            "seq": n,
            "op": SUBSCRIBE,
            "id": f"s{n}",
            "expression": "word",
            **dict.fromkeys(("min_lon", "min_lat"), 0.0),
            **dict.fromkeys(("max_lon", "max_lat"), 1.0),
        }
        for n, op in enumerate(ops)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS)


def test_a_gateway_gathers_what_was_due_and_sends_no_event_early() -> None:
    due_s = np.array([0.001, 0.004, 0.006, 0.021])
    found = scheduled("x", TOPICS, events_of("pspp"), due_s, 1)
    assert [tick.at_s for tick in found.ticks] == pytest.approx([GATHER_S, 2 * GATHER_S, 5 * GATHER_S])
    assert [len(tick.records) for tick in found.ticks] == [2, 1, 1]
    assert found.n_events == 4


def test_publications_are_named_after_their_row_among_those_that_have_a_due_time() -> None:
    found = scheduled("x", TOPICS, events_of("pspp"), np.array([0.001, 0.004, 0.006, 0.021]), 1)
    packets = [
        decode(record.value or b"")
        for tick in found.ticks
        for record in tick.records
        if record.topic == TOPICS.publications
    ]
    ids = [id for packet in packets for id in packet.column("id").to_pylist()]
    assert ids == ["x-0", "x-1", "x-2"]
    assert found.due_s.tolist() == [0.001, 0.006, 0.021]


def test_updates_are_records_of_their_own_unless_they_are_packed() -> None:
    events = events_of("sps")
    alone = [each for tick in flood("x", TOPICS, events, 1).ticks for each in tick.records]
    updates = [json.loads(each.value or b"") for each in alone if each.topic == TOPICS.updates]
    assert [each["id"] for each in updates] == ["s0", "s2"]
    packed = [each for tick in flood("x", TOPICS, events, 1, is_packed=True).ticks for each in tick.records]
    (packet,) = [decode(each.value or b"") for each in packed if each.topic == TOPICS.updates]
    assert packet.column("id").to_pylist() == ["s0", "s2"]


def test_a_flood_is_due_at_once_and_takes_all_partitions_in_turn() -> None:
    found = flood("x", TOPICS, events_of("p" * (2 * FLOOD_PACKET + 1)), 2)
    assert {tick.at_s for tick in found.ticks} == {0.0}
    assert [record.partition for tick in found.ticks for record in tick.records] == [0, 1, 0]
