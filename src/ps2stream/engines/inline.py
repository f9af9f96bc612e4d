"""The inline engine: all roles in one process, no Spark.

For tests, kernel benchmarks and small use. It runs the same stages as the Spark engines,
batch by batch, with the indexes on the heap.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from ps2stream.adjusting.controller import Controller, Observed, controller_of
from ps2stream.arrow import concat
from ps2stream.config import Settings
from ps2stream.engines.tally import DispatcherTally, Tally, WorkerTally
from ps2stream.matching.index import GI2
from ps2stream.model.events import in_order, split
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.partitioning.plan import Plan
from ps2stream.roles.dispatcher import Dispatched, Dispatcher
from ps2stream.roles.heap_host import HeapHost
from ps2stream.roles.merger import Merger
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.roles.worker import Worker
from ps2stream.roles.worker_host import Served, Standing


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch of events came to."""

    matches: pa.Table
    rejected: pa.RecordBatch


class InlineEngine:
    """Match event batches in order; subscriptions stay from one batch to the next."""

    def __init__(self, plan: Plan, settings: Settings, controller: Controller | None = None) -> None:
        self.settings = settings
        self.tally = Tally.of(plan.n_workers, settings.n_dispatchers)
        self.controller = controller or controller_of(settings)
        self._tokenizer = settings.tokenizer()
        self.registrar = Registrar(plan)
        self._n_batches = 0
        # Below it no event will come any more, so what ended up to here can be forgotten.
        self.high_water = BEFORE_ALL_SEQS
        self.hosts = [HeapHost(i, self._standing()) for i in range(plan.n_workers)]

    @property
    def plan(self) -> Plan:
        """Return the newest plan that publications are routed by."""
        return self.registrar.plan

    @property
    def workers(self) -> list[Worker[GI2]]:
        return [host.worker for host in self.hosts]

    def process(self, events: pa.RecordBatch) -> Outcome:
        """Match one batch (schema EVENTS); its events have to come after all those before."""
        started = time.monotonic()
        n_events = events.num_rows
        events, out_of_order, high_water = in_order(events, self.high_water)
        publications, updates = split(events)
        self._adjust(publications.num_rows)
        rejected = [out_of_order, *self._update(updates)]
        packets: dict[int, list[pa.RecordBatch]] = {}
        sampled: list[pa.RecordBatch] = []
        for number, part in enumerate(_parts(publications, self.settings.n_dispatchers)):
            done = self._dispatch(number, part, packets)
            rejected.append(done.rejected)
            sampled.append(done.sampled)
        served = self._match(packets)
        merging = time.process_time()
        matches = Merger(self.registrar.registry).merge([batch for each in served for batch in each.found])
        self.tally.merger_busy_s += time.process_time() - merging
        outcome = Outcome(matches, concat(rejected))
        self.high_water = high_water
        self._n_batches += 1
        self.tally.n_updates += updates.num_rows
        self.tally.n_matches += matches.num_rows
        self.tally.n_rejected += outcome.rejected.num_rows
        self.tally.n_subscriptions = self.registrar.registry.n_live
        self.tally.latencies.append((time.monotonic() - started, n_events))
        self.tally.mark()
        if self.controller:
            self._observe(served, sampled, publications.num_rows, updates.num_rows)
        return outcome

    def _adjust(self, n_publications: int) -> None:
        """Let the controller adjust the routing, which takes effect with this batch."""
        if self.controller is None:
            return
        started = time.monotonic()
        adjusted = self.controller.adjust(self._n_batches, self.registrar, self.hosts)
        if adjusted is None:
            return
        self._apply(adjusted.migrated.rows)
        took_s = time.monotonic() - started
        record = replace(adjusted.record, pause_s=took_s, migration_s=took_s, n_delayed=n_publications)
        self.tally.adjusted(record)
        self.controller.completed(record)

    def _observe(
        self, served: list[Served], sampled: list[pa.RecordBatch], n_publications: int, n_updates: int
    ) -> None:
        assert self.controller is not None
        cells = {each.report.worker: each.loads for each in served}
        spent = {each.report.worker: each.report.busy_s for each in served}
        known = self.controller.observe(Observed(n_publications, n_updates, cells, spent, sampled))
        if known is not None:
            self.tally.adjusted(known)

    def _update(self, updates: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Let the registrar decide and the workers apply; return what was rejected."""
        started = time.process_time()
        self.registrar.compact(self.high_water)
        compiled, malformed = compile_updates(updates, self._tokenizer)
        decided = self.registrar.decide(compiled)
        self.tally.registrar_busy_s += time.process_time() - started
        self._apply(decided.segment)
        return [malformed, decided.rejected]

    def _apply(self, segment: pa.RecordBatch) -> None:
        """Let all workers apply what was decided."""
        standing = self._standing()
        for host in self.hosts:
            with _timed(self.tally.workers[host.worker_id]):
                host.take(segment)
                host.stand(standing)
                host.apply()

    def _standing(self) -> Standing:
        settings = self.settings.index_settings(self.plan)
        return Standing(self._n_batches, settings, self.high_water, self.registrar.routing.switch_seq)

    def _dispatch(
        self, number: int, publications: pa.RecordBatch, packets: dict[int, list[pa.RecordBatch]]
    ) -> Dispatched:
        """Add the packets of one dispatcher to those of the others."""
        entry = self.tally.dispatchers[number]
        with _timed(entry):
            done = Dispatcher(self.registrar.grid_ts, self._tokenizer).dispatch(publications)
            for worker, packet in done.packets.items():
                packets.setdefault(worker, []).append(packet)
                entry.n_sent += packet.num_rows
        entry.n_publications += done.n_publications
        entry.n_discarded += done.n_discarded
        self.tally.n_publications += done.n_publications
        return done

    def _match(self, packets: dict[int, list[pa.RecordBatch]]) -> list[Served]:
        """Let the workers match what was sent to them; all of them report where loads are watched."""
        with_loads = self.controller is not None
        served = [
            host.match(packets.get(host.worker_id, []), with_loads=with_loads)
            for host in self.hosts
            if with_loads or host.worker_id in packets
        ]
        for each in served:
            self.tally.workers[each.report.worker].add(each.report)
        return served


@contextlib.contextmanager
def _timed(entry: WorkerTally | DispatcherTally) -> Iterator[None]:
    started = time.process_time()
    yield
    entry.busy_s += time.process_time() - started


def _parts(publications: pa.RecordBatch, n: int) -> list[pa.RecordBatch]:
    """Cut publications into ``n`` runs, as many dispatchers would get them."""
    if publications.num_rows == 0:
        return []
    size = -(-publications.num_rows // n)
    return [publications.slice(start, size) for start in range(0, publications.num_rows, size)]
