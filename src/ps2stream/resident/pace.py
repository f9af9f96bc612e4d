"""The pace of commits: a role rests after one, for a part of what that took.

A commit costs the broker some milliseconds of a core, whatever is in it, and roles that commit as fast as
they can keep it so busy that all of them wait. What comes meanwhile goes with the next one. Where nothing
comes a role does not rest longer: who comes first after a while is served at once.

A transaction is over for its role some milliseconds before partitions have the markers of its end. The next
one of the same role is turned away until then, and librdkafka asks again after 20 ms: a role that begins at
once waits for many of its transactions four times as long as one that rests for ``MARKERS_S`` before.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Until partitions have the markers of a transaction, as a rule.
MARKERS_S = 0.006


class Pace:
    """Rest between commits: ``share`` of what the last one took, from ``least_s`` to ``most_s``."""

    def __init__(
        self,
        share: float = 0.25,
        most_s: float = 0.01,
        least_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._share, self._most_s, self._least_s = share, most_s, least_s
        self._clock, self._sleep = clock, sleep
        self._until = 0.0

    def committed(self, took_s: float) -> None:
        """Take notice of a commit that has just ended."""
        self._until = self._clock() + max(self._least_s, min(self._most_s, self._share * took_s))

    def rest(self) -> None:
        """Return when the next commit may begin."""
        ahead = self._until - self._clock()
        if ahead > 0:
            self._sleep(ahead)
