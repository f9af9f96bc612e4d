"""Send records of no job: acknowledged when brokers have them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ps2stream.errors import BrokerError
from ps2stream.kafka.client import PATIENCE_S, Kafka

#: The client chooses the partition.
_BY_KEY = -1
_ABORT_S = 5.0

OnDelivery = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to write; without a partition, its key chooses one."""

    topic: str
    partition: int | None
    value: bytes | None
    key: bytes | None = None


@dataclass(slots=True)
class Sender:
    """Write records to topics by one client."""

    kafka: Kafka
    linger_ms: int = 1
    _producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        self._producer = self.kafka.producer(
            message_timeout_ms=int(PATIENCE_S * 1000),
            linger_ms=self.linger_ms,
            socket_nagle_disable=True,
        )

    def send(self, records: Iterable[Outgoing]) -> list[tuple[int, int]]:
        """Return partition and offset of each record when brokers have all; raise if one is refused."""
        sending = _Sending(self.kafka.servers)
        with self.kafka.telling("write"):
            for record in records:
                produce(self._producer, record, sending.told(sending.n_records))
                sending.n_records += 1
            self._producer.flush(PATIENCE_S)
        return sending.places()


@dataclass(slots=True)
class AtomicSender:
    """Write records to topics, all of a call or none: for those who read what was committed."""

    kafka: Kafka
    name: str
    _producer: Producer | None = None

    def send(self, records: Iterable[Outgoing]) -> list[tuple[int, int]]:
        """Return partition and offset of each record when brokers have all."""
        sending = _Sending(self.kafka.servers)
        with self.kafka.telling("write"):
            producer, self._producer = self._producer or self._opened(), None
            producer.begin_transaction()
            try:
                for record in records:
                    produce(producer, record, sending.told(sending.n_records))
                    sending.n_records += 1
                producer.commit_transaction(PATIENCE_S)
            except BaseException:
                # Left open, it would hold up all readers until brokers abort it.
                with contextlib.suppress(KafkaException):
                    producer.abort_transaction(_ABORT_S)
                raise
            self._producer = producer  # one that failed is not used again
        return sending.places()

    def _opened(self) -> Producer:
        # A name of its own: whoever else writes must not be fenced.
        producer = self.kafka.producer(transactional_id=f"{self.name}.{uuid.uuid4().hex}")
        producer.init_transactions(PATIENCE_S)
        return producer


@dataclass(slots=True)
class _Sending:
    """What brokers said of some records so far."""

    servers: str
    n_records: int = 0
    _places: dict[int, tuple[int, int]] = field(default_factory=dict)
    _failure: str = "brokers did not answer"

    def told(self, number: int) -> OnDelivery:
        def take(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._places[number] = (message.partition() or 0, message.offset() or 0)
            else:
                self._failure = error.str()

        return take

    def places(self) -> list[tuple[int, int]]:
        if len(self._places) != self.n_records:
            raise BrokerError(f"cannot write to Kafka {self.servers}: {self._failure}")
        return [self._places[number] for number in range(self.n_records)]


def produce(producer: Producer, record: Outgoing, on_delivery: OnDelivery | None = None) -> None:
    """Hand a record to a client, and wait while its queue is full."""
    partition = _BY_KEY if record.partition is None else record.partition
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, partition, on_delivery)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(0.1)
