"""The roles as Spark runs them: iterators of record batches, each in some Python process.

Which process serves which worker changes from batch to batch; whatever a role needs is mapped or
opened from the state directory, where it costs about a millisecond.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from ps2stream.config import Settings
from ps2stream.pipeline.dispatcher import Dispatched, Dispatcher
from ps2stream.pipeline.merger import Merger
from ps2stream.pipeline.packets import (
    COMPILED,
    FOUND,
    LOADS,
    MATCHES,
    PUBLICATIONS,
    REJECTED,
    REPORT,
    SAMPLE,
    WORKER,
    decode,
    encode,
    packet_rows,
)
from ps2stream.pipeline.references import REFERENCES, Reference, spool
from ps2stream.pipeline.registrar import compile_updates, concat
from ps2stream.pipeline.reports import DispatcherReport, MergerReport, WorkerReport, to_json
from ps2stream.pipeline.sink import Sink
from ps2stream.pipeline.state import State

#: A dispatcher gathers small packets up to this many publications before it routes them.
_ROUTE_AT_ONCE = 20_000

_is_frozen = False


@dataclass(frozen=True, slots=True)
class BatchContext:
    """All that the tasks of one batch have to know."""

    batch_id: int
    state: Path
    sink: Path
    settings: Settings
    registry: str
    routing: tuple[tuple[int, str], ...]  # plan and index of each version, newest first
    switch_seq: int
    horizon: int
    references: tuple[Reference, ...]
    reports_cells: bool = False
    n_mergers: int = 1

    def part(self, number: int) -> tuple[Reference, ...]:
        """Return the references that dispatcher ``number`` reads."""
        return self.references[number :: self.settings.n_dispatchers]


@dataclass(frozen=True, slots=True)
class Spool:
    """Turn the events of a partition into a reference."""

    directory: Path
    high_water: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reference = spool(batches, self.directory / f"part-{_task().taskAttemptId()}", self.high_water)
        yield pa.RecordBatch.from_pylist([reference._asdict()], schema=REFERENCES)


@dataclass(frozen=True, slots=True)
class CompileUpdates:
    """Parse the updates of a batch; where there are many, this is the expensive part of them."""

    context: BatchContext

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tokenizer = self.context.settings.tokenizer()
        for number in _numbers(batches):
            for reference in self.context.part(number):
                for updates in reference.updates():
                    compiled, rejected = compile_updates(updates, tokenizer)
                    yield packet_rows([(0, COMPILED, encode(compiled)), (0, REJECTED, encode(rejected))])
        _freeze_once()


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Read publications where they lie, route them, send packets."""

    context: BatchContext

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = self.context
        state = State(context.state)
        versions = [state.open_grid_t(state.plan(plan), name) for plan, name in context.routing]
        dispatcher = Dispatcher(versions, context.settings.tokenizer())
        for number in _numbers(batches):
            started = time.process_time()
            n_publications = n_discarded = n_rejected = n_sent = 0
            for publications, turned_down in _gathered(context.part(number)):
                done = dispatcher.dispatch(publications)
                rejected = concat([turned_down, done.rejected])
                n_publications += done.n_publications
                n_discarded += done.n_discarded
                n_rejected += rejected.num_rows
                n_sent += sum(packet.num_rows for packet in done.packets.values())
                yield _sent(done, rejected, context.reports_cells)
            busy_s = time.process_time() - started
            report = DispatcherReport(number, n_publications, n_discarded, n_rejected, n_sent, busy_s)
            yield packet_rows([(number % context.settings.n_workers, REPORT, to_json(report).encode())])
        _freeze_once()


def _sent(done: Dispatched, rejected: pa.RecordBatch, with_sample: bool) -> pa.RecordBatch:
    rows = [(worker, PUBLICATIONS, encode(packet)) for worker, packet in done.packets.items()]
    # What is not for workers passes through one of them on its way to the merger.
    if rejected.num_rows:
        rows.append((0, REJECTED, encode(rejected)))
    if with_sample:
        rows.append((0, SAMPLE, encode(done.sampled)))
    return packet_rows(rows)


def _gathered(references: tuple[Reference, ...]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Join small packets, so that routing and sending cost as much for many of them as for one."""
    publications, rejected, n = [], [], 0
    for reference in references:
        for part in reference.publications():
            publications.append(part.publications)
            rejected.append(part.rejected)
            n += part.publications.num_rows
            if n >= _ROUTE_AT_ONCE:
                yield concat(publications), concat(rejected)
                publications, rejected, n = [], [], 0
    if publications:
        yield concat(publications), concat(rejected)


@dataclass(frozen=True, slots=True)
class Work:
    """Bring a worker's index up to date and match the packets sent to it."""

    context: BatchContext

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = self.context
        worker_id = _task().partitionId()
        state = State(context.state)
        settings = context.settings.index_settings(state.plan(context.routing[0][0]))
        merger = worker_id % context.n_mergers
        started = time.process_time()
        with state.worker(worker_id, settings, context.batch_id, context.horizon) as worker:
            update_s, ready_at = time.process_time() - started, time.time()
            before = worker.index.counts()
            counters = worker.cell_counters() if context.reports_cells else {}
            for kind, payload in _packets(batches):
                if kind == PUBLICATIONS:
                    found = worker.match(decode(payload), context.horizon, context.switch_seq)
                    if found.num_rows:
                        yield packet_rows([(merger, MATCHES, encode(found))])
                else:
                    yield packet_rows([(merger, kind, payload.to_pybytes())])
            after = worker.index.counts()
            if context.reports_cells:
                loads = worker.cell_loads(counters).replace_schema_metadata({WORKER: str(worker_id)})
                yield packet_rows([(merger, LOADS, encode(loads))])
        report = WorkerReport(
            worker_id,
            after.n_publications - before.n_publications,
            worker.n_updates,
            after.n_candidates - before.n_candidates,
            after.n_matches - before.n_matches,
            after.n_subscriptions,
            after.n_bytes,
            time.process_time() - started,
            update_s,
            ready_at,
        )
        yield packet_rows([(merger, REPORT, to_json(report).encode())])
        _freeze_once()


@dataclass(frozen=True, slots=True)
class Merge:
    """Write the deliveries of a batch to the sink and hand the reports on to the driver."""

    context: BatchContext

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = self.context
        number = _task().partitionId()
        started = time.process_time()
        found, rejected, reports = [], [], []  # reports are for the driver
        for kind, payload in _packets(batches):
            if kind == MATCHES:
                found.append(decode(payload))
            elif kind == REJECTED:
                rejected.append(decode(payload))
            else:
                reports.append((0, kind, payload.to_pybytes()))
        sink = Sink(context.sink)
        registry = State(context.state).open_registry(context.registry)
        matches = Merger(registry).merge(found) if found else FOUND.empty_table()
        if found:
            sink.write_matches(context.batch_id, number, matches)
        if rejected:
            sink.write_rejected(context.batch_id, f"{number:03}", concat(rejected))
        n_rejected = sum(batch.num_rows for batch in rejected)
        report = MergerReport(number, matches.num_rows, n_rejected, time.process_time() - started)
        reports.append((0, REPORT, to_json(report).encode()))
        yield packet_rows(reports)
        _freeze_once()


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None
    return task


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Yield the dispatcher numbers that this task was given."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _packets(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Buffer]]:
    for batch in batches:
        payloads = batch.column("payload")
        for row, kind in enumerate(batch.column("kind").to_pylist()):
            yield kind, payloads[row].as_buffer()


def _freeze_once() -> None:
    """Spare later tasks of this process the collector's walk over PySpark's own modules."""
    global _is_frozen
    if not _is_frozen:
        gc.freeze()
        _is_frozen = True
