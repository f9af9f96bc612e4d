"""Let go, now and then, of what a role has read for good, and of its older notes."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from ps2stream.resident.wire import Place, Wire

#: A broker that trims a partition keeps it from its writers for some tenths of a second; and it looks only
#: every five minutes, unless told otherwise, whether there are files that nobody needs any more.
TRIM_S = 120.0


class Trimming:
    """Trim a wire now and then; the first time by chance, so that roles do not do it all at once."""

    def __init__(self, wire: Wire, every_s: float) -> None:
        self._wire = wire
        self._every_s = every_s
        self._due = time.monotonic() + random.uniform(0.5, 1.0) * every_s

    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def trim(self, ends: Mapping[Place, int]) -> None:
        """Let records before some offsets go, which the newest note has passed; older notes with them."""
        self._wire.trim(ends)
        self._due = time.monotonic() + self._every_s

    def when_due(self, ends: Mapping[Place, int]) -> None:
        """Do so if it is time."""
        if self.is_due():
            self.trim(ends)
