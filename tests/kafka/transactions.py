"""Transactions of other publishers: open, committed or aborted."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from confluent_kafka import Producer

from ps2stream.kafka.client import Kafka
from ps2stream.kafka.sending import Outgoing, produce


def opened(kafka: Kafka, records: Iterable[Outgoing]) -> Producer:
    """Return a producer whose transaction has some records, which brokers have, and is not over."""
    producer = kafka.producer(transactional_id=uuid.uuid4().hex)
    producer.init_transactions(30)
    producer.begin_transaction()
    for record in records:
        produce(producer, record)
    assert producer.flush(30) == 0
    return producer


def abort(kafka: Kafka, records: Iterable[Outgoing]) -> None:
    opened(kafka, records).abort_transaction(30)
