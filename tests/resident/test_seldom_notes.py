"""Notes that are kept back: records come at once, notes later, and what is trimmed was noted before."""

from __future__ import annotations

import pytest

from ps2stream.errors import FencedError
from ps2stream.resident.memory_wire import MemoryTopics, MemoryWire
from ps2stream.resident.seldom_notes import SeldomNotes
from ps2stream.resident.wire import WORKER, Place, RoleName, Send, Topic

ME = RoleName(WORKER)
MATCHES, ROUTED = Place(Topic.MATCHES), Place(Topic.ROUTED)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[MemoryTopics, Clock, SeldomNotes]:
    topics, clock = MemoryTopics({}), Clock()
    return topics, clock, SeldomNotes(MemoryWire(topics, ME), every_s=1.0, clock=clock)


def noted(topics: MemoryTopics) -> bytes | None:
    return topics.notes(WORKER).get(0)


def test_the_first_note_is_written_at_once_and_later_ones_when_they_are_due() -> None:
    topics, clock, wire = made()
    assert wire.commit([Send(MATCHES, b"a")], b"one") == [0]
    assert (noted(topics), wire.is_noted) == (b"one", True)
    assert wire.commit([Send(MATCHES, b"b")], b"two") == [1]
    assert (noted(topics), wire.is_noted) == (b"one", False)
    assert [record.value for record in topics.records(MATCHES)] == [b"a", b"b"]
    clock.now = 1.0
    wire.poll(0.0)
    assert (noted(topics), wire.is_noted) == (b"two", True)


def test_nothing_is_trimmed_that_would_be_read_again() -> None:
    topics, _, wire = made()
    topics.append(ROUTED, b"packet")
    wire.commit([], b"one")
    wire.commit([], b"two")
    wire.trim({ROUTED: 1})
    assert noted(topics) == b"two"


def test_one_that_ends_notes_how_far_it_was() -> None:
    topics, _, wire = made()
    wire.commit([], b"one")
    wire.commit([], b"two")
    wire.close()
    assert noted(topics) == b"two"


def test_one_that_was_replaced_may_write_until_its_next_note() -> None:
    topics, clock, wire = made()
    wire.commit([], b"one")
    SeldomNotes(MemoryWire(topics, ME)).commit([], b"of the other")
    wire.commit([Send(MATCHES, b"again")], b"two")
    clock.now = 1.0
    with pytest.raises(FencedError):
        wire.poll(0.0)
    wire.close()
    assert noted(topics) == b"of the other"
