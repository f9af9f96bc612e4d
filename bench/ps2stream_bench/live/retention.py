"""What brokers keep of what users send and get: a week of it, unless they are told."""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from ps2stream.kafka.topics import Topics

_N_SEGMENTS = 8


def keep_at_most(topics: Topics, n_bytes: int) -> None:
    """Let brokers keep so much of each partition of publications, updates and matches."""
    wanted = {"retention.bytes": n_bytes, "segment.bytes": n_bytes // _N_SEGMENTS}
    entries = [
        ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    resources = [
        ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
        for name in (topics.publications, topics.updates, topics.matches)
    ]
    admin = topics.kafka.admin()  # what it is asked for is answered while it lives
    for done in admin.incremental_alter_configs(resources).values():
        done.result()
