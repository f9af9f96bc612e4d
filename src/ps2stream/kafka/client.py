"""A Kafka cluster: where its brokers are, and how a client of ours talks to it.

Settings of clients (security above all) come from a properties file that every process reads by itself, so
that no password is kept, sent or printed by us: the file has to be at the same path on every host.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from ps2stream.errors import BrokerError, ConfigError

#: How long brokers may be away before that is an error. What waits for them tries again until then.
PATIENCE_S = 120.0

_PAUSE_S = 0.05
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError._NOENT,  # a partition has no leader yet
        KafkaError._UNKNOWN_PARTITION,  # to a client that has looked before it was added
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,  # the disk of a leader failed; there will be another
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
T = TypeVar("T")

_SILENT = logging.Logger("ps2stream.kafka", logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class Kafka:
    """Brokers by ``host:port,...``; a process may send it to another, on any host.

    ``properties``: a file of librdkafka's settings, ``name=value`` a line, such as ``security.protocol``,
    ``sasl.mechanism``, ``sasl.username``, ``sasl.password`` and ``ssl.ca.location``.
    """

    servers: str
    properties: str | None = None

    def consumer(self, **settings: str | int | bool) -> Consumer:
        """Return a consumer that sees what was committed, and nothing else."""
        usual = {
            "fetch.wait.max.ms": 50,
            # A batch waits for its records: the client's second between two attempts would be most of it.
            "fetch.error.backoff.ms": 20,
            "fetch.queue.backoff.ms": 1,
        }
        fixed = {
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
        }
        with self.telling("connect"):
            return Consumer(self._settings(usual, {**fixed, **_dotted(settings)}))

    def producer(self, **settings: str | int | bool) -> Producer:
        """Return a producer whose records arrive once and in order."""
        usual = {"linger.ms": 5, "compression.type": "lz4"}
        with self.telling("connect"):
            return Producer(self._settings(usual, {"enable.idempotence": True, **_dotted(settings)}))

    def admin(self) -> AdminClient:
        with self.telling("connect"):
            return AdminClient(self._settings({}, {"allow.auto.create.topics": False}))

    @contextlib.contextmanager
    def telling(self, doing: str) -> Iterator[None]:
        """Say in our words what brokers or their client complain of."""
        try:
            yield
        except KafkaException as error:
            raise BrokerError(f"cannot {doing} at Kafka {self.servers}: {reason_of(error)}") from error

    def patiently(self, doing: str, ask: Callable[[], T]) -> T:
        """Ask brokers, again while they are away or do not agree yet who leads a partition."""
        until = time.monotonic() + PATIENCE_S
        with self.telling(doing):
            while True:
                try:
                    return ask()
                except KafkaException as error:
                    if error.args[0].code() not in _PASSING or time.monotonic() > until:
                        raise
                time.sleep(_PAUSE_S)

    def _settings(self, usual: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
        """Return all settings: the file may replace usual ones, but not what delivery rests on.

        A ``group.id`` of the file, for example, would be that of all parts of all batches.
        """
        given = {} if self.properties is None else read_properties(Path(self.properties))
        # What the client prints about brokers that are away, or about being fenced, is for whoever waits.
        return {
            "client.id": "ps2stream",
            **usual,
            **given,
            **fixed,
            "bootstrap.servers": self.servers,
            "logger": _SILENT,
            "error_cb": _ignored,
        }


def read_properties(path: Path) -> dict[str, str]:
    """Read ``name=value`` lines; empty ones and those that begin with # or ! are comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the properties of Kafka in {path} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        words = line.strip()
        if not words or words[0] in "#!":
            continue
        name, equals, value = words.partition("=")
        if not equals or not name.strip():
            # Without the line itself: it may be a password.
            raise ConfigError(f"{path}, line {number}: must be name=value")
        found[name.strip()] = value.strip()
    return found


def reason_of(error: KafkaException) -> str:
    """Return what a client says, without the number of the error."""
    said = error.args[0] if error.args else error
    return str(said.str() if hasattr(said, "str") else said)


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    """Write the names of settings as the client has them, which are no names of Python's."""
    return {name.replace("_", "."): value for name, value in settings.items()}


def _ignored(error: object) -> None:
    """Leave it to who waits: brokers that are away may be back soon."""
