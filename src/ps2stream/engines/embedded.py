"""The embedded engine: the whole stream of a journal in this process, without Spark.

State, sink and durability are those of the micro-batch engine: the same job (``durable_job.py``), whose roles
this process carries out by itself (``local_tasks.py``). Either engine may go on where the other was stopped
or killed. A batch is what has come, however little: while one is processed the next gathers, so batches are
small where events are few and grow with the load.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from ps2stream.config import Settings
from ps2stream.engines.background import background_thread
from ps2stream.engines.batch_loop import BatchLoop
from ps2stream.engines.durable_job import BatchDone, DurableJob
from ps2stream.engines.held_state import HeldState, held_state
from ps2stream.engines.kernel_warmup import warm
from ps2stream.engines.local_tasks import LocalTasks
from ps2stream.engines.stream_start import OnBatch, StreamOptions, StreamStart
from ps2stream.errors import EngineError, PS2StreamError, StateError
from ps2stream.files import AnyPath, absolute
from ps2stream.journal import Journal
from ps2stream.planning.first_plan import journal_sample
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sources.journal_feed import JournalFeed
from ps2stream.state.state import State

_POLL_S = 0.05
#: Where there was nothing: how long to wait before looking again.
_LOOK_EVERY_S = 0.001
_USUAL = StreamOptions()


def _ignore(done: BatchDone) -> None:
    """Take notice of nothing."""


@contextlib.contextmanager
def embedded_stream(
    journal: AnyPath,
    state: AnyPath,
    out: AnyPath,
    settings: Settings,
    *,
    on_batch: OnBatch = _ignore,
    options: StreamOptions = _USUAL,
) -> Iterator[EmbeddedStream]:
    """Run the stream of a journal in this process while the context lasts; it goes on where it was stopped.

    The first start takes the plan of the options, or makes one from what the journal holds by then; later
    ones go on with it. ``state`` and ``out`` are directories of this host or URLs of a store.
    """
    journal = absolute(journal)
    # One dispatcher: they would take turns, and cutting a batch has its price.
    settings = replace(settings, n_dispatchers=1)
    with (
        Journal.open(journal) as opened,
        held_state(state) as held,
        background_thread("replanning") as background,
        background_thread("snapshots") as beside,
    ):
        feed = JournalFeed(opened, journal, stays_here=True)
        start = StreamStart(
            held,
            feed,
            ParquetSink.at(out),
            settings,
            options,
            lambda: journal_sample(journal, settings),
            background,
            beside,
        )
        warm()
        batches = start.batches(LocalTasks(settings), on_batch, is_lazy=True)
        loop = BatchLoop(batches.process_next, options.interval_s, _LOOK_EVERY_S)
        stream = EmbeddedStream(batches.job, loop, held)
        gc.freeze()  # all that is loaded stays: the collector need not walk over it again and again
        try:
            yield stream
        finally:
            stream.stop()
            gc.unfreeze()


class EmbeddedStream:
    """A stream that runs; somebody has to ``check`` it now and then, or ``wait``."""

    def __init__(self, job: DurableJob, loop: BatchLoop, held: HeldState) -> None:
        self._job, self._loop, self._held = job, loop, held
        #: Those that lived when the stream was started.
        self.n_subscriptions = job.n_subscriptions
        #: It is not started again: what fails here would fail again.
        self.n_starts_again = 0

    @property
    def state(self) -> State:
        return self._job.state

    def check(self) -> None:
        """Raise what ended the stream, or must end it."""
        self._held.check()
        if self._loop.is_active:
            return
        failure = self._loop.failure()
        if failure is None:
            raise StateError("the stream was stopped")
        _raise(failure)

    def wait(self) -> None:
        """Run until the stream ends; that is, until this raises why it did."""
        while True:
            self.check()
            time.sleep(_POLL_S)

    def process_all_available(self) -> None:
        """Return when all events that are there now are processed, and that is noted."""
        while not self._loop.process_all_available():
            self.check()

    @property
    def is_busy(self) -> bool:
        """Say whether a batch is being processed, or noted as done."""
        return self._loop.is_busy

    def stop(self) -> None:
        """End the stream after the batch that it is at."""
        self._loop.stop()
        if self._loop.has_ended_well:
            self._job.notes.settle()
        self._job.tell_status()
        self._job.sink.finish()
        if self._loop.has_ended_well:  # else that is what somebody has to know
            try:
                self._job.snapshots.finish()
            except Exception as error:
                _raise(error)


def _raise(failure: Exception) -> NoReturn:
    """Raise what ended a stream; what is no error of ours as one."""
    if isinstance(failure, PS2StreamError | OSError):
        raise failure
    raise EngineError(f"the stream failed: {type(failure).__name__}: {failure}") from failure
