"""Everything is read when no committed record lies behind what was read."""

from __future__ import annotations

import time

import pytest

from kafka.transactions import abort
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.places import Place
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
