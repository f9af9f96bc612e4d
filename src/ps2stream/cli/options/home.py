"""``--home``, ``--kafka``: which deployment a command works on."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ps2stream.cli.options.cluster import STORE, place
from ps2stream.cli.options.kafka import KAFKA, add_brokers, kafka_at
from ps2stream.cli.options.usage import UsageError
from ps2stream.deployment.home import Home
from ps2stream.errors import StateError

if TYPE_CHECKING:
    from ps2stream.kafka.topics import Topics

DEFAULT = "./ps2stream-data"
VARIABLE = "PS2STREAM_HOME"
PREFIX = "PS2STREAM_TOPICS"


def add_home(parser: argparse.ArgumentParser, *, store: bool = True) -> None:
    """Add ``--home`` and what a deployment on Kafka is found by; ``store`` unless it is added otherwise."""
    parser.add_argument(
        "--home",
        metavar="DIR",
        type=Path,
        help=f"directory of the deployment (default: {VARIABLE}, else {DEFAULT}; now {_default()})",
    )
    group = parser.add_argument_group("a deployment on Kafka")
    add_brokers(group, f"events and matches are in topics (default: {KAFKA}, unless --home is given)")
    group.add_argument(
        "--topics",
        metavar="PREFIX",
        help=f"what names of topics begin with (default: {PREFIX}, else ps2stream)",
    )
    if store:
        group.add_argument(
            "--store",
            metavar="URL",
            type=place,
            help=f"where the job of topics has its state (default: {STORE}, else the home)",
        )


def home_from(arguments: argparse.Namespace) -> Home:
    """Return the home that was named; it need not exist yet."""
    directory = arguments.home or _default()
    if directory.exists() and not directory.is_dir():
        raise StateError(f"the home of a deployment is a directory; {directory} is a file")
    topics = _topics_from(arguments)
    if topics is None:
        return Home(directory.absolute())
    return Home(directory.absolute(), topics, arguments.store or os.environ.get(STORE) or None)


def existing_home(arguments: argparse.Namespace) -> Home:
    """Return the home that was named, for commands that only look at it; raise where there is none."""
    home = home_from(arguments)
    if not home.exists():
        if home.topics is not None:
            raise StateError(
                f"no deployment: there is no topic {home.topics.updates} at Kafka "
                f"{home.topics.kafka.servers}. 'ps2stream subscribe' and 'publish' make it"
            )
        raise StateError(
            f"no deployment at {arguments.home or _default()}: there is no such directory. "
            f"'ps2stream subscribe' and 'publish' make one; --home or {VARIABLE} name another"
        )
    return home


def _default() -> Path:
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def _topics_from(arguments: argparse.Namespace) -> Topics | None:
    """Return the topics of a deployment on Kafka; None where it has a journal."""
    servers = arguments.kafka
    if servers is None and arguments.home is None:
        servers = os.environ.get(KAFKA)
    if not servers:
        for option in ("topics", "kafka_properties"):
            if getattr(arguments, option) is not None:
                raise UsageError(f"--{option.replace('_', '-')} needs --kafka")
        return None
    kafka = kafka_at(servers, arguments)
    from ps2stream.kafka.topics import DEFAULT_PREFIX, Topics

    return Topics(kafka, arguments.topics or os.environ.get(PREFIX) or DEFAULT_PREFIX)
