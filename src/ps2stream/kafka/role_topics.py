"""The topics between resident roles, beside those that a deployment has anyway (``topics.py``).

PREFIX.log        what the registrar decided: one partition               written by the registrar
PREFIX.routed     packets, a partition for each worker                    dispatchers
PREFIX.loads      reports of roles; for some minutes                      all roles
PREFIX.control    what the driver asks for; for some minutes              the driver
PREFIX.notes      how far each role is, a partition for each              all roles
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions, NewTopic  # type: ignore[attr-defined]

from ps2stream.errors import ConfigError
from ps2stream.kafka.client import PATIENCE_S
from ps2stream.kafka.topics import Topics

_FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}
#: Roles trim these as they go; segments are what brokers can let go of.
_TRIMMED = {**_FOR_EVER, "segment.bytes": str(64 << 20)}
_SHORT = {"retention.ms": str(10 * 60_000), "segment.ms": str(5 * 60_000), "segment.bytes": str(16 << 20)}


@dataclass(frozen=True, slots=True)
class RoleTopics:
    """The names of the topics between the roles of a deployment, and which partition is whose."""

    topics: Topics
    n_workers: int

    def name(self, topic: str) -> str:
        """Return the name of a topic at brokers."""
        return f"{self.topics.prefix}.{topic}"

    def note_partition(self, kind: str, number: int) -> int:
        """Return where a role has its notes: first the registrar, then workers, then dispatchers."""
        first = {"registrar": 0, "worker": 1, "dispatcher": 1 + self.n_workers}
        return first[kind] + number

    def numbers(self, kind: str, n_notes: int) -> range:
        """Return the numbers of the roles of a kind, where there are partitions for so many notes."""
        counts = {"registrar": 1, "worker": self.n_workers, "dispatcher": n_notes - 1 - self.n_workers}
        return range(counts[kind])

    def create(self, n_dispatchers: int) -> None:
        """Make the topics that are not there."""
        counts = {
            "log": (1, _TRIMMED),
            "routed": (self.n_workers, _TRIMMED),
            "loads": (1, _SHORT),
            "control": (1, _SHORT),
            "notes": (1 + self.n_workers + n_dispatchers, _TRIMMED),
        }
        new = [NewTopic(self.name(name), count, config=config) for name, (count, config) in counts.items()]
        with self.topics.kafka.telling("make topics"):
            admin = self.topics.kafka.admin()
            for made in admin.create_topics(new, request_timeout=PATIENCE_S).values():
                try:
                    made.result()
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise
        self.topics.wait_for([self.name(name) for name in counts])
        self._check(counts["notes"][0])

    def delete(self) -> None:
        self.topics.delete_named(self.name(name) for name in ("log", "routed", "loads", "control", "notes"))

    def _check(self, n_notes: int) -> None:
        """Refuse topics of another number of workers; add notes for more dispatchers."""
        n = self.topics.n_partitions(self.name("routed"))
        if n != self.n_workers:
            raise ConfigError(
                f"topic {self.name('routed')} must have {self.n_workers} partitions, one for each worker; "
                f"it has {n}. Use as many workers, or another prefix"
            )
        if self.topics.n_partitions(self.name("notes")) < n_notes:
            with self.topics.kafka.telling("add partitions"):
                admin = self.topics.kafka.admin()
                wanted = [NewPartitions(self.name("notes"), n_notes)]
                for made in admin.create_partitions(wanted, request_timeout=PATIENCE_S).values():
                    made.result()
