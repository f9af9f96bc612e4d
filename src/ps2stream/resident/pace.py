"""The pace of commits: a role rests after one, for a part of what that took.

A commit costs the broker some milliseconds of a core, whatever is in it, and roles that commit as fast as
they can keep it so busy that all of them wait. What comes meanwhile goes with the next one. Where nothing
comes a role does not rest longer: who comes first after a while is served at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Rest between commits: ``share`` of what the last one took, ``most_s`` at most."""

    def __init__(
        self,
        share: float = 0.25,
        most_s: float = 0.01,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._share, self._most_s = share, most_s
        self._clock, self._sleep = clock, sleep
        self._until = 0.0

    def committed(self, took_s: float, ago_s: float = 0.0) -> None:
        """Take notice of a commit that has ended some time ago."""
        self._until = self._clock() - ago_s + min(self._most_s, self._share * took_s)

    def rest(self) -> None:
        """Return when the next commit may begin."""
        ahead = self._until - self._clock()
        if ahead > 0:
            self._sleep(ahead)
