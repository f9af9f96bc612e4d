"""How far topics go: the first offset of each partition, and the one behind its last committed record."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
    TopicDescription,
)

from ps2stream.errors import BrokerError
from ps2stream.kafka.client import PATIENCE_S, Kafka

#: How often somebody looks for partitions that were added.
_PARTITIONS_EVERY_S = 30.0
#: Of a leader, or of how many partitions there are; or of a broker that went amid a request.
_BEHIND = (
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._TIMED_OUT,
)
#: Of a broker that went amid a request a client may wait for the answer for ever, whatever time-out it was
#: told: who has waited for so long asks again, by another.
_ANSWER_S, _GRACE_S = 5.0, 0.5


@dataclass(slots=True)
class Ends:
    """Ask brokers again and again by one client; a request is for all partitions of a topic."""

    kafka: Kafka
    _admin: AdminClient = field(init=False)
    _known: dict[str, tuple[float, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._admin = self.kafka.admin()

    def first(self, topic: str, n_partitions: int) -> list[int]:
        return self._offsets(topic, range(n_partitions), OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def last(self, topic: str, n_partitions: int) -> list[int]:
        return self._offsets(topic, range(n_partitions), OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def last_of(self, topic: str, partition: int) -> int:
        """Return the same for one partition."""
        only = range(partition, partition + 1)
        return self._offsets(topic, only, OffsetSpec.latest())[0]  # type: ignore[no-untyped-call]

    def acknowledged(self, topic: str, n_partitions: int) -> list[int]:
        """Return the offsets behind the last records, also of transactions that are not over."""
        spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return self._offsets(topic, range(n_partitions), spec, IsolationLevel.READ_UNCOMMITTED)

    def n_partitions(self, topic: str) -> int:
        """Return how many partitions a topic has, as it was not long ago."""
        at, known = self._known.get(topic, (0.0, 0))
        if not known or time.monotonic() - at > _PARTITIONS_EVERY_S:
            known = len(self._described(topic).partitions)
            self._known[topic] = time.monotonic(), known
        return known

    def identity(self, *topics: str) -> str:
        """Return what tells topics from all others, also from those that are made anew under their names."""
        with self.kafka.telling("look for the cluster"):
            cluster = self._admin.describe_cluster(request_timeout=PATIENCE_S).result().cluster_id
        ids = ", ".join(str(self._described(topic).topic_id) for topic in topics)
        return f"cluster {cluster} (topics {ids})"

    @contextlib.contextmanager
    def _renewed_when_behind(self) -> Iterator[None]:
        """Ask by another client after one was refused for what it knew, or not answered.

        A client goes on to ask by what it knew of a partition's leader. When a broker has started anew, that
        is refused as too old, for as long as the client lives. Nor does it look
        for partitions that were added.
        """
        try:
            yield
        except KafkaException as error:
            if error.args[0].code() in _BEHIND:
                self._admin = self.kafka.admin()
            raise

    def _described(self, topic: str) -> TopicDescription:
        def ask() -> TopicDescription:
            asked = self._admin.describe_topics(TopicCollection([topic]), request_timeout=PATIENCE_S)
            described: TopicDescription = asked[topic].result()
            return described

        return self.kafka.patiently(f"look for topic {topic}", ask)

    def _offsets(
        self,
        topic: str,
        partitions: range,
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> list[int]:
        wanted = [TopicPartition(topic, number) for number in partitions]

        def ask() -> dict[int, int]:
            with self._renewed_when_behind():
                asked = self._admin.list_offsets(
                    dict.fromkeys(wanted, spec), isolation_level=isolation, request_timeout=_ANSWER_S
                )
                return {each.partition: _answer(told).offset for each, told in asked.items()}

        found = self.kafka.patiently(f"look how far {topic} goes", ask)
        if len(found) != len(partitions):
            known = f"{len(found)} of {len(partitions)}"
            raise BrokerError(
                f"Kafka {self.kafka.servers} knows {known} partitions of {topic} that were asked for"
            )
        return [found[number] for number in partitions]


def _answer(told: Future[ListOffsetsResultInfo]) -> ListOffsetsResultInfo:
    try:
        return told.result(_ANSWER_S + _GRACE_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "a broker did not answer")) from None
