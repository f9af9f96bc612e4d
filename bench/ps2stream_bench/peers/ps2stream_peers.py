"""PS2Stream by the contract of peers: all roles in one process, or the whole stream on Spark."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.batch_tally import read_up_to, tally_batch
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.inline import InlineEngine
from ps2stream.engines.kernel_warmup import warm
from ps2stream.engines.spark.running_stream import RunningStream
from ps2stream.engines.spark.session import warm_up
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.engines.tally import Tally
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import first_plan
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.home_layout import HomeLayout
from ps2stream_bench.peers.contract import PAIRS, Restful

_LOAD_AT_ONCE = 100_000
_PACKET_EVENTS = 20_000
_POLL_S = 0.002


class PS2StreamInline(Restful):
    """The inline engine: one core, nothing written to disk."""

    name = "PS2Stream inline"

    def __init__(self, settings: Settings, sample: pa.Table | None = None) -> None:
        """Make ready; plans are made from the subscriptions and a ``sample`` of publish events."""
        self._settings = settings
        self._sample = sample
        self._engine: InlineEngine | None = None
        warm()

    def load(self, subscriptions: pa.Table) -> None:
        self._engine = InlineEngine(_plan(subscriptions, self._sample, self._settings), self._settings)
        for batch in _batches(subscriptions, _LOAD_AT_ONCE):
            self._process(batch)

    def match(self, publications: pa.Table) -> pa.Table:
        found = [self._process(batch) for batch in _batches(publications, self._settings.batch_events)]
        return pa.concat_tables([PAIRS.empty_table(), *(each.select(PAIRS.names) for each in found)])

    def index_bytes(self) -> int | None:
        if self._engine is None:
            return None
        return sum(worker.index.counts().n_bytes for worker in self._engine.workers)

    def close(self) -> None:
        self._engine = None

    def _process(self, events: pa.RecordBatch) -> pa.Table:
        assert self._engine is not None
        outcome = self._engine.process(events)
        _check_accepted(outcome.rejected.num_rows)
        return outcome.matches


class PS2StreamMicrobatch:
    """The micro-batch engine as it is run: from a journal, through a Spark stream, to Parquet files."""

    name = "PS2Stream microbatch"

    def __init__(self, spark: SparkSession, settings: Settings, sample: pa.Table | None = None) -> None:
        """Make ready; plans are made from the subscriptions and a ``sample`` of publish events."""
        self._spark, self._settings, self._sample = spark, settings, sample
        self._tally = Tally.of(settings.n_workers, settings.n_dispatchers)
        self._position, self._batch_id = 0, -1
        self._resources = contextlib.ExitStack()
        scratch = tempfile.TemporaryDirectory(prefix="ps2stream-peer-")
        self._home = HomeLayout(Path(self._resources.enter_context(scratch)))
        self._plan: Plan | None = None
        self._stream = contextlib.ExitStack()
        self._query: RunningStream | None = None
        warm()
        warm_up(spark)

    def load(self, subscriptions: pa.Table) -> None:
        self._plan = _plan(subscriptions, self._sample, self._settings)
        Journal.open(self._home.journal, create=True).close()
        self.wake()
        self._drain(subscriptions)

    def wake(self) -> None:
        if self._query is None and self._plan is not None:
            stream = journal_stream(
                self._spark,
                self._home.journal,
                self._home.state,
                self._home.out,
                self._settings,
                plan=self._plan,
                on_batch=self._note,
            )
            self._query = self._stream.enter_context(stream)

    def rest(self) -> None:
        # A stream that has nothing to do asks its source for more all the time.
        self._stream.close()
        self._query = None

    def match(self, publications: pa.Table) -> pa.Table:
        before = self._batch_id
        self._drain(publications)
        written = ParquetSink.at(self._home.out).matches
        batches = tuple(f"batch-{number:012}-" for number in range(before + 1, self._batch_id + 1))
        files = [pa.BufferReader(written.get(key)) for key in written.list() if key.startswith(batches)]
        return pa.concat_tables(
            [PAIRS.empty_table(), *(pq.read_table(f, columns=PAIRS.names) for f in files)]
        )

    def index_bytes(self) -> int | None:
        return sum(worker.n_bytes for worker in self._tally.workers)

    def close(self) -> None:
        self.rest()
        self._resources.close()

    def _drain(self, events: pa.Table) -> None:
        """Append events to the journal, and wait until the stream has delivered what comes of them."""
        assert self._query is not None
        appended = self._position
        # As in a replay: the events are still there after a crash, the copy need not survive a power cut.
        with Journal.open(self._home.journal, durable=False) as journal:
            for batch in _batches(events, _PACKET_EVENTS):
                appended = journal.append_ordered(batch).position
        while self._position < appended:
            self._query.check()
            time.sleep(_POLL_S)
        _check_accepted(self._tally.n_rejected)

    def _note(self, done: BatchDone) -> None:
        tally_batch(self._tally, done)
        self._batch_id = done.batch_id
        # Last, for it is what the other thread waits for.
        self._position = read_up_to(done)


def settings_of(stop_words: Iterable[str] = (), n_workers: int = 2) -> Settings:
    """Return the settings to compare by: as many dispatchers as workers, and no adjustment."""
    off = AdjustmentSettings(scope="off")
    return Settings(
        n_workers=n_workers, n_dispatchers=n_workers, stop_words=tuple(stop_words), adjustment=off
    )


def _plan(subscriptions: pa.Table, sample: pa.Table | None, settings: Settings) -> Plan:
    tables = [subscriptions] if sample is None else [subscriptions, sample]
    events = pa.concat_tables(tables).combine_chunks().to_batches()
    whole = replace(settings, sample_prefix_events=max(1, sum(table.num_rows for table in tables)))
    return first_plan(events[0] if events else empty(EVENTS), whole)


def _batches(events: pa.Table, size: int) -> Iterable[pa.RecordBatch]:
    for start in range(0, events.num_rows, size):
        yield from events.slice(start, size).combine_chunks().to_batches()


def _check_accepted(n_rejected: int) -> None:
    if n_rejected:
        raise ValueError(f"all events must be valid, and seqs must rise; {n_rejected:,} were rejected")
