"""Does the job of a deployment run? As far as somebody can say who is not the job.

On one host it holds a lock, and the answer is sure. Where its state is in a store it renews a lease, and says
when by its own clock: the answer is as good as clocks agree. Nothing but what people are told depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

from ps2stream.deployment.home import Home
from ps2stream.state.lease import last_sign
from ps2stream.state.state import State


class JobLife(NamedTuple):
    """Whether a job seems to run; with a lease, how many seconds ago it was renewed, if that is known."""

    is_running: bool
    has_lease: bool = False
    lease_age_s: float | None = None


def job_life(home: Home, state: State) -> JobLife:
    """Look whether a job holds the state of a home now."""
    if home.store is None:
        return JobLife(state.host.lock.is_held())
    sign = last_sign(state.store)
    if sign is None:
        return JobLife(is_running=False, has_lease=True)
    return JobLife(sign.seems_alive, has_lease=True, lease_age_s=sign.age_s)
