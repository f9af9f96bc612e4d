"""What runs a stream in the background: a loop of ours over a feed.

A feed knows where it ends and a ledger where a batch ends, so a thread that asks both is all that a stream
needs (``batches.py``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

#: How often somebody looks whether there is anything to do.
LOOK_EVERY_S = 0.01
#: A batch that is going on when a loop is stopped may end in time; what takes longer is cancelled.
_PATIENCE_S = 2.0
_CANCEL_EVERY_S = 0.5
#: Who waits for events that come often looks often; when none came for so long, not more often than this.
_CALM_AFTER_S = 1.0
_CALM_LOOK_S = 0.005


class Query(Protocol):
    """A stream that somebody has started; it ends by itself only where it fails."""

    @property
    def is_active(self) -> bool: ...

    @property
    def is_busy(self) -> bool:
        """Say whether a batch is being processed, or noted as done."""
        ...

    def failure(self) -> Exception | None:
        """Return what ended the stream; None while it runs, and where it was stopped."""
        ...

    def process_all_available(self) -> bool:
        """Return when all events that are there now are processed, and that is noted; False if it fails."""
        ...

    def stop(self) -> None:
        """End the stream; what it was doing is done again when it starts the next time."""
        ...


class Surroundings(Protocol):
    """What a loop works in: its thread, and how to end what a step has begun elsewhere."""

    def thread(self, run: Callable[[], None]) -> threading.Thread:
        """Make the thread of a loop."""
        ...

    def entered(self) -> None:
        """Take notice, in that thread, that the loop begins."""
        ...

    def cancel(self) -> None:
        """End, from another thread, what a step waits for; there may be nothing."""
        ...


class ThisProcess:
    """Steps that work here and wait for nobody."""

    def thread(self, run: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=run, name="batches", daemon=True)

    def entered(self) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing: a step ends by itself."""


class BatchLoop:
    """Take one step after the other in a thread, until stopped or until one fails.

    A step processes a batch, if there are events for one, and says whether there were. ``interval_s``: from
    the start of a batch to that of the next. ``look_every_s``: how long to wait where there were none.
    """

    def __init__(
        self,
        step: Callable[[], bool],
        interval_s: float = 0.0,
        look_every_s: float = LOOK_EVERY_S,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._step = step
        self._interval_s, self._look_every_s = interval_s, look_every_s
        self._surroundings = surroundings or ThisProcess()
        self._stopped = threading.Event()
        self._turn = threading.Condition()
        self._n_looks = 0  # begun so far
        self._n_idle_looks = 0  # the number of the last that found nothing to do
        self._is_busy = False
        self._failure: Exception | None = None
        self._thread = self._surroundings.thread(self._run)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    def failure(self) -> Exception | None:
        return None if self._stopped.is_set() else self._failure

    @property
    def has_ended_well(self) -> bool:
        """Say whether no step failed, as far as it went."""
        return self._failure is None

    def process_all_available(self) -> bool:
        with self._turn:
            # A look that has begun may not see what was added since.
            n_before = self._n_looks
            while self._n_idle_looks <= n_before:
                if not self._thread.is_alive():
                    return False
                self._turn.wait(1.0)
        return True

    def stop(self) -> None:
        self._stopped.set()
        if threading.current_thread() is self._thread:
            return  # a step that ends its own loop: it ends with the step
        self._thread.join(_PATIENCE_S)
        while self._thread.is_alive():
            # Again and again: a step that was in code of ours may have begun work elsewhere since. And who
            # returns before the thread has ended lets go of the state while somebody writes to it.
            self._surroundings.cancel()
            self._thread.join(_CANCEL_EVERY_S)

    def _run(self) -> None:
        try:
            self._surroundings.entered()
            next_s = quiet_since = 0.0
            while not self._stopped.wait(max(0.0, next_s - time.monotonic())):
                now = time.monotonic()
                if self._look():
                    next_s, quiet_since = now + self._interval_s, time.monotonic()
                else:
                    is_calm = now - quiet_since > _CALM_AFTER_S
                    next_s = time.monotonic() + max(self._look_every_s, _CALM_LOOK_S if is_calm else 0.0)
        except Exception as error:
            self._failure = error
        finally:
            with self._turn:
                self._turn.notify_all()

    def _look(self) -> bool:
        with self._turn:
            self._n_looks += 1
        self._is_busy = True
        try:
            has_worked = self._step()
        finally:
            self._is_busy = False
        if not has_worked:
            with self._turn:
                self._n_idle_looks = self._n_looks
                self._turn.notify_all()
        return has_worked
