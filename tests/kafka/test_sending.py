"""What is sent is acknowledged, in order, or an error; a transaction is all or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ps2stream.errors import BrokerError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.sending import AtomicSender, Outgoing, Sender
from ps2stream.kafka.topics import Topics


def committed(topics: Topics) -> list[bytes | None]:
    (end,) = Ends(topics.kafka).last(topics.updates, 1)
    return [r.value for records in read(topics.kafka, Span(topics.updates, 0, 0, end)) for r in records]


def test_places_are_told_in_the_order_of_records(topics: Topics) -> None:
    sender = Sender(topics.kafka)
    records = [Outgoing(topics.publications, n % 3, b"%d" % n) for n in range(9)]
    assert sender.send(records) == [(n % 3, n // 3) for n in range(9)]
    assert sender.send([]) == []


def test_one_key_goes_to_one_partition(topics: Topics) -> None:
    places = Sender(topics.kafka).send([Outgoing(topics.publications, None, b"", b"k") for _ in range(20)])
    assert len({partition for partition, _ in places}) == 1
    assert [offset for _, offset in places] == list(range(20))


def test_a_record_that_is_too_large_is_an_error_and_the_next_is_sent(topics: Topics) -> None:
    sender = Sender(topics.kafka)
    with pytest.raises(BrokerError, match=r"cannot write at Kafka .*too large"):
        sender.send([Outgoing(topics.updates, 0, b"x" * 2_000_000)])
    assert sender.send([Outgoing(topics.updates, 0, b"y")]) == [(0, 0)]


def test_a_transaction_that_cannot_be_ended_leaves_nothing_and_holds_up_nobody(topics: Topics) -> None:
    sender = AtomicSender(topics.kafka, "test")

    def records(fails: bool) -> Iterator[Outgoing]:
        yield Outgoing(topics.updates, 0, b"no" if fails else b"a")
        if fails:
            raise ValueError("no more")
        yield Outgoing(topics.updates, 0, b"b")

    with pytest.raises(ValueError, match="no more"):
        sender.send(records(fails=True))
    sender.send(records(fails=False))
    sender.send([Outgoing(topics.updates, 0, b"c")])
    Sender(topics.kafka).send([Outgoing(topics.updates, 0, b"d")])
    assert committed(topics) == [b"a", b"b", b"c", b"d"]


def test_two_that_write_at_once_do_not_fence_each_other(topics: Topics) -> None:
    one, two = AtomicSender(topics.kafka, "test"), AtomicSender(topics.kafka, "test")
    for number in range(3):
        for sender in (one, two):
            sender.send([Outgoing(topics.updates, 0, b"%d" % number)])
    assert committed(topics) == [b"0", b"0", b"1", b"1", b"2", b"2"]
