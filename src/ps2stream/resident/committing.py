"""The commits of a role: at their pace, and measured."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ps2stream.metrics.recorder import Recorder
from ps2stream.resident.pace import Pace
from ps2stream.resident.wire import Send, Wire


class Commits:
    """Write what a role made of what it read; ``rest`` comes before each step."""

    def __init__(self, wire: Wire, recorder: Recorder, pace: Pace) -> None:
        self._wire, self._recorder, self._pace = wire, recorder, pace

    def rest(self) -> None:
        """Return when the next commit may begin."""
        self._pace.rest()

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        """Commit records and a note (``Wire.commit``)."""
        started = time.monotonic()
        offsets = self._wire.commit(sends, note)
        took_s = time.monotonic() - started
        self._pace.committed(took_s)
        self._recorder.observe("commit_seconds", took_s)
        self._recorder.count("batches")
        return offsets
