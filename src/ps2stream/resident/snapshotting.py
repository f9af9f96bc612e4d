"""Snapshots of the log, made beside the registrar's work: updates do not wait for them.

What a snapshot is made of is taken between two steps and does not change any more. To join, to write and to
store it takes as long as dozens of steps, so it is done in another thread. It counts when the registrar has
noted it; one that dies before leaves a file that the next snapshot removes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import NamedTuple

from ps2stream.resident.entries import Entry
from ps2stream.resident.files import RoleFiles
from ps2stream.resident.registrar import Snapshot, SnapshotBasis


class Written(NamedTuple):
    """A snapshot that is in the store.

    ``log``: it stands for the log before this offset. ``files``: what the store had when it was begun; what
    has come since is none of its business.
    """

    key: str
    snapshot: Snapshot
    log: int
    files: list[str]

    @property
    def plans(self) -> list[str]:
        return plans_of(self.snapshot.entry)


class Snapshotting:
    """Write one snapshot at a time; without an executor (``beside``) whoever begins one waits for it."""

    def __init__(self, files: RoleFiles, beside: Executor | None) -> None:
        self._files, self._beside = files, beside
        self._writing: Future[Written] | None = None

    @property
    def is_busy(self) -> bool:
        return self._writing is not None

    def begin(self, basis: SnapshotBasis, log: int) -> None:
        """Begin to write a snapshot, which stands for the log before an offset."""
        files = self._files.keys()

        def write() -> Written:
            snapshot = basis.made()
            return Written(self._files.write_snapshot(snapshot.entry), snapshot, log, files)

        self._writing = self._beside.submit(write) if self._beside else _carried_out(write)

    def written(self) -> Written | None:
        """Return the snapshot that has been written since it was begun, once; raise what it failed of."""
        if self._writing is None or not self._writing.done():
            return None
        writing, self._writing = self._writing, None
        return writing.result()


def plans_of(snapshot: Entry) -> list[str]:
    """Return the keys of the plans that a snapshot names."""
    return [place.key for place in snapshot.routing.parts]


def _carried_out(write: Callable[[], Written]) -> Future[Written]:
    done: Future[Written] = Future()
    done.set_result(write())
    return done
