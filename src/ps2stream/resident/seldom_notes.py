"""Notes kept back: what a role makes is written at once, and now and then a note how far it has read.

What it wrote after its last note is there when it dies, and the note does not say so. The successor of a
dispatcher finds out what that was (``handover.py``). A worker that delivers at least once writes it again:
nothing is lost, something may come twice.

The note is still written in one piece and by one writer, so a role that was replaced learns it with its next
note; until then it may write (``routed.py`` says how workers tell its packets). What must be *whole* is
written in one piece with its note, as without this.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from ps2stream.errors import PS2StreamError
from ps2stream.resident.wire import Place, Received, Send, Topic, Wire, carried_out

NOTE_EVERY_S = 0.2


class SeldomNotes:
    """A wire that keeps notes back for some time, but for the first; all else the wire below it does."""

    def __init__(
        self, wire: Wire, every_s: float = NOTE_EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wire, self._every_s, self._clock = wire, every_s, clock
        self._note: bytes | None = None
        self._noted_at = -math.inf

    def notes(self, kind: str) -> dict[int, bytes]:
        return self._wire.notes(kind)

    def n_partitions(self, topic: Topic) -> int:
        return self._wire.n_partitions(topic)

    def ends(self, topic: Topic) -> list[int]:
        return self._wire.ends(topic)

    def begins(self, topic: Topic) -> list[int]:
        return self._wire.begins(topic)

    def read(self, place: Place, start: int) -> list[Received]:
        return self._wire.read(place, start)

    def follow(self, starts: Mapping[Place, int]) -> None:
        self._wire.follow(starts)

    def follow_also(self, starts: Mapping[Place, int]) -> None:
        self._wire.follow_also(starts)

    def poll(self, timeout_s: float) -> list[Received]:
        self._note_when_due()
        return self._wire.poll(timeout_s)

    def send(self, sends: Sequence[Send]) -> list[int]:
        return self._wire.send(sends)

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        offsets = self._wire.send(sends)
        self._note = note
        self._note_when_due()
        return offsets

    def begin_commit(
        self, sends: Sequence[Send], note: bytes, *, is_whole: bool = False
    ) -> Future[list[int]]:
        if not is_whole:
            return carried_out(self.commit, sends, note)  # there is next to nothing to wait for
        self._note, self._noted_at = None, self._clock()  # the one that was kept back is overtaken
        return self._wire.begin_commit(sends, note)

    @property
    def is_noted(self) -> bool:
        return self._note is None

    def trim(self, ends: Mapping[Place, int]) -> None:
        self._note_now()  # what is trimmed nobody can read again
        self._wire.trim(ends)

    def close(self) -> None:
        with contextlib.suppress(PS2StreamError):  # who has taken over begins where this one noted last
            self._note_now()
        self._wire.close()

    def _note_when_due(self) -> None:
        if self._note is not None and self._clock() - self._noted_at >= self._every_s:
            self._note_now()

    def _note_now(self) -> None:
        if self._note is not None:
            self._wire.commit([], self._note)
            self._note, self._noted_at = None, self._clock()
