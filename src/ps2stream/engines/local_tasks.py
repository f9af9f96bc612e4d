"""The roles of a durable job in this process, one after the other.

They do what the tasks of Spark do (``spark/stages.py``), and leave the same: a file of matches for each
worker that found any, what was rejected beside those of the first worker, marks of the same kind in the homes
of workers. So either may go on where the other was stopped, or killed. The registrar's own indexes are read
where they are, and workers keep theirs mapped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ps2stream.arrow import concat
from ps2stream.config import Settings
from ps2stream.engines.batch_tasks import BatchContext, Compiled, Heard, compiled_here, gathered
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.merger import Merger
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.reports import DispatcherReport, MergerReport, Report
from ps2stream.roles.worker_host import Standing, WorkerHost
from ps2stream.state.kept_host import KeptHost
from ps2stream.state.state import State
from ps2stream.text.tokenizer import Tokenizer

#: Who writes what dispatchers rejected.
_FIRST = 0
#: To look at the loads of all cells takes a millisecond a worker.
_LOADS_EVERY_S = 0.5


@dataclass(slots=True)
class LocalTasks:
    """Dispatchers, workers and mergers of one process."""

    settings: Settings
    _tokenizer: Tokenizer = field(init=False)
    _registrar: Registrar = field(init=False)
    _hosts: list[KeptHost] = field(default_factory=list)

    @property
    def loads_every_s(self) -> float:
        return _LOADS_EVERY_S

    def start(self, state: State, registrar: Registrar) -> None:
        self._tokenizer, self._registrar = self.settings.tokenizer(), registrar
        standing = Standing(state.ledger.decided(), self.settings.index_settings(registrar.plan))
        self._hosts = [KeptHost(worker, state, standing) for worker in range(self.settings.n_workers)]

    def hosts(self, state: State, standing: Standing) -> Sequence[WorkerHost]:
        for host in self._hosts:
            host.stand(standing)
        return self._hosts

    def compile(self, context: BatchContext) -> Compiled:
        return compiled_here(context.sources, self._tokenizer)

    def decided(self, batch_id: int, segment: pa.RecordBatch | None) -> None:
        if segment is not None:
            for host in self._hosts:
                host.take(batch_id, segment)

    def match(self, context: BatchContext) -> Heard:
        heard = Heard((), {}, [])
        packets: dict[int, list[pa.RecordBatch]] = {}
        rejected: list[pa.RecordBatch] = []
        reports: list[Report] = []
        for number in range(self.settings.n_dispatchers):
            reports.append(self._dispatch(number, context, packets, rejected, heard.sampled))
        reports += self._work_and_merge(context, packets, rejected, heard.cells)
        return heard._replace(reports=tuple(reports))

    def _dispatch(
        self,
        number: int,
        context: BatchContext,
        packets: dict[int, list[pa.RecordBatch]],
        rejected: list[pa.RecordBatch],
        sampled: list[pa.RecordBatch],
    ) -> DispatcherReport:
        """Route what one dispatcher reads; its packets come to those of the others."""
        started = time.process_time()
        dispatcher = Dispatcher(self._registrar.grid_ts, self._tokenizer)
        n_publications = n_discarded = n_rejected = n_sent = 0
        for publications, rejected_before in gathered(context.part(number)):
            # Of batches that tell no loads, publications are no sample either: one batch in dozens is enough.
            done = dispatcher.dispatch(publications, with_sample=context.reports_cells)
            for worker, packet in done.packets.items():
                packets.setdefault(worker, []).append(packet)
                n_sent += packet.num_rows
            for each in (rejected_before, done.rejected):
                if each.num_rows:
                    rejected.append(each)
                    n_rejected += each.num_rows
            if context.reports_cells:
                sampled.append(done.sampled)
            n_publications += done.n_publications
            n_discarded += done.n_discarded
        busy_s = time.process_time() - started
        return DispatcherReport(number, n_publications, n_discarded, n_rejected, n_sent, busy_s)

    def _work_and_merge(
        self,
        context: BatchContext,
        packets: dict[int, list[pa.RecordBatch]],
        rejected: list[pa.RecordBatch],
        cells: dict[int, pa.RecordBatch],
    ) -> list[Report]:
        """Let all workers apply and match; write what they found."""
        settings = self.settings.index_settings(self._registrar.plan)
        switch_seq = self._registrar.routing.switch_seq
        self.hosts(context.state, Standing(context.batch_id, settings, context.horizon, switch_seq))
        reports: list[Report] = []
        for host in self._hosts:
            served = host.match(packets.get(host.worker_id, []), with_loads=context.reports_cells)
            if context.reports_cells:
                cells[host.worker_id] = served.loads
            reports.append(served.report)
            turned_away = rejected if host.worker_id == _FIRST else []
            reports.append(self._merge(host.worker_id, context, served.found, turned_away))
        context.state.drop_old_blobs()
        return reports

    def _merge(
        self,
        worker: int,
        context: BatchContext,
        found: list[pa.RecordBatch],
        rejected: list[pa.RecordBatch],
    ) -> MergerReport:
        """Write deliveries and rejected records to the sink."""
        started = time.process_time()
        n_matches = n_rejected = 0
        if context.state.epoch:  # a lease may be lost; a lock is not
            context.state.check_newest(context.batch_id)
        if any(batch.num_rows for batch in found):
            pieces = Merger(self._registrar.registry).pieces(found)
            n_matches = context.sink.write_matches(context.batch_id, worker, pieces)
        if rejected:
            n_rejected = sum(batch.num_rows for batch in rejected)
            context.sink.write_rejected(context.batch_id, f"{worker:03}", concat(rejected))
        return MergerReport(worker, n_matches, n_rejected, time.process_time() - started)
