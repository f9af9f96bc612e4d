"""What runs a stream on Spark in the background: a loop of ours, or a query of Structured Streaming.

Structured Streaming ran the stream of a journal, too, at first, by a source in Python and a checkpoint.
It took seconds more to the first batch (a process to describe the source, another to read it, the planner's
first plan), wrote files that were not synced, and ended with the process that read the source
(docs/performance.md). For a DataFrame of a user's own it is what knows which events come next.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from ps2stream.engines.batch_loop import LOOK_EVERY_S, BatchLoop


def spark_loop(
    context: SparkContext,
    step: Callable[[], bool],
    interval_s: float = 0.0,
    look_every_s: float = LOOK_EVERY_S,
) -> BatchLoop:
    """Run steps that are jobs of Spark; one that does not end in time is cancelled when the loop stops."""
    return BatchLoop(step, interval_s, look_every_s, JobGroup(context))


class JobGroup:
    """The jobs of Spark that the steps of one loop begin."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._name = f"ps2stream-{uuid.uuid4().hex}"

    def thread(self, run: Callable[[], None]) -> threading.Thread:
        # One that has properties of Spark of its own, and lets go of them when it ends.
        return InheritableThread(target=run, name="batches", daemon=True)

    def entered(self) -> None:
        self._context.setJobGroup(self._name, "batches of a journal", interruptOnCancel=True)

    def cancel(self) -> None:
        with contextlib.suppress(Py4JError, OSError):  # a JVM that has gone runs no job
            self._context.cancelJobGroup(self._name)


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
