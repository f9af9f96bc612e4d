"""Replay an event log through the micro-batch engine, as fast as it goes.

The log is poured into a journal of its own while the stream already reads from it: the path is the
one of a running system, from the durable journal to the sink.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.engines.batch_tally import read_up_to, tally_batch
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.held_state import state_at
from ps2stream.engines.pouring import Pouring
from ps2stream.engines.replay import Replayed
from ps2stream.engines.spark.session import is_local
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.engines.tally import Tally
from ps2stream.files import AnyPath
from ps2stream.journal import Journal
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import log_sample, plan_of
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sources.event_log import EventLog
from ps2stream.sources.source import n_events
from ps2stream.state.home_layout import HomeLayout
from ps2stream.store.contract import delete_all
from ps2stream.store.urls import is_url, store_at


class ReplayFiles(NamedTuple):
    """Where a replay works: nothing may be there yet, and nobody needs journal and state afterwards."""

    journal: Path
    state: AnyPath
    out: AnyPath

    @classmethod
    def below(cls, scratch: Path, out: AnyPath) -> ReplayFiles:
        """Return those of a replay on this machine."""
        home = HomeLayout(scratch)
        return cls(home.journal, home.state, out)


@contextlib.contextmanager
def shared_files(scratch: Path, store: str, out: AnyPath) -> Iterator[ReplayFiles]:
    """Lend the files of a replay on a cluster: its state, and its output if that is a local directory, are
    in a part of the store that is empty again afterwards; then the directory has the output.
    """
    part = f"replay-{uuid.uuid4().hex}"
    shared = store_at(store).under(part)
    base = f"{store.rstrip('/')}/{part}"
    there = out if is_url(out) else f"{base}/out"
    try:
        yield ReplayFiles(HomeLayout(scratch).journal, f"{base}/state", there)
        if not is_url(out):
            ParquetSink.at(there).copy_to(ParquetSink.at(out))
    finally:
        delete_all(shared)


def replay_microbatch(
    spark: SparkSession,
    events: EventLog,
    where: ReplayFiles,
    settings: Settings,
    on_progress: Callable[[Tally], None],
    plan: Plan | None = None,
) -> Replayed:
    """Process all events as a stream; without a plan one is made from a sample of them."""
    tally = Tally.of(settings.n_workers, settings.n_dispatchers)
    consumed = 0

    def on_batch(done: BatchDone) -> None:
        nonlocal consumed
        consumed = read_up_to(done)
        tally_batch(tally, done)
        tally.latencies.append((done.duration_s, sum(map(n_events, done.sources))))
        on_progress(tally)

    plan = plan or plan_of(log_sample(events, settings), settings)
    Journal.open(where.journal, create=True).close()
    appending = Appending(where.journal)
    pouring = Pouring(events, ParquetSink.at(where.out), appending.append)
    started = time.monotonic()
    pouring.start()
    with journal_stream(
        spark, where.journal, where.state, where.out, settings, plan=plan, on_batch=on_batch
    ) as stream:
        while not (pouring.is_done and consumed >= appending.position):
            stream.check()
            pouring.raise_failure()
            time.sleep(0.02)
        wall_s = time.monotonic() - started
    tally.n_rejected += pouring.n_rejected
    status = state_at(where.state, on_cluster=not is_local(spark.sparkContext)).newest().mailbox.read_status()
    return Replayed(tally, wall_s, status)


class Appending:
    """Append batches of events to a journal; ``position``: of the newest."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self.position = 0

    def append(self, batches: Iterator[pa.RecordBatch]) -> None:
        # The log itself is still there after a crash: the copy need not survive a power cut.
        with Journal.open(self._journal, durable=False) as journal:
            for events in batches:
                self.position = journal.append_ordered(events).position
