"""Topics in the memory of this process, and wires on them: what the loops of roles are tested on."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from ps2stream.errors import FencedError, StateError
from ps2stream.resident.wire import Place, Received, RoleName, Send, Topic, carried_out


class MemoryTopics:
    """Records by place; any number of threads."""

    def __init__(self, n_partitions: Mapping[Topic, int]) -> None:
        self.n_partitions = dict(n_partitions)
        self.changed = threading.Condition()
        self._records: dict[Place, list[Received]] = defaultdict(list)
        self._firsts: dict[Place, int] = defaultdict(int)
        self._notes: dict[RoleName, bytes] = {}
        self._owners: dict[RoleName, object] = {}

    def append(self, place: Place, value: bytes, key: bytes | None = None) -> int:
        """Write a record; return its offset."""
        with self.changed:
            records = self._records[place]
            offset = self._firsts[place] + len(records)
            records.append(Received(place, offset, value, key, int(time.time() * 1000)))
            self.changed.notify_all()
            return offset

    def records(self, place: Place, start: int = 0) -> list[Received]:
        """Return the records of a place from an offset on."""
        with self.changed:
            first = self._firsts[place]
            if start < first:
                raise StateError(f"records {start} to {first - 1} of {place.topic} were trimmed")
            return self._records[place][start - first :]

    def first(self, place: Place) -> int:
        with self.changed:
            return self._firsts[place]

    def end(self, place: Place) -> int:
        with self.changed:
            return self._firsts[place] + len(self._records[place])

    def trim(self, place: Place, end: int) -> None:
        with self.changed:
            del self._records[place][: max(0, end - self._firsts[place])]
            self._firsts[place] = max(end, self._firsts[place])

    def notes(self, kind: str) -> dict[int, bytes]:
        with self.changed:
            return {role.number: note for role, note in self._notes.items() if role.kind == kind}

    def own(self, role: RoleName, owner: object) -> None:
        """Make somebody the only writer of a role."""
        with self.changed:
            self._owners[role] = owner

    def commit(self, role: RoleName, owner: object, sends: Sequence[Send], note: bytes) -> list[int]:
        with self.changed:
            if self._owners.get(role) is not owner:
                raise FencedError(f"another {role} has taken over")
            self._notes[role] = note
            return [self.append(send.place, send.value, send.key) for send in sends]


class MemoryWire:
    """The wire of a role on topics in memory; ``at_once``: how many records of a topic come together at most.

    It need not be said of all topics.
    """

    def __init__(
        self, topics: MemoryTopics, role: RoleName, at_once: Mapping[str, int] | None = None
    ) -> None:
        self._topics, self._role, self._at_once = topics, role, at_once or {}
        self._next: dict[Place, int] = {}
        topics.own(role, self)

    def notes(self, kind: str) -> dict[int, bytes]:
        return self._topics.notes(kind)

    def n_partitions(self, topic: Topic) -> int:
        return self._topics.n_partitions.get(topic, 1)

    def begins(self, topic: Topic) -> list[int]:
        return [self._topics.first(Place(topic, number)) for number in range(self.n_partitions(topic))]

    def ends(self, topic: Topic) -> list[int]:
        return [self._topics.end(Place(topic, n)) for n in range(self.n_partitions(topic))]

    def read(self, place: Place, start: int) -> list[Received]:
        return self._topics.records(place, start)

    def follow(self, starts: Mapping[Place, int]) -> None:
        self._next = dict(starts)

    def follow_also(self, starts: Mapping[Place, int]) -> None:
        self._next |= starts

    def poll(self, timeout_s: float) -> list[Received]:
        with self._topics.changed:
            received = self._taken()
            if not received:
                self._topics.changed.wait(timeout_s)
                received = self._taken()
        return received

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        return self._topics.commit(self._role, self, sends, note)

    def begin_commit(
        self, sends: Sequence[Send], note: bytes, *, is_whole: bool = False
    ) -> Future[list[int]]:
        return carried_out(self.commit, sends, note)

    @property
    def is_noted(self) -> bool:
        return True

    def send(self, sends: Sequence[Send]) -> list[int]:
        return [self._topics.append(send.place, send.value, send.key) for send in sends]

    def trim(self, ends: Mapping[Place, int]) -> None:
        for place, end in ends.items():
            self._topics.trim(place, end)

    def close(self) -> None:
        """Do nothing: nobody else needs it."""

    def _taken(self) -> list[Received]:
        received = [
            record
            for place, start in self._next.items()
            for record in self.read(place, start)[: self._at_once.get(place.topic)]
        ]
        for record in received:
            self._next[record.place] = record.offset + 1
        return received
