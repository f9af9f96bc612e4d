"""Who sends by a schedule, and who sees what is delivered.

The one who sees notes when a record came, and reads it afterwards: reading takes the time of others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, Message, TopicPartition

from ps2stream.arrays import Float64s
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.sending import OnDelivery, Outgoing, produce
from ps2stream.kafka.topics import Topics
from ps2stream.roles.packets import decode
from ps2stream_bench.live.schedule import Schedule

_FLUSH_S = 60.0
_POLL_S = 0.05


class Client:
    """Send records by one client; ``sent_late_s``: by how much the last schedule was missed at worst."""

    def __init__(self, topics: Topics) -> None:
        self._producer = topics.kafka.producer(linger_ms=0, socket_nagle_disable=True)
        self.sent_late_s = 0.0

    def send(self, records: Iterable[Outgoing], on_delivery: OnDelivery | None = None) -> None:
        for record in records:
            produce(self._producer, record, on_delivery)

    def flush(self) -> None:
        if self._producer.flush(_FLUSH_S):
            raise RuntimeError("brokers did not take all records")

    def follow(self, schedule: Schedule, started: float) -> None:
        """Send every tick when it is due, by the clock ``time.perf_counter``."""
        self.sent_late_s = 0.0
        for tick in schedule.ticks:
            while (ahead := started + tick.at_s - time.perf_counter()) > 0:
                self._producer.poll(0)
                time.sleep(min(ahead, _POLL_S))
            self.sent_late_s = max(self.sent_late_s, -ahead)
            self.send(tick.records)
        self.flush()


class Acknowledged:
    """When brokers had each of some records."""

    def __init__(self) -> None:
        self.at: dict[bytes, float] = {}

    def told(self, key: bytes) -> OnDelivery:
        def take(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.at[key] = time.perf_counter()

        return take


class _Seen(NamedTuple):
    at: float
    value: bytes


class Observer(threading.Thread):
    """Read committed matches from now on, in a thread, until it is closed."""

    def __init__(self, topics: Topics, on_value: Callable[[bytes], None] | None = None) -> None:
        super().__init__(name="observer", daemon=True)
        kafka, n = topics.kafka, topics.n_partitions(topics.matches)
        self._consumer = kafka.consumer(group_id=f"{topics.prefix}.observer", socket_nagle_disable=True)
        ends = Ends(kafka).last(topics.matches, n)
        self._consumer.assign([TopicPartition(topics.matches, each, end) for each, end in enumerate(ends)])
        self._closed = threading.Event()
        self._seen: list[_Seen] = []
        self._on_value = on_value
        self._failure: str | None = None
        self._looked_at: dict[tuple[str, int], int] = {}
        self.last_at = 0.0

    def run(self) -> None:
        while not self._closed.is_set():
            message = self._consumer.poll(_POLL_S)
            while message is not None:
                if (error := message.error()) is None:
                    self.last_at = time.perf_counter()
                    self._seen.append(_Seen(self.last_at, message.value() or b""))
                elif not error.retriable() and error.code() != KafkaError._PARTITION_EOF:
                    self._failure = error.str()
                message = self._consumer.poll(0)
        self._consumer.close()

    def close(self) -> None:
        self._closed.set()
        self.join()

    @property
    def n_seen(self) -> int:
        return len(self._seen)

    def has(self, publication: str, start: int = 0) -> bool:
        """Say whether a publication is among what came from some record on.

        Who waits asks again and again: only what has come since is looked at, for looking takes a core from
        the engine that is waited for.
        """
        if self._failure is not None:
            raise RuntimeError(f"deliveries cannot be read: {self._failure}")
        wanted, n_seen = publication.encode(), self.n_seen
        first = self._looked_at.get((publication, start), start)
        found = next((n for n in range(first, n_seen) if wanted in self._seen[n].value), n_seen)
        self._looked_at[publication, start] = found
        return found < n_seen

    def drop(self) -> None:
        """Forget what has come so far."""
        self._seen, self._looked_at = [], {}

    def take(self) -> list[tuple[float, pa.RecordBatch]]:
        """Return what has come since this was last asked, with the times."""
        seen = self._seen
        self.drop()
        return [(each.at, decode(each.value)) for each in seen]


class Delivered(NamedTuple):
    """Deliveries of a schedule: of each publication when the first was seen, NaN where there was none."""

    first_at: Float64s
    n_matches: int
    last_at: float


def delivered(schedule: Schedule, seen: Iterable[tuple[float, pa.RecordBatch]]) -> Delivered:
    """Find the publications of a schedule among what was seen."""
    first_at = np.full(len(schedule.due_s), np.nan)
    n_matches, last_at, prefix = 0, 0.0, f"{schedule.name}-"
    for at, matches in seen:
        ids = matches.column("publication_id")
        own = ids.filter(pa.compute.starts_with(ids, prefix))
        if len(own):
            rows = pa.compute.utf8_slice_codeunits(own, len(prefix)).cast(pa.int64()).to_numpy()
            first_at[rows] = np.fmin(first_at[rows], at)
            n_matches += len(rows)
            last_at = max(last_at, at)
    return Delivered(first_at, n_matches, last_at)
