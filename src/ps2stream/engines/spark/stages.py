"""The roles as Spark runs them, each in some Python process.

A role takes the number of its partition and the packets that were sent there. Which process serves which
worker changes from batch to batch; whatever a role needs is mapped or opened from the state directory, where
it costs about a millisecond.
"""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from ps2stream.arrow import concat
from ps2stream.engines.batch_tasks import BatchContext, gathered
from ps2stream.engines.spark.pinned_shuffle import Sent
from ps2stream.model.schemas import MATCHES
from ps2stream.roles.dispatcher import Dispatched, Dispatcher
from ps2stream.roles.merger import Merger
from ps2stream.roles.packets import WORKER, Packet, PacketKind, decode, encode
from ps2stream.roles.reports import DispatcherReport, MergerReport, Report, report_to_json
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.roles.worker_host import Standing
from ps2stream.sources.spool import SPOOLS, spool, spool_without_seq
from ps2stream.store.contract import Store
from ps2stream.store.traffic import Traffic, traffic_so_far
from ps2stream.text.tokenizer import Tokenizer

#: Spools as rows of a DataFrame, each with what its task asked of the store.
SPOOLED = pa.schema([*SPOOLS, *((field.name, pa.int64()) for field in fields(Traffic))])

_is_frozen = False


@dataclass(frozen=True, slots=True)
class SpoolEvents:
    """Turn the events of a partition into a source that all later steps can read.

    ``high_water``: the last seq of the batches before; None where events come without a seq.
    """

    store: Store
    high_water: int | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        # A name of its own for every attempt, of this driver or of another: a task that Spark gave up on may
        # still write, and what it writes must not get among what counts, which is the part in the row.
        part, before = f"part-{uuid.uuid4().hex}", traffic_so_far()
        store = self.store.under(part)
        if self.high_water is None:
            spooled = spool_without_seq(batches, store)
        else:
            spooled = spool(batches, store, self.high_water)
        (row,) = spooled.row(task.partitionId(), part).to_pylist()
        traffic = asdict(traffic_so_far() - before)
        yield pa.RecordBatch.from_pylist([{**row, **traffic}], schema=SPOOLED)


def spooling_traffic(rows: list[dict[str, Any]]) -> tuple[Traffic, ...]:
    """Return what the tasks behind rows of SPOOLED asked of the store."""
    return tuple(Traffic(**{field.name: row[field.name] for field in fields(Traffic)}) for row in rows)


@dataclass(frozen=True, slots=True)
class ReadMatches:
    """Read matches of a sink, a file for each key."""

    store: Store

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for key in batch.column("key").to_pylist():
                yield from pq.read_table(pa.BufferReader(self.store.get(key)), schema=MATCHES).to_batches()


@dataclass(frozen=True, slots=True)
class CompileUpdates:
    """Parse the updates of a batch; where there are many, this is the expensive part of them."""

    context: BatchContext

    def __call__(self, number: int, nothing: Iterable[object]) -> Iterator[Packet]:
        _exhaust(nothing)
        before = traffic_so_far()
        tokenizer = _tokenizer(self.context.settings.stop_words)
        for source in self.context.part(number):
            for updates, unread in source.updates():
                compiled, malformed = compile_updates(updates, tokenizer)
                yield Packet(PacketKind.COMPILED, encode(compiled))
                for rejected in (unread, malformed):
                    if rejected.num_rows:
                        yield Packet(PacketKind.REJECTED_RECORDS, encode(rejected))
        yield _packet_of(traffic_so_far() - before)
        _freeze_once()


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Read publications where they lie, route them, send packets."""

    context: BatchContext

    def __call__(self, number: int, nothing: Iterable[object]) -> Iterator[Sent]:
        _exhaust(nothing)
        context, before = self.context, traffic_so_far()
        started = time.process_time()
        dispatcher = Dispatcher(context.grid_ts(), _tokenizer(context.settings.stop_words))
        n_publications = n_discarded = n_rejected = n_sent = 0
        for publications, rejected_before in gathered(context.part(number)):
            done = dispatcher.dispatch(publications)
            rejected = concat([rejected_before, done.rejected])
            n_publications += done.n_publications
            n_discarded += done.n_discarded
            n_rejected += rejected.num_rows
            n_sent += sum(packet.num_rows for packet in done.packets.values())
            yield from _sent(done, rejected, context.reports_cells)
        busy_s = time.process_time() - started
        report = DispatcherReport(number, n_publications, n_discarded, n_rejected, n_sent, busy_s)
        for each in (report, traffic_so_far() - before):
            yield number % context.settings.n_workers, _packet_of(each)
        _freeze_once()


def _sent(done: Dispatched, rejected: pa.RecordBatch, with_sample: bool) -> Iterator[Sent]:
    for worker, packet in done.packets.items():
        yield worker, Packet(PacketKind.ROUTED_PUBLICATIONS, encode(packet))
    # What is not for workers passes through one of them on its way to the merger or to the driver.
    if rejected.num_rows:
        yield 0, Packet(PacketKind.REJECTED_RECORDS, encode(rejected))
    if with_sample:
        yield 0, Packet(PacketKind.SAMPLE, encode(done.sampled))


@dataclass(frozen=True, slots=True)
class WorkAndMerge:
    """Match what was sent to a worker, then deliver what it found.

    Worker and merger share a task. A match is found by one worker only (docs/architecture.md), so mergers
    that each serve one worker deliver what a single one would: the same matches, each once, in files that
    are each in order. A stage of its own for the merger meant a second shuffle, of all matches.
    """

    context: BatchContext

    def __call__(self, number: int, sent: Iterable[Sent]) -> Iterator[Packet]:
        inbox, before = Inbox([], [], []), traffic_so_far()
        for _, packet in sent:
            inbox.add(packet)
        found = yield from self._work(number, inbox.publications)
        yield self._merge(number, found, inbox.rejected)
        yield from inbox.for_driver
        yield _packet_of(traffic_so_far() - before)
        _freeze_once()

    def _work(
        self, number: int, publications: Iterable[bytes]
    ) -> Generator[Packet, None, list[pa.RecordBatch]]:
        """Bring the worker's index up to date and match with it; return what was found."""
        context = self.context
        state = context.state.here()
        settings = context.settings.index_settings(state.plans.get(context.routing.newest[0]))
        standing = Standing(context.batch_id, settings, context.horizon, context.routing.switch_seq)
        host = state.worker_host(number, standing)
        served = host.match(map(decode, publications), with_loads=context.reports_cells)
        state.drop_old_blobs()
        if context.reports_cells:
            loads = served.loads.replace_schema_metadata({WORKER: str(number)})
            yield Packet(PacketKind.LOADS, encode(loads))
        yield _packet_of(served.report)
        return served.found

    def _merge(self, number: int, found: list[pa.RecordBatch], rejected: list[pa.RecordBatch]) -> Packet:
        """Write deliveries and rejected records to the sink."""
        context = self.context
        started = time.process_time()
        context.state.check_newest(context.batch_id)
        n_matches = n_rejected = 0
        if any(batch.num_rows for batch in found):
            pieces = Merger(context.open_registry()).pieces(found)
            n_matches = context.sink.write_matches(context.batch_id, number, pieces)
        if rejected:
            n_rejected = sum(batch.num_rows for batch in rejected)
            context.sink.write_rejected(context.batch_id, f"{number:03}", concat(rejected))
        return _packet_of(MergerReport(number, n_matches, n_rejected, time.process_time() - started))


class Inbox(NamedTuple):
    """What was sent to a task, by what is to be done with it."""

    publications: list[bytes]
    rejected: list[pa.RecordBatch]
    for_driver: list[Packet]

    def add(self, packet: Packet) -> None:
        if packet.kind == PacketKind.ROUTED_PUBLICATIONS:
            self.publications.append(packet.payload)
        elif packet.kind == PacketKind.REJECTED_RECORDS:
            self.rejected.append(decode(packet.payload))
        elif packet.kind != PacketKind.ANCHOR:
            self.for_driver.append(packet)


@cache
def _tokenizer(stop_words: tuple[str, ...]) -> Tokenizer:
    """Return the tokenizer of this process: hashing a hundred stop words takes longer than a small packet."""
    return Tokenizer(stop_words)


def _exhaust(nothing: Iterable[object]) -> None:
    """Read an empty input to its end: a process that left some of it would not be used again."""
    for each in nothing:
        raise AssertionError(f"no input was expected; got {each!r}")


def _packet_of(report: Report) -> Packet:
    return Packet(PacketKind.REPORT, report_to_json(report).encode())


def _freeze_once() -> None:
    """Spare later tasks of this process the collector's walk over PySpark's own modules."""
    global _is_frozen
    if not _is_frozen:
        gc.freeze()
        _is_frozen = True
