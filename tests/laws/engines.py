"""The engines behind one face: an event log and settings in, matches and rejected records out."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.model.events import in_order
from ps2stream.pipeline.inline import InlineEngine
from ps2stream.pipeline.inline import Outcome as InlineOutcome
from ps2stream.pipeline.planning import first_plan
from ps2stream.pipeline.spark.job import BatchDone
from ps2stream.pipeline.spark.stream import journal_stream
from ps2stream.testing.oracle import Match, Outcome, Rejection

#: Larger than any log of these tests: all events in one batch.
ALL_AT_ONCE = 100_000


class Engine(Protocol):
    """Run a whole event log; what comes back is sorted, with nothing removed."""

    name: str

    def run(self, events: pa.Table, settings: Settings, batch_events: int) -> Outcome: ...


class Inline:
    """All roles in this process."""

    name = "inline"

    def run(self, events: pa.Table, settings: Settings, batch_events: int) -> Outcome:
        outcomes = list(self.outcomes(events, settings, batch_events))
        return outcome_of(
            [batch for outcome in outcomes for batch in outcome.matches.to_pylist()],
            [batch for outcome in outcomes for batch in outcome.rejected.to_pylist()],
        )

    def outcomes(self, events: pa.Table, settings: Settings, batch_events: int) -> Iterator[InlineOutcome]:
        engine = InlineEngine(first_plan(one_batch(events), settings), settings)
        return iter(engine.run(batches_of(events, batch_events)))


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Structured Streaming on a journal, which takes only what is in order: as `replay`, we sort out the rest."""

    spark: SparkSession
    name: str = "microbatch"

    def run(self, events: pa.Table, settings: Settings, batch_events: int) -> Outcome:
        with tempfile.TemporaryDirectory() as scratch:
            place = Place(Path(scratch))
            late = place.publish(events, max(1, batch_events // 3))
            place.drain(self.spark, replace(settings, batch_events=batch_events))
            return place.outcome(late)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job on a journal lives: the journal, its state, its output."""

    directory: Path

    @property
    def journal(self) -> Path:
        return self.directory / "journal"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def out(self) -> Path:
        return self.directory / "out"

    def publish(self, events: pa.Table, packet_events: int) -> list[Rejection]:
        """Append a log in packets of up to twice ``packet_events``; return what is out of order."""
        kept, late, _ = in_order(one_batch(events), None)
        sizes = random.Random(events.num_rows)
        with Journal.open(self.journal, create=True, durable=False) as journal:
            start = 0
            while start < kept.num_rows:
                size = sizes.randint(1, 2 * packet_events)
                journal.append_ordered(kept.slice(start, size))
                start += size
        return rejections_of(late.to_pylist())

    def drain(
        self, spark: SparkSession, settings: Settings, on_batch: Callable[[BatchDone], None] = lambda done: None
    ) -> list[BatchDone]:
        """Run the job until it has read all of the journal; return what its batches came to."""
        batches: list[BatchDone] = []

        def take(done: BatchDone) -> None:
            batches.append(done)
            on_batch(done)

        with journal_stream(spark, self.journal, self.state, self.out, settings, on_batch=take) as query:
            query.processAllAvailable()
        return batches

    def outcome(self, late: list[Rejection]) -> Outcome:
        """Read the sink."""
        found = outcome_of(
            pq.read_table(self.out / "matches").to_pylist(), pq.read_table(self.out / "rejected").to_pylist()
        )
        return Outcome(found.matches, sorted(found.rejected + late, key=_order))


def one_batch(events: pa.Table) -> pa.RecordBatch:
    batches = events.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=events.schema)


def batches_of(events: pa.Table, size: int) -> list[pa.RecordBatch]:
    whole = one_batch(events)
    return [whole.slice(start, size) for start in range(0, whole.num_rows, size)]


def outcome_of(matches: list[dict[str, object]], rejected: list[dict[str, object]]) -> Outcome:
    found = [Match(**row) for row in matches]  # type: ignore[arg-type]
    return Outcome(sorted(found), rejections_of(rejected))


def rejections_of(rows: list[dict[str, object]]) -> list[Rejection]:
    found = [Rejection(row["seq"], row["op"], row["id"]) for row in rows]  # type: ignore[arg-type]
    return sorted(found, key=_order)


def sorted_outcome(outcome: Outcome) -> Outcome:
    """Sort what the oracle says as engines' outcomes are sorted."""
    return Outcome(sorted(outcome.matches), sorted(outcome.rejected, key=_order))


def _order(rejection: Rejection) -> tuple[tuple[bool, object], ...]:
    return tuple((field is not None, field) for field in rejection)
