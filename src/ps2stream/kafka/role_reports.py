"""The reports of roles, from now on: what the driver watches."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from ps2stream.kafka.ends import Ends
from ps2stream.kafka.role_topics import RoleTopics


class RoleReports:
    """Read the topic of the loads from its end."""

    def __init__(self, topics: RoleTopics) -> None:
        kafka = topics.topics.kafka
        self._consumer = kafka.consumer(group_id=topics.name("driver"))
        name = topics.name("loads")
        (end,) = Ends(kafka).last(name, 1)
        self._consumer.assign([TopicPartition(name, 0, end)])

    def poll(self, timeout_s: float) -> list[tuple[bytes, bytes]]:
        """Return what has come, by key and value, when something has or the time is over."""
        first = self._consumer.poll(timeout_s)
        messages = [] if first is None else [first, *self._consumer.consume(1_000, 0)]
        # Brokers that are away come back; a gap in the reports is no harm.
        return [(each.key() or b"", each.value() or b"") for each in messages if each.error() is None]

    def close(self) -> None:
        self._consumer.close()
