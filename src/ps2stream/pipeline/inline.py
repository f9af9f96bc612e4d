"""The inline engine: all roles in one process, no Spark.

For tests, kernel benchmarks and small use. It runs the same stages as the Spark engines,
batch by batch, with the indexes on the heap.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.matching.index import GI2
from ps2stream.model.events import in_order, split
from ps2stream.partitioning.plan import Plan
from ps2stream.pipeline.dispatcher import Dispatcher
from ps2stream.pipeline.merger import Merger
from ps2stream.pipeline.registrar import Registrar, compile_updates, concat
from ps2stream.pipeline.worker import Worker


@dataclass(slots=True)
class Busy:
    """CPU seconds of each role."""

    registrar: float = 0.0
    dispatchers: list[float] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)
    merger: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch of events came to."""

    matches: pa.RecordBatch
    rejected: pa.RecordBatch
    n_publications: int
    n_updates: int
    n_discarded: int


class InlineEngine:
    """Match event batches in order; subscriptions stay from one batch to the next."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self.plan = plan
        self.settings = settings
        self._tokenizer = settings.tokenizer()
        self.registrar = Registrar(plan)
        self._dispatchers = [
            Dispatcher(self.registrar.grid_t, self._tokenizer) for _ in range(settings.n_dispatchers)
        ]
        index_settings = settings.index_settings(plan)
        self.workers = [Worker(i, GI2.create(index_settings)) for i in range(plan.n_workers)]
        self.busy = Busy(dispatchers=[0.0] * settings.n_dispatchers, workers=[0.0] * plan.n_workers)
        self._high_water: int | None = None
        self._horizon = _BEFORE_EVERYTHING

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterable[Outcome]:
        """Process batches of events (schema EVENTS) one after the other."""
        return (self.process(batch) for batch in batches)

    def process(self, events: pa.RecordBatch) -> Outcome:
        """Match one batch; its events have to come after all those before."""
        events, out_of_order, high_water = in_order(events, self._high_water)
        publications, updates = split(events)
        rejected = [out_of_order, *self._update(updates)]
        packets: dict[int, list[pa.RecordBatch]] = {}
        n_publications = n_discarded = 0
        for number, part in enumerate(_parts(publications, len(self._dispatchers))):
            started = time.process_time()
            dispatched = self._dispatchers[number].dispatch(part)
            for worker, packet in dispatched.packets.items():
                packets.setdefault(worker, []).append(packet)
            rejected.append(dispatched.rejected)
            n_publications += dispatched.n_publications
            n_discarded += dispatched.n_discarded
            self.busy.dispatchers[number] += time.process_time() - started
        found = [batch for worker in packets for batch in self._match(worker, packets[worker])]
        started = time.process_time()
        matches = Merger(self.registrar.registry).merge(found)
        self.busy.merger += time.process_time() - started
        self._high_water = high_water
        if high_water is not None:
            self._horizon = high_water
        return Outcome(matches, concat(rejected), n_publications, updates.num_rows, n_discarded)

    def _update(self, updates: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Let the registrar decide and the workers apply; return what was rejected."""
        started = time.process_time()
        self.registrar.compact(self._horizon)
        compiled, malformed = compile_updates(updates, self._tokenizer)
        decided = self.registrar.decide(compiled)
        self.busy.registrar += time.process_time() - started
        for worker in self.workers:
            started = time.process_time()
            if worker.index.should_compact():
                worker.index = worker.index.compacted(self._horizon)
            worker.update(decided.segment)
            self.busy.workers[worker.worker_id] += time.process_time() - started
        return [malformed, decided.rejected]

    def _match(self, worker: int, packets: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        started = time.process_time()
        found = [self.workers[worker].match(packet, self._horizon) for packet in packets]
        self.busy.workers[worker] += time.process_time() - started
        return found


_BEFORE_EVERYTHING = -(1 << 63)


def _parts(publications: pa.RecordBatch, n: int) -> list[pa.RecordBatch]:
    """Cut publications into ``n`` runs, as many dispatchers would get them."""
    if publications.num_rows == 0:
        return []
    size = -(-publications.num_rows // n)
    return [publications.slice(start, size) for start in range(0, publications.num_rows, size)]
