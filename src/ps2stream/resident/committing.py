"""The commits of a role: at their pace, measured, and beside its work where there is some to do.

A role that dies while a commit goes on is one that dies amid a commit: whoever comes next finds out what
became of it. What the role has made meanwhile nobody has seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from ps2stream.metrics.recorder import Recorder
from ps2stream.resident.pace import Pace
from ps2stream.resident.wire import Send, Wire

#: What is done when a commit has ended, so many seconds ago, with records at some offsets.
Then = Callable[[float, Sequence[int]], None]


class _Begun(NamedTuple):
    started: float
    future: Future[list[int]]
    ended: list[float]
    then: Then


def _nothing(ago_s: float, offsets: Sequence[int]) -> None:
    """Do nothing when a commit has ended."""


class Commits:
    """Write what a role made of what it read; ``rest`` comes before each step."""

    def __init__(self, wire: Wire, recorder: Recorder, pace: Pace) -> None:
        self._wire, self._recorder, self._pace = wire, recorder, pace
        self._begun: _Begun | None = None

    def rest(self) -> None:
        """Return when the next commit may begin; where one goes on, that is what to wait for."""
        self.settle(only_if_ended=True)
        if self._begun is None:
            self._pace.rest()

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        """Commit records and a note (``Wire.commit``)."""
        self.begin(sends, note)
        return self.settle()

    def begin(
        self, sends: Sequence[Send], note: bytes, then: Then = _nothing, *, is_whole: bool = False
    ) -> None:
        """Begin to commit records and a note, when the commit before has ended; ``then``: once it is done."""
        self.settle()
        self._pace.rest()  # also where there was more to do meanwhile
        started, ended = time.monotonic(), list[float]()
        future = self._wire.begin_commit(sends, note, is_whole=is_whole)
        future.add_done_callback(lambda _: ended.append(time.monotonic()))
        self._begun = _Begun(started, future, ended, then)

    def settle(self, *, only_if_ended: bool = False) -> list[int]:
        """Wait for the commit that goes on, if there is one; return the offsets of its records."""
        if self._begun is None or (only_if_ended and not self._begun.future.done()):
            return []
        begun = self._begun
        offsets = begun.future.result()  # one that failed stays: what came after it is never committed
        self._begun = None
        # Whoever waits for the result may wake before the callbacks have run.
        now = time.monotonic()
        ended = begun.ended[0] if begun.ended else now
        took_s = ended - begun.started
        self._pace.committed(took_s, now - ended)
        self._recorder.observe("commit_seconds", took_s)
        self._recorder.count("batches")
        begun.then(now - ended, offsets)
        return offsets
