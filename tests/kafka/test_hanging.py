"""A transaction that was decided and never marked is aborted before its role goes on."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from brokers import free_port
from ps2stream.errors import BrokerError
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.hanging import abort_what_hangs
from ps2stream.kafka.places import Place, RoleName, Send
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import KafkaWire
from ps2stream.kafka.sending import Outgoing, produce
from ps2stream.kafka.topics import Topics
from ps2stream.kafka.transactions import init_transactions
from testbed import lone_broker
from waiting import HANG_S

DISPATCHER = RoleName("dispatcher")
ROUTED = [Place("routed", number) for number in range(2)]
#: Of a batch of records: its base offset and its length come first; its attributes are behind the checksum.
_HEAD, _ATTRIBUTES = struct.Struct(">qi"), 21
_IS_CONTROL = 0x20


#: One with a client and one with two.
ROLES = [DISPATCHER, RoleName("worker")]


def role_topics_on(topics: Topics) -> RoleTopics:
    made = RoleTopics(topics, n_workers=2)
    made.create(n_dispatchers=1)
    return made


def values(wire: KafkaWire, place: Place) -> list[bytes | None]:
    return [record.value for record in wire.read(place, 0)]


def test_nothing_is_done_where_nothing_is_open(topics: Topics) -> None:
    on = role_topics_on(topics)
    wire = KafkaWire(on, DISPATCHER)
    wire.commit([Send(ROUTED[0], b"a")], b"one")
    notes = on.name("notes"), on.note_partition("dispatcher", 0)
    assert not abort_what_hangs(
        wire._transactions.producers, Ends(topics.kafka), notes, [on.name("routed")], 0.2
    )
    wire.commit([Send(ROUTED[0], b"b")], b"two")
    assert values(wire, ROUTED[0]) == [b"a", b"b"]


def test_what_another_has_open_among_the_notes_of_a_role_is_told(topics: Topics) -> None:
    on = role_topics_on(topics)
    wire = KafkaWire(on, DISPATCHER)
    notes = on.name("notes"), on.note_partition("dispatcher", 0)
    other = topics.kafka.producer(transactional_id=f"{topics.prefix}.other")
    init_transactions(other)
    other.begin_transaction()
    produce(other, Outgoing(*notes, b"of another"))
    other.flush()
    with pytest.raises(BrokerError, match="a transaction hangs in partition 3 of "):
        abort_what_hangs(wire._transactions.producers, Ends(topics.kafka), notes, [on.name("routed")], 0.2)
    other.abort_transaction()
    wire.commit([Send(ROUTED[0], b"a")], b"one")
    assert (values(wire, ROUTED[0]), wire.notes("dispatcher")) == ([b"a"], {0: b"one"})


def unmark(partition: Path) -> None:
    """Cut the last marker off a partition of a broker that was killed."""
    (log,) = partition.glob("*.log")
    data = log.read_bytes()
    last = at = 0
    while at + _HEAD.size <= len(data) and (length := _HEAD.unpack_from(data, at)[1]):
        last, at = at, at + _HEAD.size + length
    assert struct.unpack_from(">h", data, last + _ATTRIBUTES)[0] & _IS_CONTROL
    log.write_bytes(data[:last])


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES, ids=["one client", "two in turn"])
def test_a_commit_whose_markers_were_lost_with_the_broker_is_done_anew_and_once(
    tmp_path: Path, role: RoleName
) -> None:
    port, data = free_port(), tmp_path / "data"
    lone_broker.up(port, data, is_brief=True)
    try:
        topics = Topics(Kafka(f"{lone_broker.ADDRESS}:{port}"), "hangs")
        topics.create(1)
        on = role_topics_on(topics)
        before = KafkaWire(on, role)
        before.commit([Send(place, b"a") for place in ROUTED], b"one")
        before.commit([Send(place, b"b") for place in ROUTED], b"two")
        time.sleep(1.0)  # the coordinator notes that it is complete
        lone_broker.kill(port)
        mine = on.note_partition(role.kind, 0)
        for name in ("routed-0", "routed-1", f"notes-{mine}"):
            unmark(data / f"hangs.{name}")
        lone_broker.up(port, data, is_brief=True)
        successor = KafkaWire(on, role)
        assert successor.notes(role.kind) == {0: b"one"}
        successor.commit([Send(place, b"b") for place in ROUTED], b"two again")
        until = time.monotonic() + HANG_S  # a commit is over before all have its markers
        while (found := [values(successor, place) for place in ROUTED]) != [[b"a", b"b"]] * 2:
            assert time.monotonic() < until, found
        assert successor.notes(role.kind) == {0: b"two again"}
    finally:
        lone_broker.down(port)
