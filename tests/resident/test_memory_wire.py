"""Topics in memory keep what the contract of wires says."""

from __future__ import annotations

import pytest

from ps2stream.errors import FencedError, StateError
from ps2stream.resident.memory_wire import MemoryTopics, MemoryWire
from ps2stream.resident.wire import WORKER, Place, RoleName, Send, Topic

ROUTED, MATCHES = Place(Topic.ROUTED, 1), Place(Topic.MATCHES)
ROLE = RoleName(WORKER, 1)


@pytest.fixture
def topics() -> MemoryTopics:
    return MemoryTopics({Topic.ROUTED: 2})


def values(wire: MemoryWire) -> list[bytes | None]:
    return [record.value for record in wire.poll(0.0)]


def test_what_is_followed_comes_once_and_in_order(topics: MemoryTopics) -> None:
    wire = MemoryWire(topics, ROLE)
    for value in (b"a", b"b", b"c"):
        topics.append(ROUTED, value, b"key")
    wire.follow({ROUTED: 1})
    first, second = wire.poll(0.0)
    assert (first.value, first.key, first.offset, second.offset) == (b"b", b"key", 1, 2)
    assert values(wire) == []
    topics.append(ROUTED, b"d")
    assert values(wire) == [b"d"]


def test_no_more_of_a_topic_come_together_than_was_said(topics: MemoryTopics) -> None:
    wire = MemoryWire(topics, ROLE, {Topic.ROUTED: 2})
    for value in (b"a", b"b", b"c"):
        topics.append(ROUTED, value)
        topics.append(MATCHES, value)
    wire.follow({ROUTED: 0, MATCHES: 0})
    assert len(wire.poll(0.0)) == 2 + 3
    assert values(wire) == [b"c"]


def test_records_and_note_are_there_together(topics: MemoryTopics) -> None:
    wire = MemoryWire(topics, ROLE)
    assert wire.notes(WORKER) == {}
    assert wire.commit([Send(MATCHES, b"x"), Send(ROUTED, b"y"), Send(MATCHES, b"z")], b"note") == [0, 0, 1]
    assert wire.notes(WORKER) == {1: b"note"}
    assert [record.value for record in wire.read(MATCHES, 0)] == [b"x", b"z"]
    assert wire.ends(Topic.ROUTED) == [0, 1]
    assert wire.ends(Topic.MATCHES) == [2]


def test_who_opens_the_wire_of_a_role_is_its_only_writer(topics: MemoryTopics) -> None:
    before, other = MemoryWire(topics, ROLE), MemoryWire(topics, RoleName(WORKER, 0))
    now = MemoryWire(topics, ROLE)
    with pytest.raises(FencedError, match="another worker 1 has taken over"):
        before.commit([Send(MATCHES, b"x")], b"note")
    assert topics.end(MATCHES) == 0
    now.commit([], b"now")
    other.commit([], b"other")
    assert now.notes(WORKER) == {1: b"now", 0: b"other"}


def test_what_was_trimmed_cannot_be_read_and_offsets_stay(topics: MemoryTopics) -> None:
    wire = MemoryWire(topics, ROLE)
    for value in (b"a", b"b", b"c"):
        topics.append(ROUTED, value)
    wire.trim({ROUTED: 2})
    wire.trim({ROUTED: 1})  # it has gone further before
    assert [record.offset for record in wire.read(ROUTED, 2)] == [2]
    assert topics.append(ROUTED, b"d") == 3
    with pytest.raises(StateError, match="records 0 to 1 of routed were trimmed"):
        wire.read(ROUTED, 0)
    wire.follow({ROUTED: 0})
    with pytest.raises(StateError, match="trimmed"):
        wire.poll(0.0)
