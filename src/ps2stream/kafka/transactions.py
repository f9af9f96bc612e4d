"""Transactions of one writer: how it becomes the only one of its name, and writes in one piece.

*Clients in turn.* A broker answers that a transaction is committed some milliseconds before the partitions
have its marker, and turns away the next one of the same client until then; librdkafka asks again after 20 ms.
So who commits often has two clients: while one's markers are under way the other writes. A transaction begins
when the one before is committed, whoever's it was, so records lie in the order of commits, and none counts
that comes after one that failed.

*Decided in turn.* A broker that is killed may forget markers that it owes (``hanging.py``). Were the next
transaction decided by then, it could count where the one before does not. So one is not decided before the
marker of the one before is there; as a rule it has come while the records were written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ps2stream.errors import BrokerError
from ps2stream.kafka.client import PATIENCE_S, Kafka
from ps2stream.kafka.sending import OnDelivery, Outgoing, produce

_ASK_S = 30.0
_COMMIT_S = 30.0
_PAUSE_S = 0.2


class Transactions:
    """Write in transactions; opened, it is the only one that does so by its name.

    ``n_clients``: as many as the one before had, or more: each fences its own predecessor.
    ``open_ms``: brokers abort a transaction that is left open for longer.
    """

    def __init__(self, kafka: Kafka, name: str, n_clients: int, open_ms: int) -> None:
        self.producers = deque(
            kafka.producer(
                transactional_id=f"{name}.{number}" if number else name,
                transaction_timeout_ms=open_ms,
                linger_ms=0,
                socket_nagle_disable=True,
            )
            for number in range(n_clients)
        )
        for producer in self.producers:
            init_transactions(producer)

    def commit(self, records: Sequence[Outgoing], wait_for_markers: Callable[[], None]) -> list[int]:
        """Write records in one piece; return their offsets when it is settled that all are there.

        ``wait_for_markers``: return when those of the transaction before are there; for one client its broker
        sees to that.
        """
        producer, offsets = self.producers[0], [-1] * len(records)
        producer.begin_transaction()
        for number, record in enumerate(records):
            produce(producer, record, _noted(offsets, number))
        if len(self.producers) > 1:
            producer.flush(_COMMIT_S)
            wait_for_markers()
        producer.commit_transaction(_COMMIT_S)
        if min(offsets, default=0) < 0:
            raise BrokerError("brokers did not say where records are")
        self.producers.rotate()
        return offsets

    def close(self) -> None:
        for producer in self.producers:
            producer.purge()


def init_transactions(producer: Producer) -> None:
    """Become the only producer of a transactional id; what its predecessor left open is aborted."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            producer.init_transactions(_ASK_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)


def _noted(offsets: list[int], number: int) -> OnDelivery:
    def take(error: KafkaError | None, message: Message) -> None:
        if error is None:
            offsets[number] = message.offset() or 0

    return take
