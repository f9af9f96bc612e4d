"""The topics of a deployment, all below one prefix.

PREFIX.publications   publications; any number of partitions           written by publishers
PREFIX.updates        subscribe and unsubscribe, in one order: one partition   "
PREFIX.matches        matches, by subscription id                      the job
PREFIX.rejected       what could not be processed, and why             the job
PREFIX.positions      which records each batch had                     the job
PREFIX.job            whose output it is; kept for ever                the job
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from ps2stream.errors import BrokerError, ConfigError
from ps2stream.kafka.client import PATIENCE_S, Kafka

DEFAULT_PREFIX = "ps2stream"
#: Partitions of the topics that are divided, where nobody has made them before.
DEFAULT_PARTITIONS = 4
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_LOOK_S = 0.05
_FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}
#: The newest must not go because the stream was silent for a week: it says where updates are that wait.
_NEWEST = {"retention.ms": "-1", "retention.bytes": str(64 << 20), "segment.bytes": str(16 << 20)}


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of a deployment's topics on a cluster."""

    kafka: Kafka
    prefix: str = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.prefix):
            raise ConfigError(
                "the prefix of topics must be 1 to 200 of the characters A-Z a-z 0-9 . _ -; "
                f"got {self.prefix!r}"
            )

    @property
    def publications(self) -> str:
        return f"{self.prefix}.publications"

    @property
    def updates(self) -> str:
        return f"{self.prefix}.updates"

    @property
    def matches(self) -> str:
        return f"{self.prefix}.matches"

    @property
    def rejected(self) -> str:
        return f"{self.prefix}.rejected"

    @property
    def positions(self) -> str:
        return f"{self.prefix}.positions"

    @property
    def job(self) -> str:
        return f"{self.prefix}.job"

    def create(self, n_partitions: int = DEFAULT_PARTITIONS) -> None:
        """Make the topics that are not there; those that are stay as they are."""
        counts = {
            self.publications: n_partitions,
            self.updates: 1,
            self.matches: n_partitions,
            self.rejected: 1,
            self.positions: 1,
            self.job: 1,
        }
        configs = {self.job: _FOR_EVER, self.positions: _NEWEST}
        new = [NewTopic(name, count, config=configs.get(name, {})) for name, count in counts.items()]
        with self.kafka.telling("make topics"):
            admin = self.kafka.admin()  # what it is asked for is answered while it lives
            for made in admin.create_topics(new, request_timeout=PATIENCE_S).values():
                try:
                    made.result()
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise
        self.wait_for(list(counts))
        self.check()

    def wait_for(self, names: list[str]) -> None:
        """Return when brokers know topics that they have made."""
        until = time.monotonic() + PATIENCE_S
        for name in names:
            while not self.n_partitions(name):
                if time.monotonic() > until:
                    raise BrokerError(f"topic {name} does not appear at Kafka {self.kafka.servers}")
                time.sleep(_LOOK_S)

    def check(self) -> None:
        """Raise unless all updates are in one order."""
        n = self.n_partitions(self.updates)
        if n != 1:
            raise ConfigError(f"topic {self.updates} must have one partition, which orders it; got {n}")

    def exist(self) -> bool:
        """Say whether anybody has made them."""
        return self.n_partitions(self.updates) > 0

    def n_partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; 0 where there is none."""
        # Not by its metadata: brokers make a topic that somebody asks them about.
        with self.kafka.telling(f"look for topic {topic}"):
            admin = self.kafka.admin()
            asked = admin.describe_topics(TopicCollection([topic]), request_timeout=PATIENCE_S)
            try:
                return len(asked[topic].result().partitions)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                return 0

    def trim(self, ends: dict[tuple[str, int], int]) -> None:
        """Delete the records of partitions before some offsets."""
        wanted = [TopicPartition(topic, number, end) for (topic, number), end in ends.items()]
        with self.kafka.telling("trim topics"):
            admin = self.kafka.admin()
            for trimmed in admin.delete_records(wanted, request_timeout=PATIENCE_S).values():
                trimmed.result()

    def delete(self) -> None:
        """Remove all topics with all that is in them."""
        names = [self.publications, self.updates, self.matches, self.rejected, self.positions, self.job]
        self.delete_named(names)

    def delete_named(self, names: Iterable[str]) -> None:
        """Remove some topics, where they are there."""
        with self.kafka.telling("delete topics"):
            admin = self.kafka.admin()
            for deleted in admin.delete_topics(list(names), request_timeout=PATIENCE_S).values():
                try:
                    deleted.result()
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
