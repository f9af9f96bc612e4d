"""What runs a stream in the background: a loop of ours over a journal, or a query of Structured Streaming.

A journal knows where it ends and a ledger where a batch ends, so a thread that asks both is all that a
stream of a journal needs. Structured Streaming did the same at first, by a source in Python and a checkpoint.
It took seconds more to the first batch (a process to describe the source, another to read it, the planner's
first plan), wrote files that were not synced, and ended with the process that read the source
(docs/performance.md). For a DataFrame of a user's own it is what knows which events come next.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

#: How often somebody looks whether there is anything to do.
LOOK_EVERY_S = 0.01
#: A batch that is going on when a loop is stopped may end in time; what takes longer is cancelled.
_PATIENCE_S = 2.0
_CANCEL_EVERY_S = 0.5


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


class BatchLoop:
    """Take one step after the other in a thread, until stopped or until one fails.

    A step processes a batch, if there are events for one, and says whether there were. ``interval_s``: from
    the start of a batch to that of the next. ``look_every_s``: how long to wait where there were none.
    """

    def __init__(
        self,
        context: SparkContext,
        step: Callable[[], bool],
        interval_s: float = 0.0,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._context, self._step = context, step
        self._interval_s, self._look_every_s = interval_s, look_every_s
        self._job_group = f"ps2stream-{uuid.uuid4().hex}"
        self._stopped = threading.Event()
        self._turn = threading.Condition()
        self._n_looks = 0  # begun so far
        self._n_idle_looks = 0  # the number of the last that found nothing to do
        self._is_busy = False
        self._failure: Exception | None = None
        # One that has properties of Spark of its own, and lets go of them when it ends.
        self._thread = InheritableThread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    def failure(self) -> Exception | None:
        return None if self._stopped.is_set() else self._failure

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
            # Again and again: a step that was in code of ours may have begun a job of Spark since. And who
            # returns before the thread has ended lets go of the state while somebody writes to it.
            with contextlib.suppress(Py4JError, OSError):  # a JVM that has gone runs no job
                self._context.cancelJobGroup(self._job_group)
            self._thread.join(_CANCEL_EVERY_S)

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._job_group, "batches of a journal", interruptOnCancel=True)
            next_s = 0.0
            while not self._stopped.wait(max(0.0, next_s - time.monotonic())):
                next_s = time.monotonic() + (self._interval_s if self._look() else self._look_every_s)
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


class StructuredQuery:
    """A query of Structured Streaming."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    @property
    def is_active(self) -> bool:
        return bool(self._query.isActive)

    @property
    def is_busy(self) -> bool:
        return bool(self._query.status["isTriggerActive"])

    def failure(self) -> Exception | None:
        return self._query.exception()

    def process_all_available(self) -> bool:
        try:
            self._query.processAllAvailable()
        except PySparkException:
            return False
        return True

    def stop(self) -> None:
        self._query.stop()
