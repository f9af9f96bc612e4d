"""What a durable job asks of an engine: to carry out the roles of a batch, in any number of processes.

All that a crash could lose is the job's business (``durable_job.py``). An engine is handed a batch that is
decided, and writes its matches and rejected records to the sink: a file, or its like, for each worker, so
that whoever runs the batch again, on whichever engine, replaces what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from ps2stream.arrow import concat
from ps2stream.config import Settings
from ps2stream.model.events import nothing_rejected
from ps2stream.model.schemas import empty
from ps2stream.registry.index import Registry
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.reports import Report
from ps2stream.roles.update_compiler import COMPILED_UPDATES, compile_updates
from ps2stream.roles.worker_host import Standing, WorkerHost
from ps2stream.routing.index import GridT
from ps2stream.routing.routing import Routing
from ps2stream.sinks.sink import Sink
from ps2stream.sources.source import Source
from ps2stream.state.host_replica import Replica
from ps2stream.state.state import State
from ps2stream.store.traffic import Traffic
from ps2stream.text.tokenizer import Tokenizer

#: A dispatcher gathers small packets up to this many publications, or bytes, before it routes them.
_ROUTE_AT_ONCE = 20_000
_ROUTE_BYTES_AT_ONCE = 1 << 28
_FEW_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class BatchContext:
    """All that the tasks of one batch have to know."""

    batch_id: int
    state: State
    sink: Sink
    settings: Settings
    registry: str
    routing: Routing[tuple[int, str]]  # the number of a plan and the name of its index
    horizon: int
    sources: tuple[Source, ...]
    reports_cells: bool = False

    def grid_ts(self) -> Routing[GridT]:
        """Open grid^t of the plans in use, as it stands at this batch on the host of this process."""
        state = self.state.here()
        if state.on_many_hosts:
            return self._replica(state).grid_ts
        return self.routing.map(lambda part: state.open_grid_t(state.plans.get(part[0]), part[1]))

    def open_registry(self) -> Registry:
        """Open the names of subscriptions, as above."""
        state = self.state.here()
        return self._replica(state).registry if state.on_many_hosts else state.open_registry(self.registry)

    def _replica(self, state: State) -> Replica:
        return state.replica().at(self.batch_id, self.routing.map(lambda part: part[0]))

    def part(self, number: int) -> tuple[Source, ...]:
        """Return the sources that dispatcher ``number`` reads."""
        return self.sources[number :: self.settings.n_dispatchers]


class Compiled(NamedTuple):
    """What came of parsing updates: those that are valid, the others, and what tasks asked of the store."""

    updates: pa.RecordBatch
    rejected: list[pa.RecordBatch]
    traffic: tuple[Traffic, ...] = ()


class Heard(NamedTuple):
    """What the roles said of a batch."""

    reports: tuple[Report, ...]
    cells: dict[int, pa.RecordBatch]
    sampled: list[pa.RecordBatch]


class BatchTasks(Protocol):
    """Carry out the roles of batches, one batch at a time."""

    @property
    def loads_every_s(self) -> float:
        """Return how often batches should report the loads of cells: what came of all since the last one.

        0: every batch, and each only of itself.
        """
        ...

    def start(self, state: State, registrar: Registrar) -> None:
        """Get ready for a job; called before its first batch, with what its log says."""
        ...

    def hosts(self, state: State, standing: Standing) -> Sequence[WorkerHost]:
        """Return the workers, by their numbers, for the one who adjusts their loads between batches."""
        ...

    def compile(self, context: BatchContext) -> Compiled:
        """Parse the updates of a batch, where there are many."""
        ...

    def decided(self, batch_id: int, segment: pa.RecordBatch | None) -> None:
        """Take notice of what was decided; who reads the log finds it there."""
        ...

    def match(self, context: BatchContext) -> Heard:
        """Match the publications of a batch; on return all that came of them is in the sink."""
        ...


def compiled_here(sources: Iterable[Source], tokenizer: Tokenizer) -> Compiled:
    """Parse updates in this process."""
    compiled, rejected = [empty(COMPILED_UPDATES)], [nothing_rejected()]
    for updates, unread in _joined(batch for source in sources for batch in source.updates()):
        valid, malformed = compile_updates(updates, tokenizer)
        compiled.append(valid)
        rejected += [unread, malformed]
    return Compiled(concat(compiled), rejected)


def gathered(sources: tuple[Source, ...]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Join small packets, so that routing and sending cost as much for many of them as for one.

    Publications come with the records that were rejected before.
    """
    return _joined(part for source in sources for part in source.publications())


def _joined(
    parts: Iterable[tuple[pa.RecordBatch, pa.RecordBatch]],
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Join events, and what was rejected beside them, in portions of a bounded size."""
    events: list[pa.RecordBatch] = []
    rejected: list[pa.RecordBatch] = []
    n = n_bytes = 0
    for some, unread in parts:
        n, n_bytes = n + some.num_rows, n_bytes + _n_bytes(some)
        # Before the part joins them, which may be long itself: an Arrow array of texts holds 2 GiB.
        if events and (n > _ROUTE_AT_ONCE or n_bytes > _ROUTE_BYTES_AT_ONCE):
            yield concat(events), concat(rejected)
            events, rejected = [], []
            n, n_bytes = some.num_rows, _n_bytes(some)
        events.append(some)
        rejected.append(unread)
    if events:
        yield concat(events), concat(rejected)


def _n_bytes(batch: pa.RecordBatch) -> int:
    """Return about how long a batch is: what a slice shows of its buffers takes longer to tell."""
    n_bytes: int = batch.get_total_buffer_size()
    return n_bytes if n_bytes < _FEW_BYTES else batch.nbytes
