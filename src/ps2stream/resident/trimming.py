"""Let go, now and then, of what a role has read for good, and of its older notes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ps2stream.resident.wire import Place, Wire


class Trimming:
    """Trim a wire every few seconds."""

    def __init__(self, wire: Wire, every_s: float) -> None:
        self._wire = wire
        self._every_s = every_s
        self._due = time.monotonic() + every_s

    def when_due(self, ends: Mapping[Place, int]) -> None:
        """Let records before some offsets go, which the newest note has passed; older notes with them."""
        if time.monotonic() >= self._due:
            self._wire.trim(ends)
            self._due = time.monotonic() + self._every_s
