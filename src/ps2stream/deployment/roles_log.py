"""The log of resident roles: a snapshot in the store, and entries of a topic behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, first_offset, read
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import read_notes
from ps2stream.kafka.topics import Topics
from ps2stream.partitioning.plan import Plan
from ps2stream.resident.entries import Entry, EntryReader
from ps2stream.resident.files import RoleFiles
from ps2stream.resident.notes import RegistrarNote, note_from_bytes
from ps2stream.resident.wire import REGISTRAR
from ps2stream.routing.routing import Routing
from ps2stream.state.state import State

_TRIES = 3


class RolesLog:
    """Read the log without taking part: nobody is fenced by it."""

    def __init__(self, topics: Topics, state: State) -> None:
        n_workers = int(state.job_file.values("n_workers")["n_workers"])
        self._topics = RoleTopics(topics, n_workers)
        self._files = RoleFiles(state.store.under("resident"))
        self._entries: list[Entry] | None = None

    def base(self) -> int:
        """Return 0: what is read is of one snapshot, and stays as it was read."""
        return 0

    def last_seq(self) -> int:
        return self._all()[-1].upto

    def read(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        return ((number, entry.segment) for number, entry in enumerate(self._all()))

    def plans(self) -> Routing[Plan] | None:
        return self._all()[-1].routing.map(self._files.read_plan)

    def _all(self) -> list[Entry]:
        """Return the newest snapshot and all behind it; if another is made meanwhile, that one."""
        if self._entries is None:
            for left in reversed(range(_TRIES)):
                try:
                    self._entries = list(self._read())
                    break
                except StateError:
                    if not left:
                        raise
        assert self._entries is not None
        return self._entries

    def _read(self) -> Iterator[Entry]:
        kafka, name = self._topics.topics.kafka, self._topics.name("log")
        ends = Ends(kafka)
        note = note_from_bytes(RegistrarNote, read_notes(self._topics, ends, REGISTRAR).get(0))
        yield self._files.read_snapshot(note.snapshot)
        (end,) = ends.last(name, 1)
        span = Span(name, 0, note.log, end)
        if first_offset(kafka, span) > note.log:
            raise StateError(f"records of {name} behind a snapshot were trimmed")
        reader = EntryReader()
        for records in read(kafka, span):
            for record in records:
                entry = reader.take(record.value or b"")
                if entry is not None:
                    yield entry
