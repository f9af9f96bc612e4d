"""Everything is read when no committed record lies behind what was read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.transactions import abort
from ps2stream.errors import BrokerError
from ps2stream.kafka import role_progress
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.places import Place
from ps2stream.kafka.reading import Record, Span
from ps2stream.kafka.role_progress import all_read
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from waiting import HANG_S


@pytest.mark.parametrize("partition", [0, 2])
def test_records_behind_what_was_read_are_left_to_do(topics: Topics, partition: int) -> None:
    roles, ends, place = RoleTopics(topics, 1), Ends(topics.kafka), Place("publications", partition)
    assert all_read(roles, ends, {place: 0})
    Sender(topics.kafka).send([Outgoing(topics.publications, partition, b"x")] * 2)
    assert not all_read(roles, ends, {place: 1})
    assert all_read(roles, ends, {place: 2})
    assert not all_read(roles, ends, {place: 2, Place("publications", partition): 0})


def test_what_nobody_can_read_is_not_left_to_do(topics: Topics) -> None:
    roles, ends, place = RoleTopics(topics, 1), Ends(topics.kafka), Place("publications", 1)
    abort(topics.kafka, [Outgoing(topics.publications, 1, b"x")])
    deadline = time.monotonic() + HANG_S
    while ends.last(topics.publications, 2)[1] < 2:  # the record, and the mark of the end
        assert time.monotonic() < deadline
    assert all_read(roles, ends, {place: 0})


class Trimmed:
    """A partition in memory of 5 records; so many of them are gone, look by look."""

    def __init__(self, *firsts: int) -> None:
        self._firsts = list(firsts)
        self._first = 0

    def first(self, topic: str, n_partitions: int) -> list[int]:
        self._first = self._firsts.pop(0) if self._firsts else self._first
        return [self._first] * n_partitions

    def last(self, topic: str, n_partitions: int) -> list[int]:
        return [5] * n_partitions

    def read(self, kafka: Kafka, span: Span) -> Iterator[list[Record]]:
        gone = self._firsts[0] if self._firsts else self._first
        if span.start < gone:
            raise BrokerError("Broker: Offset out of range")
        yield from ([Record(offset, None, b"x")] for offset in range(span.start, span.end))


@pytest.fixture
def roles() -> RoleTopics:
    return RoleTopics(Topics(Kafka("nobody:1"), "test"), 1)


def all_read_of(roles: RoleTopics, ends: Any, done: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(role_progress, "read", ends.read)
    return all_read(roles, ends, {Place("routed"): done})


def test_what_is_trimmed_while_somebody_looks_is_left_to_do(
    roles: RoleTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not all_read_of(roles, Trimmed(0, 3), 0, monkeypatch)
    assert not all_read_of(roles, Trimmed(1, 5), 2, monkeypatch)
    assert not all_read_of(roles, Trimmed(3), 0, monkeypatch), "trimmed before, and not while"
    assert all_read_of(roles, Trimmed(0, 3), 5, monkeypatch)
    assert all_read_of(roles, Trimmed(5), 0, monkeypatch)


def test_a_broker_that_fails_for_another_reason_is_told(
    roles: RoleTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Trimmed):
        def read(self, kafka: Kafka, span: Span) -> Iterator[list[Record]]:
            raise BrokerError("away")

    with pytest.raises(BrokerError, match="away"):
        all_read_of(roles, Failing(2, 2), 3, monkeypatch)
    with pytest.raises(BrokerError, match="away"):
        all_read_of(roles, Failing(0, 3), 3, monkeypatch)
