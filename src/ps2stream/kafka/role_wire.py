"""The wire of a role on Kafka: a consumer, and clients with transactions (``resident/wire.py``).

*One piece.* The records of a commit and the note that goes with them are one transaction. The note is a
record, too, of a partition that only this role writes: an offset of a consumer group would say the same, but
it expires, and takes two requests more.

*One writer.* A role has its transactional ids, whoever runs it. Opening its wire fences the one before: its
transaction is aborted, its next one is refused, and what it has committed can be read from then on
(``hanging.py`` has the exception).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import DeletedRecords  # type: ignore[attr-defined]

from ps2stream.errors import BrokerError, FencedError, StateError
from ps2stream.kafka.client import reason_of
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.hanging import abort_what_hangs
from ps2stream.kafka.places import Place, Received, RoleName, Send
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.transactions import Transactions

#: Brokers abort a transaction that is left open for longer: so long others wait for a role that was stopped.
TRANSACTION_MS = 10_000
#: Clients that write in turn. Workers commit all the time, others seldom.
_N_CLIENTS = {"worker": 2}
#: Until all partitions have the markers of a transaction; it takes some milliseconds.
_MARKERS_S, _LOOK_S = 30.0, 0.1
#: Records that are taken from the client at once, unless told otherwise.
_AT_ONCE = 2_000
_FENCED = (
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
)
_NOT_YET = (KafkaError._PARTITION_EOF, KafkaError._UNKNOWN_PARTITION, KafkaError._TRANSPORT)
_GONE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)

NOTES = "notes"
#: All else that roles write.
_WRITTEN = ("log", "routed", "loads", "matches", "rejected")


class KafkaWire:
    """The wire of a role, opened; the one before is fenced. ``at_once``: records of a poll at most."""

    def __init__(self, topics: RoleTopics, role: RoleName, at_once: int = _AT_ONCE) -> None:
        self._topics, self._role, self._at_once = topics, role, at_once
        kafka = topics.topics.kafka
        self._names = {topics.name(NOTES): NOTES}
        self._places: dict[tuple[str | None, int | None], Place] = {}  # by topic and partition of messages
        with kafka.telling(f"become {role}"):
            self._transactions = Transactions(
                kafka, topics.name(f"{role.kind}-{role.number}"), _N_CLIENTS.get(role.kind, 1), TRANSACTION_MS
            )
        self._consumer: Consumer = kafka.consumer(
            group_id=topics.name(f"{role.kind}-{role.number}"),
            socket_nagle_disable=True,
            fetch_wait_max_ms=500,
            queued_min_messages=100_000,
        )
        self._ends = Ends(kafka)
        with kafka.telling(f"become {role}"):
            mine = topics.note_partition(role.kind, role.number)
            written = [topics.name(each) for each in _WRITTEN]
            abort_what_hangs(self._transactions.producers, self._ends, (topics.name(NOTES), mine), written)
        self._admin = kafka.admin()
        #: The last has no marker yet, perhaps; ``_marked``: the newest that is known to have its own.
        self._note_offsets: deque[int] = deque(maxlen=2)
        self._marked = -1
        self._marking = threading.Lock()
        self._own_notes = kafka.consumer(
            group_id=topics.name(f"{role.kind}-{role.number}.notes"),
            socket_nagle_disable=True,
            fetch_wait_max_ms=500,
        )
        end = self._ends.last_of(topics.name(NOTES), mine)
        self._own_notes.assign([TopicPartition(topics.name(NOTES), mine, end)])
        self._sender: Sender | None = None
        self._aside = ThreadPoolExecutor(1, "commit")
        self._trimming: dict[TopicPartition, Future[DeletedRecords]] = {}

    def notes(self, kind: str) -> dict[int, bytes]:
        return read_notes(self._topics, self._ends, kind)

    def n_partitions(self, topic: str) -> int:
        return self._ends.n_partitions(self._topics.name(topic))

    def ends(self, topic: str) -> list[int]:
        return self._ends.last(self._topics.name(topic), self.n_partitions(topic))

    def begins(self, topic: str) -> list[int]:
        return self._ends.first(self._topics.name(topic), self.n_partitions(topic))

    def read(self, place: Place, start: int) -> list[Received]:
        name = self._topics.name(place.topic)
        n = place.partition + 1
        first, last = self._ends.first(name, n)[-1], self._ends.last(name, n)[-1]
        if start < first:
            raise StateError(f"records {start} to {first - 1} of {name} were trimmed")
        span = Span(name, place.partition, start, last)
        return [
            Received(place, record.offset, record.value, record.key)
            for records in read(self._topics.topics.kafka, span)
            for record in records
        ]

    def follow(self, starts: Mapping[Place, int]) -> None:
        self._consumer.assign(self._partitions(starts))

    def follow_also(self, starts: Mapping[Place, int]) -> None:
        self._consumer.incremental_assign(self._partitions(starts))

    def poll(self, timeout_s: float) -> list[Received]:
        # Asked for many at once, the client would wait for all of them.
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        received = [self._received(each) for each in (first, *self._consumer.consume(self._at_once - 1, 0))]
        return [each for each in received if each is not None]

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        """Write in one transaction; if that fails, who opens the wire next finds out what became of it."""
        mine = self._topics.note_partition(self._role.kind, self._role.number)
        records = [*sends, Send(Place(NOTES, mine), note)]
        try:
            outgoing = [self._outgoing(each) for each in records]
            offsets = self._transactions.commit(outgoing, self._wait_for_markers)
        except KafkaException as error:
            raise self._failure(error, records) from error
        self._note_offsets.append(offsets.pop())
        return offsets

    def begin_commit(
        self, sends: Sequence[Send], note: bytes, *, is_whole: bool = False
    ) -> Future[list[int]]:
        return self._aside.submit(self.commit, sends, note)

    @property
    def is_noted(self) -> bool:
        return True

    def send(self, sends: Sequence[Send]) -> list[int]:
        """Write without a transaction: an idempotent client writes each record once, whoever may write."""
        if self._sender is None:
            self._sender = Sender(self._topics.topics.kafka, linger_ms=0)
        return [offset for _, offset in self._sender.send(map(self._outgoing, sends))]

    def trim(self, ends: Mapping[Place, int]) -> None:
        mine = Place(NOTES, self._topics.note_partition(self._role.kind, self._role.number))
        # A broker that forgets the markers of a commit takes its note back: who begins with the one before it
        # needs what that has not passed.
        self._wait_for_markers()
        wanted = {**ends, mine: self._note_offsets[0] if len(self._note_offsets) > 1 else -1}
        partitions = [
            TopicPartition(self._topics.name(place.topic), place.partition, end)
            for place, end in wanted.items()
            if end > 0
        ]
        # Nobody waits for it: what is not trimmed now is trimmed the next time.
        self._trimming = self._admin.delete_records(partitions) if partitions else {}

    def close(self) -> None:
        self._aside.shutdown()  # what is being committed ends, well or not
        self._consumer.close()
        self._own_notes.close()
        self._transactions.close()

    def _wait_for_markers(self) -> None:
        """Return when the last note is there for all to read, and with it what was committed before.

        Brokers push it to a consumer that reads nothing else: as a rule it is there before somebody waits.
        """
        until = time.monotonic() + _MARKERS_S
        with self._marking:  # who trims may wait while a commit goes on
            while self._note_offsets and self._marked < self._note_offsets[-1]:
                if time.monotonic() > until:
                    raise BrokerError(f"{self._role} has a transaction that is committed, and has no markers")
                message = self._own_notes.poll(_LOOK_S)
                if message is not None and message.error() is None:
                    self._marked = message.offset() or 0

    def _outgoing(self, send: Send) -> Outgoing:
        return Outgoing(self._topics.name(send.place.topic), send.place.partition, send.value, send.key)

    def _partitions(self, starts: Mapping[Place, int]) -> list[TopicPartition]:
        self._names |= {self._topics.name(place.topic): place.topic for place in starts}
        return [
            TopicPartition(self._topics.name(place.topic), place.partition, start)
            for place, start in starts.items()
        ]

    def _received(self, message: Message) -> Received | None:
        error = message.error()
        if error is None:
            place = self._places.get((message.topic(), message.partition()))
            if place is None:
                place = self._place_of(message)
            _, appended_ms = message.timestamp()
            return Received(place, message.offset() or 0, message.value(), message.key(), appended_ms)
        if error.code() in _GONE:
            raise StateError(f"records that {self._role} has to read were trimmed: {error.str()}")
        if error.code() not in _NOT_YET and not error.retriable():
            raise BrokerError(f"{self._role} cannot read: {error.str()}")
        return None

    def _place_of(self, message: Message) -> Place:
        """Make the place that a message is from, once: to make it takes as long as all else of a record."""
        topic, partition = message.topic() or "", message.partition() or 0
        place = Place(self._names[topic], partition)
        self._places[topic, partition] = place
        return place

    def _failure(self, error: KafkaException, records: Sequence[Send]) -> Exception:
        if error.args[0].code() in _FENCED:
            return FencedError(f"another {self._role} has taken over")
        if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
            largest = max(records, key=lambda record: len(record.value))
            size = f"a record of {len(largest.value):,} bytes for {largest.place.topic}"
            return BrokerError(f"{self._role} cannot write {size}: {reason_of(error)}")
        return BrokerError(f"{self._role} cannot write: {reason_of(error)}")


def read_notes(topics: RoleTopics, ends: Ends, kind: str) -> dict[int, bytes]:
    """Return the newest notes of all roles of a kind, by their numbers."""
    topic = topics.name(NOTES)
    n = topics.topics.n_partitions(topic)
    firsts, lasts = ends.first(topic, n), ends.last(topic, n)
    try:
        found = {}
        for number in topics.numbers(kind, n):
            partition = topics.note_partition(kind, number)
            span = Span(topic, partition, firsts[partition], lasts[partition])
            for records in read(topics.topics.kafka, span):
                found[number] = records[-1].value or b""
        return found
    except BrokerError:
        if ends.first(topic, n) == firsts:
            raise
        return read_notes(topics, ends, kind)  # somebody has trimmed its notes since they were looked for
