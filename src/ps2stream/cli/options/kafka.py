"""``--kafka``, ``--kafka-properties``: where brokers are, and how clients talk to them."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from ps2stream.cli.options.usage import UsageError
from ps2stream.extras import require

if TYPE_CHECKING:
    from ps2stream.kafka.client import Kafka

KAFKA, PROPERTIES = "PS2STREAM_KAFKA", "PS2STREAM_KAFKA_PROPERTIES"


def add_brokers(group: Any, what_for: str) -> None:
    """Add both options to a parser or a group of one."""
    group.add_argument("--kafka", metavar="HOST:PORT,...", help=f"brokers; {what_for}")
    group.add_argument(
        "--kafka-properties",
        metavar="FILE",
        help=f"settings of Kafka's clients, such as security.protocol, a line each (default: {PROPERTIES})",
    )


def add_kafka(parser: argparse.ArgumentParser) -> None:
    """Add both for work that leaves nothing in topics."""
    add_brokers(parser, f"--engine realtime has its topics there (default: {KAFKA})")


def needed_kafka(arguments: argparse.Namespace) -> Kafka:
    """Return the brokers that were named; raise if none were."""
    servers = arguments.kafka or os.environ.get(KAFKA)
    if not servers:
        raise UsageError(f"--engine realtime needs Kafka: --kafka HOST:PORT (or {KAFKA})")
    return kafka_at(servers, arguments)


def kafka_at(servers: str, arguments: argparse.Namespace) -> Kafka:
    require("Kafka", "kafka")
    from ps2stream.kafka.client import Kafka

    return Kafka(servers, arguments.kafka_properties or os.environ.get(PROPERTIES) or None)
