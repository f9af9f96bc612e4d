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
from ps2stream.roles.merger import Merger
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.roles.worker import CellCounters, Worker


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
        index_settings = settings.index_settings(plan)
        self.workers = [Worker(i, GI2.create(index_settings)) for i in range(plan.n_workers)]
        self._counted = [worker.index.counts() for worker in self.workers]
        self._n_batches = 0
        # Below it no event will come any more, so what ended up to here can be forgotten.
        self.high_water = BEFORE_ALL_SEQS

    @property
    def plan(self) -> Plan:
        """Return the newest plan that publications are routed by."""
        return self.registrar.plan

    def process(self, events: pa.RecordBatch) -> Outcome:
        """Match one batch (schema EVENTS); its events have to come after all those before."""
        started = time.monotonic()
        n_events = events.num_rows
        events, out_of_order, high_water = in_order(events, self.high_water)
        publications, updates = split(events)
        self._adjust(publications.num_rows)
        rejected = [out_of_order, *self._update(updates)]
        counters = [worker.cell_counters() for worker in self.workers] if self.controller else []
        busy_s = [entry.busy_s for entry in self.tally.workers]
        packets: dict[int, list[pa.RecordBatch]] = {}
        sampled: list[pa.RecordBatch] = []
        for number, part in enumerate(_parts(publications, self.settings.n_dispatchers)):
            done = self._dispatch(number, part, packets)
            rejected.append(done.rejected)
            sampled.append(done.sampled)
        found = [batch for worker in packets for batch in self._match(worker, packets[worker])]
        merging = time.process_time()
        matches = Merger(self.registrar.registry).merge(found)
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
            self._observe(counters, busy_s, sampled, publications.num_rows, updates.num_rows)
        return outcome

    def _adjust(self, n_publications: int) -> None:
        """Let the controller adjust the routing, which takes effect with this batch."""
        if self.controller is None:
            return
        started = time.monotonic()
        adjusted = self.controller.adjust(
            self._n_batches,
            self.registrar,
            lambda worker, seqs: self.workers[worker].index.stored(seqs),
            lambda worker: self.workers[worker].index.cell_counters()["bytes"],
        )
        if adjusted is None:
            return
        for worker in self.workers:
            with _timed(self.tally.workers[worker.worker_id]):
                worker.update(adjusted.migrated.rows)
                if self.plan.grid != worker.index.settings.counters:
                    worker.index = worker.index.counted_in(self.plan.grid)
                    self._counted[worker.worker_id] = worker.index.counts()
        took_s = time.monotonic() - started
        record = replace(adjusted.record, pause_s=took_s, migration_s=took_s, n_delayed=n_publications)
        self.tally.adjusted(record)
        self.controller.completed(record)

    def _observe(
        self,
        counters: list[CellCounters],
        busy_s: list[float],
        sampled: list[pa.RecordBatch],
        n_publications: int,
        n_updates: int,
    ) -> None:
        assert self.controller is not None
        cells = {worker.worker_id: worker.cell_loads(counters[worker.worker_id]) for worker in self.workers}
        spent = {i: entry.busy_s - busy_s[i] for i, entry in enumerate(self.tally.workers)}
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
        for worker in self.workers:
            with _timed(self.tally.workers[worker.worker_id]):
                if worker.index.should_compact():
                    worker.index = worker.index.compacted(self.high_water)
                worker.update(decided.segment)
        return [malformed, decided.rejected]

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

    def _match(self, worker_id: int, packets: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        worker, entry = self.workers[worker_id], self.tally.workers[worker_id]
        with _timed(entry):
            switch_seq = self.registrar.routing.switch_seq
            found = [worker.match(packet, self.high_water, switch_seq) for packet in packets]
        entry.n_updates = worker.n_updates
        before, counts = self._counted[worker_id], worker.index.counts()
        self._counted[worker_id] = counts
        entry.n_publications += counts.n_publications - before.n_publications
        entry.n_candidates += counts.n_candidates - before.n_candidates
        entry.n_matches += counts.n_matches - before.n_matches
        entry.n_subscriptions, entry.n_bytes = counts.n_subscriptions, counts.n_bytes
        return found


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
