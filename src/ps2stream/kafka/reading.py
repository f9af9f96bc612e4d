"""Read a range of a partition: the records that were committed in it, whoever asks and however often.

Offsets have gaps (aborted transactions, marks of committed ones, records that were trimmed), so a range is
read when a record beyond it, or the partition's end, has come. A consumer takes tens of milliseconds to
connect, as long as a small batch; a process keeps those that are free.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from ps2stream.errors import BrokerError
from ps2stream.kafka.client import PATIENCE_S, Kafka

#: This many records are taken from the client at once.
_AT_ONCE = 10_000
_POLL_S = 1.0
#: What ends no reading: more will be there, or a partition is not known yet that was added.
_NOT_YET = (KafkaError._PARTITION_EOF, KafkaError._UNKNOWN_PARTITION)

#: By process, too: a client does not survive a fork.
_free: dict[tuple[int, Kafka], list[Consumer]] = {}
_free_lock = threading.Lock()


class Span(NamedTuple):
    """Offsets ``[start, end)`` of a partition of a topic."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def n_offsets(self) -> int:
        return self.end - self.start


class Record(NamedTuple):
    """A record as somebody wrote it."""

    offset: int
    key: bytes | None
    value: bytes | None


@contextlib.contextmanager
def lent(kafka: Kafka) -> Iterator[Consumer]:
    """Lend a consumer that nobody else uses; one that failed is not used again."""
    with _free_lock:
        consumers = _free.setdefault((os.getpid(), kafka), [])
        consumer = consumers.pop() if consumers else None
    if consumer is None:
        consumer = kafka.consumer(group_id="ps2stream", enable_partition_eof=True)
    try:
        yield consumer
    except BaseException:
        consumer.close()
        raise
    with _free_lock:
        consumers.append(consumer)


def ends_of(kafka: Kafka, topic: str, partitions: range) -> list[tuple[int, int]]:
    """Return for each partition the first offset that is there, and the one after the last committed."""

    def ask(partition: int) -> tuple[int, int]:
        with lent(kafka) as consumer:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE_S)

    return [kafka.patiently("read", functools.partial(ask, number)) for number in partitions]


def first_offset(kafka: Kafka, span: Span) -> int:
    """Return the first offset that the partition of a span still has."""
    [(first, _)] = ends_of(kafka, span.topic, range(span.partition, span.partition + 1))
    return first


def read(kafka: Kafka, span: Span) -> Iterator[list[Record]]:
    """Yield the committed records of a span, in order; it must begin with an offset that is kept."""
    if span.start >= span.end:
        return
    with kafka.telling("read"), lent(kafka) as consumer:
        consumer.assign([TopicPartition(span.topic, span.partition, span.start)])
        for messages in _polled(consumer, kafka, span):
            records, is_done = _within(messages, span)
            if records:
                yield records
            if is_done:
                consumer.unassign()
                return


def _polled(consumer: Consumer, kafka: Kafka, span: Span) -> Iterator[list[Message]]:
    """Yield what comes, until nothing does for long."""
    heard = time.monotonic()
    while time.monotonic() - heard < PATIENCE_S:
        # Asked for many at once, the client would wait for all of them.
        first = consumer.poll(_POLL_S)
        if first is not None:
            heard = time.monotonic()
            yield [first, *consumer.consume(_AT_ONCE, 0)]
    raise BrokerError(
        f"offsets {span.start} to {span.end - 1} of partition {span.partition} of {span.topic} at Kafka "
        f"{kafka.servers} did not come within {PATIENCE_S:g} s"
    )


def _within(messages: list[Message], span: Span) -> tuple[list[Record], bool]:
    """Return the records that are in a span, and whether there can be no more of them."""
    records: list[Record] = []
    for message in messages:
        error, offset = message.error(), message.offset() or 0
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and offset >= span.end:
                return records, True
            if error.code() not in _NOT_YET and not error.retriable():
                raise BrokerError(f"partition {span.partition} of {span.topic} cannot be read: {error.str()}")
        elif offset >= span.end:
            return records, True
        else:
            records.append(Record(offset, message.key(), message.value()))
    return records, bool(records) and records[-1].offset == span.end - 1
