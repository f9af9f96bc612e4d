"""Replay an event log through the real-time engine, as fast as it goes.

Events keep their order: they are sent with their seqs, in packets that say how far they are complete, and
every publication is matched as of its seq. So what is delivered is what the oracle says, however roles run.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.engines.board_tally import tally_of
from ps2stream.engines.pouring import Pouring
from ps2stream.engines.replay import Replayed
from ps2stream.engines.spark.realtime import RealtimeOptions, realtime_stream
from ps2stream.engines.tally import Tally
from ps2stream.files import AnyPath
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import read_notes
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import split
from ps2stream.model.schemas import (
    AFTER_ALL_SEQS,
    PUBLICATIONS,
    REJECTED,
    UPDATES,
    empty,
)
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import log_sample, plan_of
from ps2stream.resident.notes import WorkerNote, note_from_bytes
from ps2stream.resident.reading import given_packet
from ps2stream.resident.wire import WORKER
from ps2stream.roles.packets import decode, fitting
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sources.event_log import EventLog

#: Behind all events of a log that is over.
THE_END = AFTER_ALL_SEQS - 2
_LOOK_S = 0.05


@contextmanager
def replay_topics(kafka: Kafka, settings: Settings) -> Iterator[Topics]:
    """Lend topics of a replay, which are gone afterwards."""
    topics = Topics(kafka, f"ps2stream-replay-{uuid.uuid4().hex[:12]}")
    try:
        yield topics
    finally:
        RoleTopics(topics, settings.n_workers).delete()
        topics.delete()


def replay_realtime(
    spark: SparkSession,
    events: EventLog,
    where: tuple[Topics, AnyPath, AnyPath],
    settings: Settings,
    on_progress: Callable[[Tally], None],
    plan: Plan | None = None,
) -> Replayed:
    """Process all events; ``where``: the topics, the place of the state, and that of the output."""
    topics, state, out = where
    topics.create(max(1, settings.n_dispatchers))
    options = RealtimeOptions(
        lambda: plan or plan_of(log_sample(events, settings), settings), has_given_order=True
    )
    sink = ParquetSink.at(out)
    with realtime_stream(spark, topics, state, settings, options) as stream:
        pouring = Pouring(events, sink, Packing(topics).send)
        started = time.monotonic()
        pouring.start()
        ends = Ends(topics.kafka)
        while not (pouring.is_done and _is_over(RoleTopics(topics, settings.n_workers), ends, settings)):
            stream.check()
            pouring.raise_failure()
            on_progress(tally_of(stream.board, settings))
            time.sleep(_LOOK_S)
        wall_s = time.monotonic() - started
        status = stream.task.state.mailbox.read_status()
        stream.wait_for_reports()
        tally = tally_of(stream.board, settings)
        tally.adjustments = stream.state.resident_adjustments.read()
    tally.n_matches, tally.n_rejected = _deliver(topics, sink)
    tally.n_rejected += pouring.n_rejected
    return Replayed(tally, wall_s, status)


class Packing:
    """Events of a log as records of topics, with how far they are complete."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._n_partitions = topics.n_partitions(topics.publications)
        self._n_packets = 0

    def send(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Send all events, and then that there are no more."""
        sender = Sender(self._topics.kafka)
        for events in batches:
            sender.send(self._packets(events))
        sender.send(self._the_end())

    def _packets(self, events: pa.RecordBatch) -> Iterator[Outgoing]:
        publications, updates = split(events)
        for part in fitting(updates):
            yield Outgoing(self._topics.updates, 0, given_packet(part, _last(part)))
        # Updates are complete up to the last event, whatever it is.
        yield Outgoing(self._topics.updates, 0, given_packet(empty(UPDATES), _last(events)))
        for part in fitting(publications):
            self._n_packets += 1
            partition = self._n_packets % self._n_partitions
            yield Outgoing(self._topics.publications, partition, given_packet(part, _last(part)))

    def _the_end(self) -> Iterator[Outgoing]:
        yield Outgoing(self._topics.updates, 0, given_packet(empty(UPDATES), THE_END))
        for partition in range(self._n_partitions):
            packet = given_packet(empty(PUBLICATIONS), THE_END)
            yield Outgoing(self._topics.publications, partition, packet)


def _last(events: pa.RecordBatch) -> int:
    return int(events.column("seq")[-1].as_py())


def _is_over(topics: RoleTopics, ends: Ends, settings: Settings) -> bool:
    """Say whether every worker has noted that nothing will come to it any more."""
    notes = read_notes(topics, ends, WORKER)
    horizons = [note_from_bytes(WorkerNote, note).horizons for note in notes.values()]
    return len(notes) == settings.n_workers and all(
        len(each) == settings.n_dispatchers and min(each.values()) > THE_END for each in horizons
    )


def _deliver(topics: Topics, sink: ParquetSink) -> tuple[int, int]:
    """Copy matches and rejected records to files; return how many there are."""
    ends, n_matches, n_rejected = Ends(topics.kafka), 0, 0
    n = topics.n_partitions(topics.matches)
    for partition, end in enumerate(ends.last(topics.matches, n)):
        for number, records in enumerate(read(topics.kafka, Span(topics.matches, partition, 0, end))):
            pieces = [decode(record.value or b"") for record in records]
            n_matches += sink.write_matches(number, partition, pieces)
    (end,) = ends.last(topics.rejected, 1)
    for number, records in enumerate(read(topics.kafka, Span(topics.rejected, 0, 0, end))):
        rows = [json.loads(record.value or b"") for record in records]
        sink.write_rejected(number, "000", pa.RecordBatch.from_pylist(rows, schema=REJECTED))
        n_rejected += len(rows)
    sink.finish()
    return n_matches, n_rejected
