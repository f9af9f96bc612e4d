"""The micro-batch engine: the tasks of a batch are a job of Spark.

    dispatch ==shuffle==> work, merge --> sink

The jobs of a batch are RDDs: their elements are packets, and planning them costs nothing, where a DataFrame
of the same steps was analysed and planned anew for every batch. What a batch is, from its range of events to
the end of it, is in ``engines/durable_job.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ps2stream.arrow import concat
from ps2stream.config import Settings
from ps2stream.engines.batch_tasks import BatchContext, Compiled, Heard
from ps2stream.engines.durable_job import DurableJob
from ps2stream.engines.spark.dataframes import has_seq
from ps2stream.engines.spark.pinned_shuffle import PinnedShuffle
from ps2stream.engines.spark.slots import wait_for_slots
from ps2stream.engines.spark.stages import (
    SPOOLED,
    CompileUpdates,
    Dispatch,
    SpoolEvents,
    WorkAndMerge,
    spooling_traffic,
)
from ps2stream.model.events import nothing_rejected
from ps2stream.model.schemas import empty
from ps2stream.roles.packets import WORKER, Packet, PacketKind, decode
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.reports import Report, report_from_json
from ps2stream.roles.update_compiler import COMPILED_UPDATES
from ps2stream.roles.worker_host import Standing, WorkerHost
from ps2stream.sinks.sink import Sink
from ps2stream.sources.spool import Spool, in_arrival_order
from ps2stream.state.state import State
from ps2stream.store.traffic import Traffic


@dataclass(slots=True)
class SparkTasks:
    """The roles as tasks of a session: a job of Spark for each batch."""

    spark: SparkSession
    settings: Settings
    _dispatchers: RDD[object] = field(init=False)
    _pinned: PinnedShuffle | None = None

    @property
    def loads_every_s(self) -> float:
        return 0.0  # a task that serves a worker knows nothing of the tasks before it

    def start(self, state: State, registrar: Registrar) -> None:
        # Nothing but partitions: a task, one for each dispatcher, needs its number only.
        self._dispatchers = self.spark.sparkContext.parallelize([], self.settings.n_dispatchers)
        if state.on_many_hosts:
            wait_for_slots(self.spark.sparkContext, self.settings.n_workers)
            self._pinned = PinnedShuffle(self.spark.sparkContext, self.settings.n_workers)

    def hosts(self, state: State, standing: Standing) -> Sequence[WorkerHost]:
        return [state.worker_host(worker, standing) for worker in range(self.settings.n_workers)]

    def compile(self, context: BatchContext) -> Compiled:
        return _parted(self._dispatchers.mapPartitionsWithIndex(CompileUpdates(context)).collect())

    def decided(self, batch_id: int, segment: pa.RecordBatch | None) -> None:
        """Do nothing: tasks read the log."""

    def match(self, context: BatchContext) -> Heard:
        sent = self._dispatchers.mapPartitionsWithIndex(Dispatch(context))
        if self._pinned is None:
            received = sent.partitionBy(self.settings.n_workers, _itself)
        else:
            received = self._pinned.send(sent)
        return _heard(received.mapPartitionsWithIndex(WorkAndMerge(context)).collect())


class MicroBatchJob(DurableJob):
    """A durable job on a session of Spark, which takes DataFrames of events, too."""

    def __init__(
        self, spark: SparkSession, state: State, settings: Settings, sink: Sink, *watched: Any, **options: Any
    ) -> None:
        super().__init__(SparkTasks(spark, settings), state, settings, sink, *watched, **options)

    def process_events(self, batch: DataFrame, batch_id: int) -> None:
        """Run one micro-batch of events of any origin: spool them, then as all batches.

        Structured Streaming calls this, and calls it again for a batch that it has not noted as done.
        """
        self.state.drop_spool(batch_id)
        store, before = self.state.spool(batch_id), self.state.ledger.last_seq(batch_id - 1)
        spool = SpoolEvents(store, before if has_seq(batch) else None)
        spooled = (
            batch.mapInArrow(spool, from_arrow_schema(SPOOLED)).toArrow().sort_by("partition").to_pylist()
        )
        sources = tuple(Spool.of_row(row, store) for row in spooled)
        ordered = sources if has_seq(batch) else in_arrival_order(sources, before)
        self.process(ordered, batch_id, spooling_traffic(spooled))
        self.state.drop_spool(batch_id)


def _heard(packets: Iterable[Packet]) -> Heard:
    heard = Heard((), {}, [])
    reports: list[Report] = []
    for kind, payload in packets:
        if kind == PacketKind.REPORT:
            reports.append(report_from_json(payload.decode()))
        elif kind == PacketKind.LOADS:
            loads = decode(payload)
            heard.cells[int(loads.schema.metadata[WORKER])] = loads.replace_schema_metadata(None)
        else:
            heard.sampled.append(decode(payload))
    return heard._replace(reports=tuple(reports))


def _parted(packets: Iterable[Packet]) -> Compiled:
    """Part compiled from rejected updates."""
    compiled, rejected, reports = [empty(COMPILED_UPDATES)], [nothing_rejected()], []
    for kind, payload in packets:
        if kind == PacketKind.REPORT:
            reports.append(report_from_json(payload.decode()))
        else:
            (rejected if kind == PacketKind.REJECTED_RECORDS else compiled).append(decode(payload))
    traffic = tuple(report for report in reports if isinstance(report, Traffic))
    return Compiled(concat(compiled), rejected, traffic)


def _itself(worker: int) -> int:
    return worker
