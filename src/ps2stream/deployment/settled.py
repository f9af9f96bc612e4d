"""Read a deployment while its job writes, until nothing came in between that makes two parts disagree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ps2stream.deployment.deployment_events import DeploymentEvents
from ps2stream.deployment.home import Home, newest_state
from ps2stream.errors import PS2StreamError
from ps2stream.state.state import State

Result = TypeVar("Result")


def settled(home: Home, events: DeploymentEvents | None, read: Callable[[State], Result]) -> Result:
    """Read the state, and events if need be, again until nothing was replaced or dropped meanwhile.

    That is: no other driver took over, and no snapshot and no pruning came in between. A failure counts only
    if nothing did.
    """
    before, state = _mark(home, events)
    while True:
        failure: PS2StreamError | None = None
        try:
            result = read(state)
        except PS2StreamError as error:
            failure = error
        after, state = _mark(home, events)
        if after == before:
            if failure is not None:
                raise failure
            return result
        before = after


def _mark(home: Home, events: DeploymentEvents | None) -> tuple[tuple[int, int, int], State]:
    """Return what changes when something is replaced or dropped, and the state as it is now."""
    state = newest_state(home.state)
    return (state.epoch, state.log.base(), 0 if events is None else events.pruned()), state
