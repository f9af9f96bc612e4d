"""A running stream: it goes on by itself when a process of Spark dies, and says so.

Spark replaces a Python process that runs tasks, but not for ever, and one that reads a source of Structured
Streaming not at all: its death, or a start that takes longer than the ten seconds that Spark waits, on a busy
machine too, ends the query. The stream is then started again as after a crash, from the log and the ledger or
Spark's checkpoint: nothing is lost or doubled. Errors of ours (a damaged state, a full disk) would only come
again, so they end it.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from ps2stream.engines.batch_loop import Query
from ps2stream.engines.durable_job import BatchDone, DurableJob
from ps2stream.engines.spark.failures import death_of, failure_line, report_of
from ps2stream.engines.spark.jvm import jvm_ended
from ps2stream.engines.stream_start import OnBatch
from ps2stream.errors import EngineError, PS2StreamError, StateError
from ps2stream.state.state import State

_LOG = logging.getLogger(__name__)

#: How often it is started again while no batch gets done.
MOST_RESTARTS = 5
#: Doubled each time: a machine that is out of memory needs a while.
FIRST_PAUSE_S = 1.0
_POLL_S = 0.05

Started = tuple[DurableJob, Query]
#: Restore a job from its state and start its query; the job tells its batches to the function given.
Start = Callable[[OnBatch], Started]


def _nobody_else() -> None:
    """Let a stream be ours for good."""


@contextlib.contextmanager
def running(
    start: Start, on_batch: OnBatch, check_holder: Callable[[], None] = _nobody_else
) -> Iterator[RunningStream]:
    """Run a stream while the context lasts; ``check_holder`` raises once its state is another driver's."""
    stream = RunningStream(start, on_batch, check_holder=check_holder)
    try:
        stream.start()  # inside: an interrupt may come when the query runs already
        yield stream
    finally:
        stream.stop()


class RunningStream:
    """Own the query of a stream; somebody has to ``check`` it now and then, or ``wait``."""

    def __init__(
        self,
        start: Start,
        on_batch: OnBatch,
        first_pause_s: float = FIRST_PAUSE_S,
        check_holder: Callable[[], None] = _nobody_else,
    ) -> None:
        self._start = start
        self._on_batch = on_batch
        self._check_holder = check_holder
        self._first_pause_s = first_pause_s
        self._job: DurableJob | None = None
        self._query: Query | None = None
        self._n_restarts = 0
        self._due = 0.0
        #: Those that lived when the stream was started.
        self.n_subscriptions = 0
        #: How often the stream was started again, in all.
        self.n_starts_again = 0

    def start(self) -> None:
        """Start the query; return when it is started."""
        self._begin()
        while self._query is None:
            self.check()
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Go on after the death of a process of Spark; raise what else ended the stream, or must end it."""
        self._check_holder()
        with _jvm_needed():
            if self._query is None:
                if time.monotonic() >= self._due:
                    self._begin()
            elif not self._query.is_active:
                failure = self._query.failure()
                if failure is None:
                    raise StateError("the stream was stopped")
                self._failed(failure)

    def wait(self) -> None:
        """Run until the stream ends; that is, until this raises why it did."""
        while True:
            self.check()
            time.sleep(_POLL_S)

    def process_all_available(self) -> None:
        """Return when all events that are there now are processed, and that is noted."""
        while True:
            self.check()
            with _jvm_needed():
                if self._query is not None and self._query.process_all_available():
                    return
            time.sleep(_POLL_S)  # the next check says why

    @property
    def is_busy(self) -> bool:
        """Say whether a batch is being processed, or noted as done."""
        with _jvm_needed():
            return self._query is None or self._query.is_busy

    def stop(self) -> None:
        """End the query; what it was doing is done again when the stream starts the next time."""
        with contextlib.suppress(EngineError), _jvm_needed():
            if self._query is not None:
                self._query.stop()
        if self._job is not None:
            self._job.tell_status()
            self._job.sink.finish()

    @property
    def state(self) -> State | None:
        """Return the state as the newest start of the stream has it; None before the first."""
        return None if self._job is None else self._job.state

    def _begin(self) -> None:
        try:
            self._job, self._query = self._start(self._done)
            self.n_subscriptions = self._job.n_subscriptions
        except (PySparkException, Py4JJavaError) as failure:
            self._failed(failure)

    def _done(self, done: BatchDone) -> None:
        self._n_restarts = 0  # it got on: what happened before does not count any more
        self._on_batch(done)

    def _failed(self, failure: Exception) -> None:
        """Make up our mind about a failure: start again some time later, or give up."""
        self._query = None
        if isinstance(failure, PS2StreamError | OSError) or _is_silence(failure):
            raise failure
        report = report_of(failure)
        death = death_of(report)
        if not death:
            raise EngineError(failure_line(report)) from failure
        if self._n_restarts == MOST_RESTARTS:
            raise EngineError(
                f"{death}; started again {MOST_RESTARTS} times, the stream did not get on"
            ) from failure
        pause_s = self._first_pause_s * 2**self._n_restarts
        self._n_restarts += 1
        self.n_starts_again += 1
        self._due = time.monotonic() + pause_s
        _LOG.warning("%s; starting the stream again in %g s", death, pause_s)


def _is_silence(failure: Exception) -> bool:
    """Say whether the JVM did not answer, where it would have told of an error of its own."""
    return isinstance(failure, Py4JError) and not isinstance(failure, Py4JJavaError)


@contextlib.contextmanager
def _jvm_needed() -> Iterator[None]:
    """Say in our words that the JVM has gone."""
    try:
        yield
    except (Py4JError, OSError) as error:
        if ended := jvm_ended():
            raise EngineError(ended) from error
        raise
