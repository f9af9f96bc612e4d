"""The engines behind one face: an event log and settings in, matches and rejected records out."""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ps2stream.adjusting.controller import Controller
from ps2stream.config import Settings
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.embedded import embedded_stream
from ps2stream.engines.inline import InlineEngine
from ps2stream.engines.live_stream import LiveStream
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.engines.stream_start import StreamOptions
from ps2stream.journal import Journal
from ps2stream.model.events import in_order
from ps2stream.model.matches import Match
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.planning.first_plan import first_plan
from ps2stream.roles.reports import DispatcherReport, WorkerReport
from ps2stream.state.home_layout import HomeLayout
from ps2stream.testing.oracle import Deliveries, Rejection

#: Larger than any log of these tests: all events in one batch.
ALL_AT_ONCE = 100_000


class Work(NamedTuple):
    """What a run cost; ``n_found`` counts what workers report, before the merger sees it."""

    n_publications: int
    n_discarded: int
    n_candidates: int
    n_found: int


class Run(NamedTuple):
    """What came out of an engine, sorted, with nothing removed."""

    outcome: Deliveries
    work: Work


class Engine(Protocol):
    def run(self, events: pa.Table, settings: Settings, batch_events: int) -> Run:
        """Run a whole event log."""
        ...


@dataclass(frozen=True, slots=True)
class Inline:
    """All roles in this process; ``controller`` adjusts the load, or what the settings ask for."""

    controller: Controller | None = None

    def run(self, events: pa.Table, settings: Settings, batch_events: int) -> Run:
        engine = InlineEngine(first_plan(one_batch(events), settings), settings, self.controller)
        done = [engine.process(batch) for batch in batches_of(events, batch_events)]
        outcome = outcome_of(
            [row for batch in done for row in batch.matches.to_pylist()],
            [row for batch in done for row in batch.rejected.to_pylist()],
        )
        work = Work(
            engine.tally.n_publications,
            engine.tally.n_discarded,
            sum(worker.n_candidates for worker in engine.tally.workers),
            sum(worker.n_matches for worker in engine.tally.workers),
        )
        return Run(outcome, work)


@dataclass(frozen=True, slots=True)
class OnJournal:
    """A durable job on a journal: on Spark, or without a session in this process.

    A journal takes only what is in order; the rest is rejected before it, as `replay` does.
    """

    spark: SparkSession | None
    controller: Controller | None = None

    def run(self, events: pa.Table, settings: Settings, batch_events: int) -> Run:
        with tempfile.TemporaryDirectory() as scratch:
            job_home = JobHome(Path(scratch))
            late = job_home.publish(events, max(1, batch_events // 3))
            chosen = replace(settings, batch_events=batch_events)
            done = job_home.drain(self.spark, chosen, controller=self.controller)
            return Run(job_home.outcome(late), _work(done))


def _work(done: list[BatchDone]) -> Work:
    reports = [report for batch in done for report in batch.reports]
    dispatchers = [report for report in reports if isinstance(report, DispatcherReport)]
    workers = [report for report in reports if isinstance(report, WorkerReport)]
    return Work(
        sum(report.n_publications for report in dispatchers),
        sum(report.n_discarded for report in dispatchers),
        sum(report.n_candidates for report in workers),
        sum(report.n_matches for report in workers),
    )


@dataclass(frozen=True, slots=True)
class JobHome(HomeLayout):
    """Where a job on a journal lives, and what tests let it do."""

    def publish(self, events: pa.Table, packet_events: int) -> list[Rejection]:
        """Append what the journal lacks of a log, in packets of up to twice ``packet_events``.

        Return all that is out of order in the log.
        """
        kept, late, _ = in_order(one_batch(events), BEFORE_ALL_SEQS)
        sizes = random.Random(events.num_rows)
        with Journal.open(self.journal, create=True, durable=False) as journal:
            start = int(np.searchsorted(kept.column("seq").to_numpy(), journal.last().seq, side="right"))
            while start < kept.num_rows:
                size = sizes.randint(1, 2 * packet_events)
                journal.append_ordered(kept.slice(start, size))
                start += size
        return rejections_of(late.to_pylist())

    def drain(self, spark: SparkSession | None, settings: Settings, **options: Any) -> list[BatchDone]:
        """Run the job until it has read all of the journal; return what its batches came to."""
        batches: list[BatchDone] = []
        with self.stream(spark, settings, on_batch=batches.append, **options) as query:
            query.process_all_available()
        return batches

    def run_briefly(
        self, spark: SparkSession | None, settings: Settings, n_batches: int, **options: Any
    ) -> None:
        """Run the job for some batches and stop it amid the next."""
        enough = threading.Semaphore(0)
        with self.stream(spark, settings, on_batch=lambda done: enough.release(), **options) as query:
            for _ in range(n_batches):
                while not enough.acquire(timeout=0.1):
                    query.check()

    def stream(
        self, spark: SparkSession | None, settings: Settings, **options: Any
    ) -> contextlib.AbstractContextManager[LiveStream]:
        """Run the job on Spark, or without a session in this process."""
        if spark is None:
            on_batch = options.pop("on_batch")
            chosen = StreamOptions(**options)
            return embedded_stream(
                self.journal, self.state, self.out, settings, on_batch=on_batch, options=chosen
            )
        return journal_stream(spark, self.journal, self.state, self.out, settings, **options)

    def outcome(self, late: list[Rejection]) -> Deliveries:
        """Read the sink."""
        found = outcome_of(pq.read_table(self.out / "matches").to_pylist(), self.rejected_rows())
        return Deliveries(found.matches, sorted(found.rejected + late, key=_order))

    def rejected_rows(self) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = pq.read_table(self.out / "rejected").to_pylist()
        return rows


def one_batch(events: pa.Table) -> pa.RecordBatch:
    batches = events.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=events.schema)


def batches_of(events: pa.Table, size: int) -> list[pa.RecordBatch]:
    whole = one_batch(events)
    return [whole.slice(start, size) for start in range(0, whole.num_rows, size)]


def outcome_of(matches: list[dict[str, object]], rejected: list[dict[str, object]]) -> Deliveries:
    found = [Match(**row) for row in matches]  # type: ignore[arg-type]
    return Deliveries(sorted(found), rejections_of(rejected))


def rejections_of(rows: list[dict[str, object]]) -> list[Rejection]:
    found = [Rejection(row["seq"], row["op"], row["id"]) for row in rows]  # type: ignore[arg-type]
    return sorted(found, key=_order)


def sorted_outcome(outcome: Deliveries) -> Deliveries:
    """Sort what the oracle says as engines' outcomes are sorted."""
    return Deliveries(sorted(outcome.matches), sorted(outcome.rejected, key=_order))


def _order(rejection: Rejection) -> tuple[tuple[bool, object], ...]:
    return tuple((field is not None, field) for field in rejection)
