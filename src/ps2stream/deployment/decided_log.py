"""What the job of a deployment has decided: its subscription log, wherever the engine keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from ps2stream.deployment.home import Home
from ps2stream.partitioning.plan import Plan
from ps2stream.routing.routing import Routing
from ps2stream.state.job_file import BATCHES
from ps2stream.state.state import State


class DecidedLog(Protocol):
    """A log of segments, complete up to some seq."""

    def base(self) -> int:
        """Return what changes when a snapshot replaces a part of it."""
        ...

    def last_seq(self) -> int:
        """Return a seq up to which all is decided; the log that is read afterwards holds at least as much."""
        ...

    def read(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield numbered segments in order."""
        ...

    def plans(self) -> Routing[Plan] | None:
        """Return the plans that the stream is routed by now; None before the first start of a job."""
        ...


class BatchLog:
    """The log of an engine that processes batches, in its state."""

    def __init__(self, state: State) -> None:
        self._state = state

    def base(self) -> int:
        return self._state.log.base()

    def last_seq(self) -> int:
        return self._state.ledger.last_seq()

    def read(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        return self._state.log.read()

    def plans(self) -> Routing[Plan] | None:
        return self._state.routing().map(self._state.plans.get) if self._state.job_file.exists() else None


def decided_log(home: Home, state: State) -> DecidedLog:
    """Return the log of a deployment as it is in a state, and in its topics."""
    if home.topics is None or not state.job_file.exists() or state.job_file.engine == BATCHES:
        return BatchLog(state)
    from ps2stream.deployment.roles_log import RolesLog

    return RolesLog(home.topics, state)
