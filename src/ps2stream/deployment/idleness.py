"""Has the job of a deployment processed all events that there are?"""

from __future__ import annotations

import time

from ps2stream.deployment.deployment_events import DeploymentEvents
from ps2stream.deployment.home import Home, newest_state

#: How often a store is asked how far the job is.
_REMOTE_POLL_S = 1.0


class Idleness:
    """Look, not too often, how far events go and how far the job is."""

    def __init__(self, home: Home, events: DeploymentEvents) -> None:
        self._home, self._events = home, events
        self._every_s = 0.0 if home.store is None else _REMOTE_POLL_S
        self._next = time.monotonic()

    def is_idle(self) -> bool:
        """Say whether nothing is left to do, as far as somebody has just looked."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self._every_s
        last_seq = self._events.last_seq()
        return last_seq is None or newest_state(self._home.state).ledger.last_seq() >= last_seq
