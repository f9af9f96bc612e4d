"""Where a role begins to follow the log: the newest snapshot, and the offset behind it."""

from __future__ import annotations

from collections.abc import Iterator

from ps2stream.resident.entries import Entry, EntryKind, EntryReader
from ps2stream.resident.files import RoleFiles
from ps2stream.resident.notes import RegistrarNote, note_from_bytes
from ps2stream.resident.wire import REGISTRAR, Place, Received, Topic, Wire

LOG = Place(Topic.LOG)


class LogTail:
    """Follow the log from the newest snapshot on; ``run``: for which run a stop counts."""

    def __init__(self, wire: Wire, files: RoleFiles, run: str) -> None:
        self._reader = EntryReader()
        self._run = run
        self.note = note_from_bytes(RegistrarNote, wire.notes(REGISTRAR).get(0))
        self.snapshot = files.read_snapshot(self.note.snapshot)
        self.is_stopped = False

    @property
    def start(self) -> int:
        """Return the offset of the first record that the snapshot does not stand for."""
        return self.note.log

    def entries(self, records: list[Received]) -> Iterator[Entry]:
        """Give the entries that records complete."""
        for record in records:
            entry = self._reader.take(record.value or b"")
            if entry is not None:
                self.is_stopped |= entry.kind is EntryKind.STOP and entry.run == self._run
                yield entry
