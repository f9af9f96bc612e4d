"""The micro-batch engine: the whole stream on Structured Streaming.

    events --> references --> [compile] --> registrar (driver) --> log, H2
                    |                                               |
                    +--> dispatch ==repartitionById==> work ==> merge --> sink

Updates of a batch are decided on before its publications are routed, between two jobs of the
same batch; everything a crash could lose in between is written before it is used.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ps2stream.config import Settings
from ps2stream.model.events import nothing_rejected
from ps2stream.model.schemas import empty
from ps2stream.pipeline.packets import PACKETS, REJECTED, decode
from ps2stream.pipeline.references import REFERENCES, Reference, prune
from ps2stream.pipeline.registrar import COMPILED, compile_updates, concat
from ps2stream.pipeline.reports import Report, from_json
from ps2stream.pipeline.sink import Sink
from ps2stream.pipeline.spark.stages import BatchContext, CompileUpdates, Dispatch, Merge, Spool, Work
from ps2stream.pipeline.state import State

#: Up to this many updates the driver parses by itself; a Spark job would take longer to start.
_COMPILE_HERE = 5_000

#: How many updates the subscription log may gather before a snapshot takes its place.
SNAPSHOT_EVERY = 100_000


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What a batch came to, for those who watch."""

    batch_id: int
    references: tuple[Reference, ...]
    reports: tuple[Report, ...]
    n_updates: int
    n_rejected_updates: int
    n_subscriptions: int
    registrar_busy_s: float
    duration_s: float


@dataclass(slots=True)
class MicroBatchJob:
    """Process batches of references on a session; one job at a time on a state."""

    spark: SparkSession
    state: State
    settings: Settings
    sink: Path
    on_batch: Callable[[BatchDone], None] = lambda done: None
    snapshot_every: int = SNAPSHOT_EVERY
    prune_journal: bool = False
    prune_every: int = 100_000
    _updates_since_snapshot: int = 0
    _events_since_pruning: int = 0
    _consumed: tuple[Reference, ...] = ()
    _applied: int = field(default=-1)
    _registrar: Any = None

    def start(self) -> None:
        """Rebuild what the log says; call once, before the first batch."""
        Sink(self.sink).claim(self.state.job_id)
        self._applied = self.state.log.last()
        since_snapshot = self.state.log.read(after=self.state.log.base())
        self._updates_since_snapshot = sum(segment.num_rows for _, segment in since_snapshot)
        self._registrar = self.state.restore_registrar(self.state.plan(), self._applied)

    def process(self, batch: DataFrame, batch_id: int) -> None:
        """Run one micro-batch of references (the function that foreachBatch wants)."""
        started = time.monotonic()
        rows = batch.toArrow().to_pylist()
        references = tuple(Reference(**row) for row in rows)
        if not references:
            return
        horizon = self.state.last_seq(batch_id - 1)
        self._snapshot_when_due(batch_id - 1)
        self._prune_when_due()
        registrar_started = time.process_time()
        n_rejected = self._update(batch_id, references, horizon)
        registrar_busy_s = time.process_time() - registrar_started
        context = self._context(batch_id, references, horizon)
        reports = tuple(from_json(text) for text in self._match(context))
        self.state.record_progress(batch_id, max(horizon, *(reference.last_seq for reference in references)))
        n_updates = sum(reference.n_updates for reference in references)
        self._updates_since_snapshot += n_updates
        self._events_since_pruning += n_updates + sum(reference.n_publications for reference in references)
        self._consumed = references
        done = BatchDone(
            batch_id,
            references,
            reports,
            n_updates,
            n_rejected,
            self._registrar.registry.n_live,
            registrar_busy_s,
            time.monotonic() - started,
        )
        self.on_batch(done)

    def process_events(self, batch: DataFrame, batch_id: int) -> None:
        """Run one micro-batch of events of any origin: spool them on this host, then as above."""
        directory = self.state.directory / "spool" / f"{batch_id:012}"
        shutil.rmtree(directory, ignore_errors=True)
        spool = Spool(directory, self.state.last_seq(batch_id - 1))
        references = batch.mapInArrow(spool, from_arrow_schema(REFERENCES))
        self.process(references, batch_id)
        shutil.rmtree(directory, ignore_errors=True)

    def _update(self, batch_id: int, references: tuple[Reference, ...], horizon: int) -> int:
        """Decide on the updates of a batch, unless a run before a crash did; return the rejected ones."""
        if batch_id <= self._applied:
            return 0
        self._compact(horizon)
        compiled, malformed = self._compile(batch_id, references, horizon)
        decided = self._registrar.decide(compiled)
        rejected = concat([*malformed, decided.rejected])
        # First the rejected records, then the log: once the log has the batch, this part is never redone.
        Sink(self.sink).write_rejected(batch_id, "updates", rejected)
        if decided.segment.num_rows:
            self.state.log.append(batch_id, decided.segment)
        self._applied = batch_id
        n_rejected: int = rejected.num_rows
        return n_rejected

    def _compact(self, horizon: int) -> None:
        before = self._registrar.registry_name
        self._registrar.compact(horizon)
        if self._registrar.registry_name != before:  # no task of an earlier batch reads it any more
            self.state.drop_registry(before)

    def _compile(
        self, batch_id: int, references: tuple[Reference, ...], horizon: int
    ) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
        if sum(reference.n_updates for reference in references) <= _COMPILE_HERE:
            tokenizer = self.settings.tokenizer()
            parts = [
                compile_updates(batch, tokenizer) for reference in references for batch in reference.updates()
            ]
        else:
            compile_stage = CompileUpdates(self._context(batch_id, references, horizon))
            packets = self._dispatchers().mapInArrow(compile_stage, _PACKET_ROWS).toArrow()
            return _parted(packets)
        compiled = [empty(COMPILED), *(part for part, _ in parts)]
        return concat(compiled), [rejected for _, rejected in parts]

    def _match(self, context: BatchContext) -> list[str]:
        packets = self._dispatchers().mapInArrow(Dispatch(context), _PACKET_ROWS)
        found = packets.repartitionById(self.settings.n_workers, "destination").mapInArrow(
            Work(context), _PACKET_ROWS
        )
        merged = found.repartitionById(context.n_mergers, "destination").mapInArrow(
            Merge(context), _PACKET_ROWS
        )
        return [payload.decode() for payload in merged.toArrow().column("payload").to_pylist()]

    def _dispatchers(self) -> DataFrame:
        """One row, and so one task, a dispatcher."""
        n = self.settings.n_dispatchers
        return self.spark.range(0, n, 1, n)

    def _context(self, batch_id: int, references: tuple[Reference, ...], horizon: int) -> BatchContext:
        return BatchContext(
            batch_id,
            self.state.directory,
            self.sink,
            self.settings,
            self._registrar.registry_name,
            horizon,
            references,
        )

    def _snapshot_when_due(self, batch_id: int) -> None:
        """Let a snapshot stand for the log up to a batch, which Spark has committed.

        The batch that comes after it is the earliest that can ever run again, so what ended up to
        here is not needed any more. Taken one batch earlier, a replay would miss what ended in it. For
        the same reason none is taken while a batch runs again whose updates are already applied.
        """
        n_due = max(self.snapshot_every, self._registrar.registry.n_live // 2)
        if self._updates_since_snapshot > n_due and self._applied <= batch_id:
            self.state.snapshot(batch_id, self._registrar.registry.live_seqs())
            self._updates_since_snapshot = 0

    def _prune_when_due(self) -> None:
        """Drop what the batch before has read from the journal, now that Spark has committed it.

        Nothing needs it any more: the log holds the subscriptions, the sink the matches.
        """
        if self.prune_journal and self._events_since_pruning > self.prune_every:
            prune(self._consumed)
            self._events_since_pruning = 0


def _parted(packets: pa.Table) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
    """Part compiled from rejected updates."""
    compiled, rejected = [empty(COMPILED)], [nothing_rejected()]
    for batch in packets.to_batches():
        for kind, payload in zip(batch.column("kind").to_pylist(), batch.column("payload"), strict=True):
            (rejected if kind == REJECTED else compiled).append(decode(payload.as_buffer()))
    return concat(compiled), rejected


_PACKET_ROWS = from_arrow_schema(PACKETS)
