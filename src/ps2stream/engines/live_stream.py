"""What somebody who watches a stream needs of it, whichever engine runs it."""

from __future__ import annotations

from typing import Protocol

from ps2stream.state.state import State


class LiveStream(Protocol):
    """A stream that runs; somebody has to ``check`` it now and then."""

    @property
    def n_subscriptions(self) -> int:
        """Return how many lived when the stream was started."""
        ...

    @property
    def n_starts_again(self) -> int:
        """Return how often the stream was started again after a process had died."""
        ...

    @property
    def state(self) -> State | None:
        """Return the state that the job has now; None while it has none."""
        ...

    @property
    def is_busy(self) -> bool:
        """Say whether a batch is being processed, or noted as done."""
        ...

    def check(self) -> None:
        """Raise what ended the stream, or must end it."""
        ...

    def process_all_available(self) -> None:
        """Return when all events that are there now are processed, and that is noted."""
        ...
