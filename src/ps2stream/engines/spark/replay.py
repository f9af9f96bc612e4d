"""Replay an event log through the micro-batch engine, as fast as it goes.

The log is poured into a journal of its own while the stream already reads from it: the path is the
one of a running system, from the durable journal to the sink.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.engines.replay import Replayed
from ps2stream.engines.spark.batch_tally import read_up_to, tally_batch
from ps2stream.engines.spark.job import BatchDone
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.engines.tally import Tally
from ps2stream.journal import Journal
from ps2stream.model.events import in_order
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import log_sample, plan_of
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sinks.sink import Sink
from ps2stream.sources.event_log import EventLog
from ps2stream.sources.source import n_events
from ps2stream.state.home_layout import HomeLayout
from ps2stream.state.state import State

_APPEND_EVENTS = 20_000


def replay_microbatch(
    spark: SparkSession,
    events: EventLog,
    scratch: Path,
    out: Path,
    settings: Settings,
    on_progress: Callable[[Tally], None],
    plan: Plan | None = None,
) -> Replayed:
    """Process all events as a stream; without a plan one is made from a sample of them.

    ``scratch``: an empty directory for the journal and the state, which nobody needs afterwards.
    """
    tally = Tally.of(settings.n_workers, settings.n_dispatchers)
    consumed = 0

    def on_batch(done: BatchDone) -> None:
        nonlocal consumed
        consumed = read_up_to(done)
        tally_batch(tally, done)
        tally.latencies.append((done.duration_s, sum(map(n_events, done.sources))))
        on_progress(tally)

    plan = plan or plan_of(log_sample(events, settings), settings)
    home = HomeLayout(scratch)
    state = State.at(home.state).create(plan, settings)
    Journal.open(home.journal, create=True).close()
    pouring = Pouring(events, home.journal, ParquetSink.at(out))
    started = time.monotonic()
    pouring.start()
    with journal_stream(spark, home.journal, home.state, out, settings, on_batch=on_batch) as stream:
        while not (pouring.is_done and consumed >= pouring.position):
            stream.check()
            pouring.raise_failure()
            time.sleep(0.02)
        wall_s = time.monotonic() - started
    tally.n_rejected += pouring.n_rejected
    return Replayed(tally, wall_s, state.mailbox.read_status())


class Pouring(threading.Thread):
    """Append an event log to a journal; what is out of order is rejected here, at the border."""

    def __init__(self, events: EventLog, journal: Path, sink: Sink) -> None:
        super().__init__(name="pouring", daemon=True)
        self._events, self._journal, self._sink = events, journal, sink
        self._failure: BaseException | None = None
        self.is_done = False
        self.position = 0
        self.n_rejected = 0

    def run(self) -> None:
        try:
            # The log itself is still there after a crash: the copy need not survive a power cut.
            with Journal.open(self._journal, durable=False) as journal:
                high_water = BEFORE_ALL_SEQS
                for number, batch in enumerate(self._events.batches(_APPEND_EVENTS)):
                    kept, rejected, high_water = in_order(batch, high_water)
                    self._sink.write_rejected(number, "order", rejected)
                    self.n_rejected += rejected.num_rows
                    if kept.num_rows:
                        self.position = journal.append_ordered(kept).position
            self.is_done = True
        except BaseException as error:
            self._failure = error

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
