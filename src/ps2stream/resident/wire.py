"""The wire of a role: what it reads, and what it writes in one piece.

A role reads places (partitions of topics) in their order and hands over what it made of them together with a
*note*: how far it has read. Records and note become visible together or not at all. Whoever opens the wire of
a role is its only writer from then on: one that had it before fails with its next commit, and what that had
not committed will never be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from enum import StrEnum
from typing import Protocol

from ps2stream.kafka.places import Place, Received, RoleName, Send

__all__ = [
    "DISPATCHER",
    "REGISTRAR",
    "WORKER",
    "Place",
    "Received",
    "RoleName",
    "Send",
    "Topic",
    "Wire",
    "carried_out",
]


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


REGISTRAR, DISPATCHER, WORKER = "registrar", "dispatcher", "worker"


class Wire(Protocol):
    """The wire of one role, open."""

    def notes(self, kind: str) -> dict[int, bytes]:
        """Return the newest notes of all roles of a kind, by number; of this one, its predecessor's."""
        ...

    def n_partitions(self, topic: Topic) -> int:
        """Return how many partitions a topic has, as it was not long ago."""
        ...

    def ends(self, topic: Topic) -> list[int]:
        """Return for each partition the offset behind the last committed record."""
        ...

    def begins(self, topic: Topic) -> list[int]:
        """Return for each partition the offset of the first record that was not trimmed."""
        ...

    def read(self, place: Place, start: int) -> list[Received]:
        """Return the committed records from an offset on; raise StateError if some of them were trimmed."""
        ...

    def follow(self, starts: Mapping[Place, int]) -> None:
        """Read places from some offsets on, by :meth:`poll`."""
        ...

    def follow_also(self, starts: Mapping[Place, int]) -> None:
        """Read more places, beside those that are read already."""
        ...

    def poll(self, timeout_s: float) -> list[Received]:
        """Return what has come, when something has or the time is over; of each place in order."""
        ...

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        """Write records and a note in one piece; return their offsets when all are there for good."""
        ...

    def begin_commit(
        self, sends: Sequence[Send], note: bytes, *, is_whole: bool = False
    ) -> Future[list[int]]:
        """Begin a commit, which goes on by itself; nothing else may be committed before it has ended.

        ``is_whole``: in one piece also where notes are kept back (``seldom_notes.py``).
        """
        ...

    @property
    def is_noted(self) -> bool:
        """Say whether the note of the last commit is there for good, too (``seldom_notes.py``)."""
        ...

    def send(self, sends: Sequence[Send]) -> list[int]:
        """Write records at once, not in one piece with anything; nobody is kept from it."""
        ...

    def trim(self, ends: Mapping[Place, int]) -> None:
        """Let records before some offsets go, and older notes of this role."""
        ...

    def close(self) -> None: ...


def carried_out(
    commit: Callable[[Sequence[Send], bytes], list[int]], sends: Sequence[Send], note: bytes
) -> Future[list[int]]:
    """Begin a commit where it cannot go on by itself: it has ended, well or not."""
    ended: Future[list[int]] = Future()
    try:
        ended.set_result(commit(sends, note))
    except Exception as failure:
        ended.set_exception(failure)
    return ended
