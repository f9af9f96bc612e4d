"""The wire of a role on brokers: what is written counts with its note or not at all, and has one writer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ps2stream.errors import FencedError, PS2StreamError, StateError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.places import Place, Received, RoleName, Send
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import KafkaWire, read_notes
from ps2stream.kafka.sending import Outgoing, produce
from ps2stream.kafka.topics import Topics
from waiting import HANG_S

LOG, ROUTED = Place("log"), Place("routed", 1)
REGISTRAR, WORKER = RoleName("registrar"), RoleName("worker", 1)


@pytest.fixture
def role_topics(topics: Topics) -> RoleTopics:
    made = RoleTopics(topics, n_workers=2)
    made.create(n_dispatchers=1)
    return made


def values(received: list[Received]) -> list[bytes | None]:
    return [record.value for record in received]


def polled(wire: KafkaWire, n: int) -> list[Received]:
    """Return the next records that come; as many as are expected."""
    found: list[Received] = []
    until = time.monotonic() + HANG_S
    while len(found) < n and time.monotonic() < until:
        found += wire.poll(0.1)
    return found


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def begin(wire: KafkaWire, topics: RoleTopics, value: bytes) -> None:
    """Leave a transaction open, as a role does that dies in it."""
    producer = wire._transactions.producers[0]
    producer.begin_transaction()
    produce(producer, Outgoing(topics.name("log"), 0, value))
    producer.flush()


def test_records_and_note_are_there_together_and_in_order(role_topics: RoleTopics) -> None:
    wire = KafkaWire(role_topics, REGISTRAR)
    assert wire.notes("registrar") == {}
    offsets = wire.commit([Send(LOG, b"a"), Send(ROUTED, b"x"), Send(LOG, b"b")], b"one")
    assert offsets[0] < offsets[2]
    wire.commit([], b"two")
    after = KafkaWire(role_topics, REGISTRAR)
    assert after.notes("registrar") == {0: b"two"}
    assert values(after.read(LOG, 0)) == [b"a", b"b"]
    assert values(after.read(LOG, offsets[0] + 1)) == [b"b"]
    after.follow({LOG: offsets[2], ROUTED: 0})
    assert set(values(polled(after, 2))) == {b"b", b"x"}


@pytest.mark.parametrize("role", [REGISTRAR, WORKER], ids=["one client", "two in turn"])
@pytest.mark.parametrize("n_before", [1, 2])
def test_what_was_not_committed_will_never_be_and_nobody_waits_for_it(
    role_topics: RoleTopics, role: RoleName, n_before: int
) -> None:
    first = KafkaWire(role_topics, role)
    for _ in range(n_before):
        first.commit([Send(LOG, b"a")], b"one")
    begin(first, role_topics, b"lost")
    second = KafkaWire(role_topics, role)
    assert second.notes(role.kind) == {role.number: b"one"}
    assert values(second.read(LOG, 0)) == [b"a"] * n_before
    second.commit([Send(LOG, b"b")], b"two")
    third = KafkaWire(role_topics, role)
    assert values(third.read(LOG, 0)) == [*([b"a"] * n_before), b"b"]


def test_what_clients_write_in_turn_lies_in_the_order_of_commits(role_topics: RoleTopics) -> None:
    wire = KafkaWire(role_topics, WORKER)
    offsets = [wire.commit([Send(ROUTED, str(number).encode())], b"")[0] for number in range(50)]
    assert offsets == sorted(offsets)
    wire.follow({ROUTED: 0})
    assert values(polled(wire, 50)) == [str(number).encode() for number in range(50)]


class LateMarkers:
    """A consumer of a role's notes to whom they come some looks later than to others."""

    def __init__(self, wire: KafkaWire, look: Callable[[], object]) -> None:
        self._notes, self._look = wire._own_notes, look
        self.seen: list[object] = []

    def poll(self, timeout_s: float) -> object:
        self.seen.append(self._look())
        return self._notes.poll(HANG_S) if len(self.seen) > 3 else None

    def close(self) -> None:
        self._notes.close()


def test_a_transaction_is_not_decided_before_the_markers_of_the_one_before_are_there(
    role_topics: RoleTopics,
) -> None:
    wire, ends = KafkaWire(role_topics, WORKER), Ends(role_topics.topics.kafka)
    notes, mine = role_topics.name("notes"), role_topics.note_partition("worker", 1)
    wire.commit([Send(ROUTED, b"a")], b"one")
    wait_until(lambda: ends.last_of(notes, mine) > 0)
    before = ends.last_of(notes, mine)

    def look() -> tuple[bool, bool]:
        """Say whether the next note is written, and whether it is committed."""
        return ends.acknowledged(notes, mine + 1)[mine] > before, ends.last_of(notes, mine) > before

    late: Any = LateMarkers(wire, look)
    wire._own_notes = late
    wire.commit([Send(ROUTED, b"b")], b"two")
    assert late.seen == [(True, False)] * 4


@pytest.mark.parametrize("role", [REGISTRAR, WORKER], ids=["one client", "two in turn"])
def test_nothing_is_trimmed_before_the_markers_of_the_last_commit_are_there(
    role_topics: RoleTopics, role: RoleName
) -> None:
    wire, ends = KafkaWire(role_topics, role), Ends(role_topics.topics.kafka)
    log = role_topics.name("log")
    (offset,) = wire.commit([Send(LOG, b"a")], b"one")
    late: Any = LateMarkers(wire, lambda: ends.first(log, 1))
    wire._own_notes = late
    wire.trim({LOG: offset + 1})
    assert late.seen == [[0]] * 4
    wait_until(lambda: ends.first(log, 1) == [offset + 1])


@pytest.mark.parametrize("n_before", [0, 1], ids=["its first client's turn", "its second client's"])
def test_whoever_has_the_turn_is_fenced(role_topics: RoleTopics, n_before: int) -> None:
    first = KafkaWire(role_topics, WORKER)
    for _ in range(n_before):
        first.commit([Send(ROUTED, b"a")], b"one")
    second = KafkaWire(role_topics, WORKER)
    with pytest.raises(FencedError, match="another worker 1"):
        first.commit([Send(ROUTED, b"zombie")], b"zombie")
    with pytest.raises(PS2StreamError):  # not with its other client either
        first.commit([Send(ROUTED, b"zombie")], b"zombie")
    second.commit([Send(ROUTED, b"b")], b"two")
    third = KafkaWire(role_topics, WORKER)
    assert values(third.read(ROUTED, 0)) == [*([b"a"] * n_before), b"b"]


def test_one_whose_wire_was_opened_by_another_can_write_no_more(role_topics: RoleTopics) -> None:
    first, other = KafkaWire(role_topics, WORKER), KafkaWire(role_topics, RoleName("worker", 0))
    first.commit([Send(ROUTED, b"a")], b"one")
    second = KafkaWire(role_topics, WORKER)
    with pytest.raises(FencedError, match="another worker 1"):
        first.commit([Send(ROUTED, b"zombie")], b"zombie")
    first.close()
    other.commit([], b"other")  # others are not touched
    second.commit([Send(ROUTED, b"b")], b"two")
    assert second.notes("worker") == {1: b"one"} | {1: b"two"} | {0: b"other"}
    assert values(second.read(ROUTED, 0)) == [b"a", b"b"]


def test_after_the_fence_all_is_seen_that_was_committed(role_topics: RoleTopics) -> None:
    """Brokers answer a commit before readers see it; who takes over must see it all the same."""
    for number in range(20):
        wire = KafkaWire(role_topics, REGISTRAR)
        assert values(wire.read(LOG, 0)) == [str(each).encode() for each in range(number)]
        wire.commit([Send(LOG, str(number).encode())], b"")


def test_what_is_trimmed_is_gone_and_missed_by_those_who_need_it(role_topics: RoleTopics) -> None:
    wire, ends = KafkaWire(role_topics, REGISTRAR), Ends(role_topics.topics.kafka)
    offsets = [wire.commit([Send(LOG, str(number).encode())], b"note")[0] for number in range(4)]
    wire.trim({LOG: offsets[2]})
    wait_until(lambda: ends.first(role_topics.name("log"), 1) == [offsets[2]])
    assert wire.notes("registrar") == {0: b"note"}
    assert values(wire.read(LOG, offsets[2])) == [b"2", b"3"]
    with pytest.raises(StateError, match="trimmed"):
        wire.read(LOG, offsets[1])
    wire.follow({LOG: offsets[1]})
    with pytest.raises(StateError, match="trimmed"):
        polled(wire, 1)


def test_notes_can_be_read_while_they_are_trimmed(role_topics: RoleTopics) -> None:
    wire, ends = KafkaWire(role_topics, WORKER), Ends(role_topics.topics.kafka)
    wire.commit([], b"0")
    wait_until(lambda: bool(read_notes(role_topics, ends, "worker")))
    for number in range(1, 100):
        wire.commit([], str(number).encode())
        wire.trim({})
        (found,) = read_notes(role_topics, ends, "worker").values()
        assert number - 1 <= int(found) <= number


def test_a_role_of_more_dispatchers_has_notes_of_its_own(role_topics: RoleTopics) -> None:
    KafkaWire(role_topics, RoleName("dispatcher", 0)).commit([], b"first")
    role_topics.create(n_dispatchers=3)
    KafkaWire(role_topics, RoleName("dispatcher", 2)).commit([], b"third")
    assert KafkaWire(role_topics, WORKER).notes("dispatcher") == {0: b"first", 2: b"third"}


def test_places_that_are_followed_later_come_beside_the_first(role_topics: RoleTopics) -> None:
    wire = KafkaWire(role_topics, REGISTRAR)
    wire.follow({LOG: 0})
    wire.commit([Send(LOG, b"a"), Send(ROUTED, b"x"), Send(ROUTED, b"y")], b"one")
    assert values(polled(wire, 1)) == [b"a"]
    wire.follow_also({ROUTED: 1})
    wire.commit([Send(LOG, b"b")], b"two")
    found = polled(wire, 2)
    assert {(record.place, record.value) for record in found} == {(LOG, b"b"), (ROUTED, b"y")}
    wire.close()


def test_what_is_sent_without_a_note_is_there_at_once(role_topics: RoleTopics) -> None:
    wire = KafkaWire(role_topics, REGISTRAR)
    assert wire.send([Send(LOG, b"a"), Send(ROUTED, b"x"), Send(LOG, b"b")]) == [0, 0, 1]
    assert wire.notes("registrar") == {}
    assert values(wire.read(LOG, 0)) == [b"a", b"b"]
    wire.close()


def test_a_poll_brings_no_more_records_than_were_asked_for(role_topics: RoleTopics) -> None:
    KafkaWire(role_topics, WORKER).commit([Send(LOG, b"%d" % number) for number in range(7)], b"")
    wire = KafkaWire(role_topics, REGISTRAR, at_once=3)
    wire.follow({LOG: 0})
    polls: list[list[Received]] = []

    def is_all_there() -> bool:
        polls.append(wire.poll(0.1))
        return sum(map(len, polls)) == 7

    wait_until(is_all_there)
    assert max(map(len, polls)) <= 3
    assert values([record for poll in polls for record in poll]) == [b"%d" % number for number in range(7)]
