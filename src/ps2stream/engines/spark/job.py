"""The micro-batch engine: a batch is a job of Spark.

    sources --> [compile] --> registrar (driver) --> log, H2
         |                                            |
         +--> dispatch ==shuffle==> work, merge --> sink

Updates of a batch are decided on before its publications are routed; everything a crash could lose in
between is written before it is used. The jobs of a batch are RDDs: their elements are packets, and planning
them costs nothing, where a DataFrame of the same steps was analysed and planned anew for every batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ps2stream.adjusting.controller import Adjusted, Controller, LoadController, Observed
from ps2stream.adjusting.status import status_of
from ps2stream.arrow import concat
from ps2stream.balance.adjustments import Adjustment
from ps2stream.config import Settings
from ps2stream.engines.spark.dataframes import has_seq
from ps2stream.engines.spark.pinned_shuffle import PinnedShuffle
from ps2stream.engines.spark.slots import wait_for_slots
from ps2stream.engines.spark.stages import (
    SPOOLED,
    BatchContext,
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
from ps2stream.roles.reports import DispatcherReport, Report, WorkerReport, report_from_json
from ps2stream.roles.update_compiler import COMPILED_UPDATES, compile_updates
from ps2stream.roles.worker_host import Standing, WorkerHost
from ps2stream.sinks.sink import Sink
from ps2stream.sources.source import Source, n_events
from ps2stream.sources.spool import Spool, copied, in_arrival_order
from ps2stream.state.state import State
from ps2stream.store.traffic import NO_TRAFFIC, Traffic, traffic_so_far
from ps2stream.text.tokenizer import Tokenizer

#: Up to this many updates the driver parses by itself; a Spark job would take longer.
_COMPILE_HERE = 50_000

#: How many updates the subscription log may gather before a snapshot replaces it.
SNAPSHOT_EVERY = 100_000

_STATUS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What a batch came to, for those who watch."""

    batch_id: int
    sources: tuple[Source, ...]
    reports: tuple[Report, ...]
    n_updates: int
    n_rejected_updates: int
    n_subscriptions: int
    registrar_busy_s: float
    duration_s: float
    adjustments: tuple[Adjustment, ...] = ()  # made before this batch, or now known in full
    driver_traffic: Traffic = NO_TRAFFIC  # since the batch before; that of tasks is among the reports


@dataclass(slots=True)
class MicroBatchJob:
    """Process batches on a session; one job at a time on a state."""

    spark: SparkSession
    state: State
    settings: Settings
    sink: Sink
    on_batch: Callable[[BatchDone], None] = lambda done: None
    snapshot_every: int = SNAPSHOT_EVERY
    prune_journal: bool = False
    prune_every: int = 100_000
    controller: Controller | None = None
    _updates_since_snapshot: int = 0
    _events_since_pruning: int = 0
    _consumed: tuple[Source, ...] = ()
    _decided: int = field(init=False)
    _registrar: Registrar = field(init=False)
    _tokenizer: Tokenizer = field(init=False)
    _dispatchers: RDD[object] = field(init=False)
    _pinned: PinnedShuffle | None = None
    _next_status: float = 0.0
    _status_is_old: bool = False
    _told_traffic: Traffic = field(init=False)
    _early_traffic: tuple[Traffic, ...] = ()  # of tasks that came before those of the roles

    def start(self) -> None:
        """Rebuild what the log says; call once, before the first batch."""
        self._told_traffic = traffic_so_far()
        self.state.sweep()
        self.sink.claim(self.state.job_file.job_id)
        self._decided = self.state.ledger.decided()
        since_snapshot = self.state.log.read(after=self.state.log.base())
        self._updates_since_snapshot = sum(segment.num_rows for _, segment in since_snapshot)
        self._registrar = self.state.restore_registrar()
        self.state.drop_plans()
        self.state.mailbox.forget_status()  # that of an earlier run
        self._tokenizer = self.settings.tokenizer()
        # Nothing but partitions: a task, one for each dispatcher, needs its number only.
        self._dispatchers = self.spark.sparkContext.parallelize([], self.settings.n_dispatchers)
        if self.state.on_many_hosts:
            wait_for_slots(self.spark.sparkContext, self.settings.n_workers)
            self._pinned = PinnedShuffle(self.spark.sparkContext, self.settings.n_workers)

    def process(self, sources: tuple[Source, ...], batch_id: int) -> int:
        """Run one micro-batch; return how many events it had."""
        started = time.monotonic()
        if not sources:
            return 0
        horizon = self.state.ledger.last_seq(batch_id - 1)
        self._snapshot_when_due(batch_id)
        self._prune_when_due()
        reachable = self._reachable(sources, batch_id)
        registrar_started, decided_at = time.process_time(), time.time()
        record, n_rejected = self._update(batch_id, sources, reachable, horizon)
        registrar_busy_s = time.process_time() - registrar_started
        heard = self._match(self._context(batch_id, reachable, horizon))
        self.state.ledger.finish(batch_id, max(horizon, *(source.last_seq for source in sources)))
        n_updates = sum(source.n_updates for source in sources)
        self._updates_since_snapshot += n_updates
        self._events_since_pruning += sum(map(n_events, sources))
        self._consumed = sources
        if reachable is not sources:
            self.state.drop_spool(batch_id)
        adjustments = self._observe(record, decided_at, heard, n_updates)
        done = BatchDone(
            batch_id,
            sources,
            (*heard.reports, *self._early_traffic),
            n_updates,
            n_rejected,
            self._registrar.registry.n_live,
            registrar_busy_s,
            time.monotonic() - started,
            adjustments,
            self._driver_traffic(),
        )
        self._early_traffic = ()
        self._status_is_old = True
        self.tell_status(now=False)
        self.on_batch(done)
        dispatchers = (report for report in heard.reports if isinstance(report, DispatcherReport))
        return n_updates + sum(report.n_publications + report.n_rejected for report in dispatchers)

    def _driver_traffic(self) -> Traffic:
        """Return what this process has asked of the store since it was asked last, the lease included."""
        before, self._told_traffic = self._told_traffic, traffic_so_far()
        return self._told_traffic - before

    def process_events(self, batch: DataFrame, batch_id: int) -> None:
        """Run one micro-batch of events of any origin: spool them, then as above.

        Structured Streaming calls this, and calls it again for a batch that it has not noted as done.
        """
        self.state.drop_spool(batch_id)
        store, before = self.state.spool(batch_id), self.state.ledger.last_seq(batch_id - 1)
        spool = SpoolEvents(store, before if has_seq(batch) else None)
        spooled = (
            batch.mapInArrow(spool, from_arrow_schema(SPOOLED)).toArrow().sort_by("partition").to_pylist()
        )
        self._early_traffic = spooling_traffic(spooled)
        sources = tuple(Spool.of_row(row, store) for row in spooled)
        self.process(sources if has_seq(batch) else in_arrival_order(sources, before), batch_id)
        self.state.drop_spool(batch_id)

    def _reachable(self, sources: tuple[Source, ...], batch_id: int) -> tuple[Source, ...]:
        """Return sources that the hosts of all tasks can read: of a journal of this host, copies."""
        if not self.state.on_many_hosts or not any(source.is_local for source in sources):
            return sources
        store = self.state.spool(batch_id)  # a run before this one left nothing but the same
        return tuple(copied(source, store.under(f"part-{n}")) for n, source in enumerate(sources))

    def _update(
        self, batch_id: int, sources: tuple[Source, ...], reachable: tuple[Source, ...], horizon: int
    ) -> tuple[Adjustment | None, int]:
        """Adjust the routing and decide on the updates of a batch, unless a run before a crash did.

        ``reachable``: the sources as tasks read them. Return what was adjusted, and how many updates were
        rejected.
        """
        if batch_id <= self._decided:
            return None, 0
        no_more = self._registrar.compact(horizon)
        adjusted = self._adjust(batch_id, horizon)
        compiled, malformed = self._compile(batch_id, sources, reachable, horizon)
        decided = self._registrar.decide(compiled)
        rejected = concat([*malformed, decided.rejected])
        segment = concat([adjusted.migrated.rows, decided.segment]) if adjusted else decided.segment
        # First what else there is to write, then the decision: after it this part is never redone.
        self.sink.write_rejected(batch_id, "updates", rejected)
        # Also without changes: its matches lie in a file for each worker, so its routing has to stay, too.
        is_changed = bool(segment.num_rows or adjusted)
        self.state.ledger.decide(batch_id, segment if is_changed else None, self._registrar.plan_numbers)
        self._decided = batch_id
        if adjusted:
            self.state.drop_plans()
        for name in (no_more, adjusted and adjusted.dropped_index):  # no task of an earlier batch reads them
            if name:
                self.state.host.drop(name)
        return adjusted.record if adjusted else None, rejected.num_rows

    def _adjust(self, batch_id: int, horizon: int) -> Adjusted | None:
        """Let the controller adjust the routing; what it did comes into force with the log's next segment."""
        if self.controller is None:
            return None
        if self.state.mailbox.take_request() and isinstance(self.controller, LoadController):
            self.controller.request_repartition()
        plan = self._registrar.plan
        adjusted = self.controller.adjust(batch_id, self._registrar, self._hosts(horizon))
        if self._registrar.plan is not plan:
            self.state.plans.add(self._registrar.plan)
        self.state.adjustments.write(batch_id, adjusted.record if adjusted else None)
        return adjusted

    def _hosts(self, horizon: int) -> list[WorkerHost]:
        """Return the workers as the batches before have left them."""
        settings = self.settings.index_settings(self._registrar.plan)
        standing = Standing(self._decided, settings, horizon, self._registrar.routing.switch_seq)
        return [self.state.worker_host(worker, standing) for worker in range(self.settings.n_workers)]

    def _observe(
        self, record: Adjustment | None, decided_at: float, heard: Heard, n_updates: int
    ) -> tuple[Adjustment, ...]:
        """Tell the controller what the batch was like; return the adjustments that more is known of now."""
        if self.controller is None:
            return ()
        workers = [report for report in heard.reports if isinstance(report, WorkerReport)]
        dispatchers = [report for report in heard.reports if isinstance(report, DispatcherReport)]
        n_publications = sum(report.n_publications for report in dispatchers)
        adjustments = []
        if record is not None:
            record = replace(
                record,
                pause_s=record.pause_s + max(report.update_s for report in workers),
                migration_s=max(report.ready_at for report in workers) - decided_at,
                n_delayed=n_publications,
            )
            self.controller.completed(record)
            adjustments.append(record)
        busy_s = {report.worker: report.busy_s for report in workers}
        observed = Observed(n_publications, n_updates, heard.cells, busy_s, heard.sampled)
        known = self.controller.observe(observed)
        if known is not None:
            adjustments.append(known)
        for each in adjustments:
            self.state.adjustments.write(each.batch_id, each)
        return tuple(adjustments)

    @property
    def n_subscriptions(self) -> int:
        return self._registrar.registry.n_live

    def tell_status(self, *, now: bool = True) -> None:
        """Leave the loads where ``ps2stream status`` finds them: now, or when somebody may look again."""
        is_due = self._status_is_old and time.monotonic() >= self._next_status
        if isinstance(self.controller, LoadController) and (now or is_due):
            self.state.mailbox.write_status(status_of(self.controller, self._registrar, self._decided))
            self._next_status = time.monotonic() + _STATUS_EVERY_S
            self._status_is_old = False

    def _compile(
        self, batch_id: int, sources: tuple[Source, ...], reachable: tuple[Source, ...], horizon: int
    ) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
        if sum(source.n_updates for source in sources) <= _COMPILE_HERE:
            compiled, rejected = [empty(COMPILED_UPDATES)], [nothing_rejected()]
            for updates, unread in (batch for source in sources for batch in source.updates()):
                valid, malformed = compile_updates(updates, self._tokenizer)
                compiled.append(valid)
                rejected += [unread, malformed]
            return concat(compiled), rejected
        compile_stage = CompileUpdates(self._context(batch_id, reachable, horizon))
        parted = _parted(self._dispatchers.mapPartitionsWithIndex(compile_stage).collect())
        self._early_traffic += parted.traffic
        return parted.compiled, parted.rejected

    def _match(self, context: BatchContext) -> Heard:
        sent = self._dispatchers.mapPartitionsWithIndex(Dispatch(context))
        if self._pinned is None:
            received = sent.partitionBy(self.settings.n_workers, _itself)
        else:
            received = self._pinned.send(sent)
        return _heard(received.mapPartitionsWithIndex(WorkAndMerge(context)).collect())

    def _context(self, batch_id: int, sources: tuple[Source, ...], horizon: int) -> BatchContext:
        return BatchContext(
            batch_id,
            self.state.told(self._decided),
            self.sink,
            self.settings,
            self._registrar.registry_name,
            self._registrar.routing.map(lambda stored: (stored.plan.number, stored.name)),
            horizon,
            sources,
            self.controller is not None,
        )

    def _snapshot_when_due(self, batch_id: int) -> None:
        """Let a snapshot stand for the log up to the batch before this one, which never runs again.

        This batch is the earliest that can ever run again, so what ended before it is not needed any
        more. Taken one batch earlier, a replay would miss what ended in it. For the same reason none is
        taken while a batch runs again that is already decided.
        """
        n_due = max(self.snapshot_every, self._registrar.registry.n_live)
        if self._updates_since_snapshot > n_due and self._decided < batch_id:
            self.state.snapshot(self._decided, self._registrar)
            self._updates_since_snapshot = 0

    def _prune_when_due(self) -> None:
        """Drop what the batch before has read from the journal: it never runs again.

        Nothing needs it any more: the log holds the subscriptions, the sink the matches.
        """
        if self.prune_journal and self._events_since_pruning > self.prune_every:
            for source in self._consumed:
                source.forget()
            self._events_since_pruning = 0


class Heard(NamedTuple):
    """What the roles said of a batch."""

    reports: tuple[Report, ...]
    cells: dict[int, pa.RecordBatch]
    sampled: list[pa.RecordBatch]


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


class Parted(NamedTuple):
    """What came of compiling: updates, those that were rejected, and what tasks asked of the store."""

    compiled: pa.RecordBatch
    rejected: list[pa.RecordBatch]
    traffic: tuple[Traffic, ...]


def _parted(packets: Iterable[Packet]) -> Parted:
    """Part compiled from rejected updates."""
    compiled, rejected, reports = [empty(COMPILED_UPDATES)], [nothing_rejected()], []
    for kind, payload in packets:
        if kind == PacketKind.REPORT:
            reports.append(report_from_json(payload.decode()))
        else:
            (rejected if kind == PacketKind.REJECTED_RECORDS else compiled).append(decode(payload))
    traffic = tuple(report for report in reports if isinstance(report, Traffic))
    return Parted(concat(compiled), rejected, traffic)


def _itself(worker: int) -> int:
    return worker
