"""A durable job: the life of a batch, from the range of events that it has to the sink; no engine word in it.

    sources --> [compile] --> registrar --> log, H2
         |                                   |
         +--> dispatch ======> work, merge --> sink      (tasks of an engine: ``batch_tasks.py``)

Updates of a batch are decided on before its publications are routed; everything a crash could lose in
between is written before it is used. So a state may be gone on with by any engine, at any moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from ps2stream.adjusting.controller import Adjusted, Controller, LoadController, Observed
from ps2stream.adjusting.status import status_of
from ps2stream.arrow import concat
from ps2stream.balance.adjustments import Adjustment
from ps2stream.config import Settings
from ps2stream.engines.batch_notes import BatchNotes, SettledHosts
from ps2stream.engines.batch_tasks import BatchContext, BatchTasks, Compiled, Heard, compiled_here
from ps2stream.engines.load_watch import LoadWatch
from ps2stream.engines.log_snapshots import LogSnapshots
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.reports import DispatcherReport, Report, WorkerReport
from ps2stream.roles.worker_host import Standing, WorkerHost
from ps2stream.sinks.sink import Sink
from ps2stream.sources.source import Source, n_events
from ps2stream.sources.spool import copied
from ps2stream.state.state import State
from ps2stream.store.traffic import NO_TRAFFIC, Traffic, traffic_so_far
from ps2stream.text.tokenizer import Tokenizer

#: Up to this many updates are parsed here; to hand them to tasks would take longer.
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
    commit_s: float = 0.0  # to note in the ledger that it is begun, decided and finished


@dataclass(slots=True)
class DurableJob:
    """Process batches, one after the other; one job at a time on a state.

    ``beside``: where snapshots are written while batches go on; only with tasks that do not read the log any
    more once they have matched a batch.
    """

    tasks: BatchTasks
    state: State
    settings: Settings
    sink: Sink
    on_batch: Callable[[BatchDone], None] = lambda done: None
    snapshot_every: int = SNAPSHOT_EVERY
    prune_journal: bool = False
    prune_every: int = 100_000
    controller: Controller | None = None
    is_lazy: bool = False  # about its notes (``batch_notes.py``)
    beside: Executor | None = None
    _has_matched: bool = False
    _events_since_pruning: int = 0
    _consumed: tuple[Source, ...] = ()
    _decided: int = field(init=False)
    _registrar: Registrar = field(init=False)
    _watch: LoadWatch = field(init=False)
    notes: BatchNotes = field(init=False)
    snapshots: LogSnapshots = field(init=False)
    _tokenizer: Tokenizer = field(init=False)
    _next_status: float = 0.0
    _status_is_old: bool = False
    _told_traffic: Traffic = field(init=False)
    _early_traffic: tuple[Traffic, ...] = ()  # of tasks that parsed updates

    def start(self) -> None:
        """Rebuild what the log says; call once, before the first batch."""
        self._told_traffic = traffic_so_far()
        self.state.sweep()
        self.sink.claim(self.state.job_file.job_id)
        self._decided = self.state.ledger.decided()
        self.snapshots = LogSnapshots(self.state, self.snapshot_every, self.beside)
        self._registrar = self.state.restore_registrar()
        self.state.drop_plans()
        self.state.mailbox.forget_status()  # that of an earlier run
        self._tokenizer = self.settings.tokenizer()
        self._watch = LoadWatch(self.tasks.loads_every_s)
        self.notes = BatchNotes(self.state.ledger, self.is_lazy)
        self.tasks.start(self.state, self._registrar)

    def process(self, sources: tuple[Source, ...], batch_id: int, traffic: tuple[Traffic, ...] = ()) -> int:
        """Run one batch; return how many events it had.

        ``traffic``: what was asked of the store to get at its events.
        """
        started = time.monotonic()
        if not sources:
            return 0
        horizon = self.notes.last_seq(batch_id - 1)
        self._snapshot_when_due(batch_id)
        self._prune_when_due()
        reachable = self._reachable(sources, batch_id)
        registrar_started, decided_at = time.process_time(), time.time()
        record, n_rejected = self._update(batch_id, sources, reachable, horizon)
        registrar_busy_s = time.process_time() - registrar_started
        # After an adjustment at once: from there on other workers do the work.
        with_cells = self.controller is not None and (record is not None or self._watch.is_due())
        heard = self.tasks.match(self._context(batch_id, reachable, horizon, reports_cells=with_cells))
        self._has_matched = True
        self.notes.finish(batch_id, max(horizon, *(source.last_seq for source in sources)))
        n_updates = sum(source.n_updates for source in sources)
        self._events_since_pruning += sum(map(n_events, sources))
        self._consumed = sources
        if reachable is not sources:
            self.state.drop_spool(batch_id)
        adjustments = self._observe(record, decided_at, heard, n_updates, with_cells=with_cells)
        done = BatchDone(
            batch_id,
            sources,
            (*heard.reports, *traffic, *self._early_traffic),
            n_updates,
            n_rejected,
            self._registrar.registry.n_live,
            registrar_busy_s,
            time.monotonic() - started,
            adjustments,
            self._driver_traffic(),
            self.notes.take_spent_s(),
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
        compiled = self._compile(batch_id, sources, reachable, horizon)
        decided = self._registrar.decide(compiled.updates)
        rejected = concat([*compiled.rejected, decided.rejected])
        segment = concat([adjusted.migrated.rows, decided.segment]) if adjusted else decided.segment
        # First what else there is to write, then the decision: after it this part is never redone.
        if rejected.num_rows:
            self.notes.settle()
            self.sink.write_rejected(batch_id, "updates", rejected)
        # Also without changes: its matches lie in a file for each worker, so its routing has to stay, too.
        is_changed = bool(segment.num_rows or adjusted)
        changed = segment if is_changed else None
        if changed is None:
            self.notes.decide_unchanged(batch_id)
        else:
            self.notes.settle()
            self.state.ledger.decide(batch_id, changed, self._registrar.plan_numbers)
            self.snapshots.add(changed, sum(source.n_updates for source in sources))
        self._decided = batch_id
        self.tasks.decided(batch_id, changed)
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
        hosts = SettledHosts(self._hosts(horizon), self.notes)
        adjusted = self.controller.adjust(batch_id, self._registrar, hosts)
        if adjusted:
            self.notes.settle()
        if self._registrar.plan is not plan:
            self.state.plans.add(self._registrar.plan)
        self.state.adjustments.write(batch_id, adjusted.record if adjusted else None)
        return adjusted

    def _hosts(self, horizon: int) -> Sequence[WorkerHost]:
        """Return the workers as the batches before have left them."""
        settings = self.settings.index_settings(self._registrar.plan)
        standing = Standing(self._decided, settings, horizon, self._registrar.routing.switch_seq)
        return self.tasks.hosts(self.state, standing)

    def _observe(
        self,
        record: Adjustment | None,
        decided_at: float,
        heard: Heard,
        n_updates: int,
        *,
        with_cells: bool,
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
        told = self._watch.told(observed, with_cells=with_cells, is_adjusted=record is not None)
        known = self.controller.observe(told) if told else None
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
    ) -> Compiled:
        if sum(source.n_updates for source in sources) <= _COMPILE_HERE:
            return compiled_here(sources, self._tokenizer)
        compiled = self.tasks.compile(self._context(batch_id, reachable, horizon))
        self._early_traffic = compiled.traffic
        return compiled

    def _context(
        self, batch_id: int, sources: tuple[Source, ...], horizon: int, *, reports_cells: bool = False
    ) -> BatchContext:
        return BatchContext(
            batch_id,
            self.state.told(self._decided),
            self.sink,
            self.settings,
            self._registrar.registry_name,
            self._registrar.routing.map(lambda stored: (stored.plan.number, stored.name)),
            horizon,
            sources,
            reports_cells,
        )

    def _snapshot_when_due(self, batch_id: int) -> None:
        """Let a snapshot stand for the log up to the batch before this one, which never runs again.

        This batch is the earliest that can ever run again, so what ended before it is not needed any
        more. Taken one batch earlier, a replay would miss what ended in it. For the same reason none is
        taken while a batch runs again that is already decided.
        """
        self.snapshots.check()
        if self._decided < batch_id and self.snapshots.is_due(self._registrar.registry.n_live):
            self.notes.settle()
            self.snapshots.take(self._decided, self._registrar, log_is_read=not self._has_matched)

    def _prune_when_due(self) -> None:
        """Drop what the batch before has read from the journal: it never runs again.

        Nothing needs it any more: the log holds the subscriptions, the sink the matches.
        """
        if self.prune_journal and self._events_since_pruning > self.prune_every:
            self.notes.settle()
            for source in self._consumed:
                source.forget()
            self._events_since_pruning = 0
