"""The wire of a role: what it reads, and what it writes in one piece.

A role reads places (partitions of topics) in their order and hands over what it made of them together with a
*note*: how far it has read. Records and note become visible together or not at all. Whoever opens the wire of
a role is its only writer from then on: one that had it before fails with its next commit, and what that had
not committed will never be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol


class Topic(StrEnum):
    """The topics that roles read and write."""

    PUBLICATIONS = "publications"
    UPDATES = "updates"
    LOG = "log"
    ROUTED = "routed"
    MATCHES = "matches"
    REJECTED = "rejected"
    LOADS = "loads"
    CONTROL = "control"


class Place(NamedTuple):
    """A partition of a topic."""

    topic: Topic
    partition: int = 0


class Received(NamedTuple):
    """A record that came; ``appended_ms``: when a broker, or its writer, says it was appended."""

    place: Place
    offset: int
    value: bytes | None
    key: bytes | None = None
    appended_ms: int = 0


class Send(NamedTuple):
    """A record to write; its key is for readers."""

    place: Place
    value: bytes
    key: bytes | None = None


class RoleName(NamedTuple):
    """A role by its kind and its number: ``worker 3``."""

    kind: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


REGISTRAR = RoleName("registrar")


def worker(number: int) -> RoleName:
    return RoleName("worker", number)


def dispatcher(number: int) -> RoleName:
    return RoleName("dispatcher", number)


class Wire(Protocol):
    """The wire of one role, open."""

    def note(self, role: RoleName) -> bytes | None:
        """Return the newest note of a role; of this one, that of its predecessor."""
        ...

    def ends(self, topic: Topic) -> list[int]:
        """Return for each partition the offset behind the last committed record."""
        ...

    def read(self, place: Place, start: int) -> list[Received]:
        """Return the committed records from an offset on; raise StateError if some of them were trimmed."""
        ...

    def follow(self, starts: Mapping[Place, int]) -> None:
        """Read places from some offsets on, by :meth:`poll`."""
        ...

    def poll(self, timeout_s: float) -> list[Received]:
        """Return what has come, when something has or the time is over; of each place in order."""
        ...

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        """Write records and a note in one piece; return their offsets when all are there for good."""
        ...

    def trim(self, ends: Mapping[Place, int]) -> None:
        """Let records before some offsets go."""
        ...

    def close(self) -> None: ...
