"""What a publication costs: engines that differ in one knob take turns, each on a stream of its own.

An engine has one worker and one dispatcher in one process, so there is nothing to divide and every role's
work is on the same clock: CPU time of this process. Most subscriptions are loaded and stay; some come and go
in the paper's mix of five publications to one update, and their number does not change.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.engines.inline import InlineEngine
from ps2stream.model.schemas import EVENTS
from ps2stream.partitioning.plan import Plan
from ps2stream_bench.engines import Meter, Stream, batches_of, check_alike, collected, warm_once
from ps2stream_bench.figure import Case, Context, Scale
from ps2stream_bench.machine import resident_bytes
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import (
    Corpus,
    Kind,
    Shape,
    mixed_events,
    subscribe_events,
)

#: Subscriptions are made and loaded in chunks of this many: ten million events at once would take gigabytes.
_CHUNK = 100_000
_BATCH_EVENTS = 20_000
_KINDS: tuple[Kind, ...] = ("q1", "q2")

#: A value of a knob.
Value = TypeVar("Value", int, float)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a case is; ``n_publications`` are those of one repetition.

    All engines of a case are in memory at once, up to nine of them; that bounds the subscriptions of each.
    """

    n_live: int
    n_corpus: int
    n_publications: int
    n_repetitions: int

    def case(self, kind: Kind) -> Case:
        """Return the case of a kind of subscriptions."""
        return Case(
            {
                "country": "us",
                "kind": kind,
                "n_live": self.n_live,
                "n_corpus": self.n_corpus,
                "n_publications": self.n_publications,
                "n_repetitions": self.n_repetitions,
            }
        )


_SIZES: dict[Scale, Size] = {
    "tiny": Size(1_000, 2_000, 500, 2),
    "small": Size(100_000, 200_000, 20_000, 7),
    "paper": Size(2_000_000, 1_000_000, 100_000, 9),
}


def cases(scale: Scale) -> list[Case]:
    """Return a case for Q1 and one for Q2; all values of a knob belong to each."""
    return [_SIZES[scale].case(kind) for kind in _KINDS]


@dataclass(frozen=True, slots=True)
class Group:
    """Subscriptions of one shape; ``corpus``: where their words and places are from, if not as usual."""

    n: int
    shape: Shape = field(default_factory=Shape)
    corpus: Corpus | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """An engine with one value of the knob: what is loaded and stays, and what comes and goes."""

    corpus: Corpus
    kind: Kind
    staying: tuple[Group, ...]
    changing: Group
    grid_bits: int | None = None

    @property
    def n_staying(self) -> int:
        return sum(group.n for group in self.staying)

    @property
    def n_live(self) -> int:
        return self.n_staying + self.changing.n


def contender(case: Case, corpus: Corpus, shape: Shape | None = None, **fields: int) -> Contender:
    """Return an engine with as many subscriptions of one shape as the case has live."""
    shape = shape or Shape()
    n_changing = n_changing_of(case["n_live"])
    staying = (Group(case["n_live"] - n_changing, shape),)
    return Contender(corpus, case["kind"], staying, Group(n_changing, shape), **fields)


def n_changing_of(n_live: int) -> int:
    """Return how many of the subscriptions come and go."""
    return min(n_live // 2, _CHUNK // 2)


def compare(
    case: Case, context: Context, knob: str, contenders: Mapping[Value, Contender], *, alike: bool = False
) -> Iterator[Row]:
    """Load an engine for every value of a knob and let them take turns.

    Yields a row of the loading for each, then a row for each and every repetition. ``alike``: all of them
    must deliver the same matches.
    """
    warm_once()
    # One part more than is measured: in the first one caches and branch predictors are cold.
    n_parts = case["n_repetitions"] + 1
    lanes: dict[Value, _Lane] = {}
    plans: dict[int, Plan] = {}
    for value, each in contenders.items():
        stream = _stream(each, n_parts * case["n_publications"], context.seed)
        settings = _settings(each, stream)
        if id(each.corpus) not in plans:  # with one worker only the texts make a plan differ
            plans[id(each.corpus)] = stream.plan(settings)
        engine = InlineEngine(plans[id(each.corpus)], settings)
        loading = _load(engine, each, stream, context.seed)
        lanes[value] = _Lane(Meter(engine), _copied(stream.mixed))
        yield {knob: value, "phase": "load", "repetition": 0, **loading}
    rng = np.random.default_rng([context.seed, 8])
    values = list(lanes)
    for number in range(n_parts):
        rows = []
        with collected():
            for index in rng.permutation(len(values)):
                read = lanes[values[index]].run(number, n_parts)
                rows.append({knob: values[index], "phase": "run", "repetition": number - 1, **read})
        if alike:
            check_alike(rows, knob)
        if number:
            yield from rows


@dataclass(slots=True)
class _Lane:
    """An engine on its stream."""

    meter: Meter
    mixed: pa.RecordBatch
    _n_lists_read: int = 0

    def run(self, number: int, n_parts: int) -> Row:
        """Process one of equal parts of the stream; return what that cost."""
        size = self.mixed.num_rows // n_parts
        for batch in batches_of(self.mixed.slice(number * size, size), _BATCH_EVENTS):
            self.meter.process(batch)
        row = self.meter.read()
        per_publication = 1e6 / max(row["n_publications"], 1)
        n_lists_before, self._n_lists_read = self._n_lists_read, _n_lists_read(self.meter.engine)
        return row | {
            "cost_us": row["cpu_s"] * per_publication,
            "dispatcher_us": row["busiest_dispatcher_s"] * per_publication,
            "worker_us": row["workers_busy_s"] * per_publication,
            "registrar_us": row["registrar_busy_s"] * per_publication,
            "merger_us": row["merger_busy_s"] * per_publication,
            "lists_per_publication": (self._n_lists_read - n_lists_before) * per_publication / 1e6,
        }


def _n_lists_read(engine: InlineEngine) -> int:
    return int(sum(worker.index.cell_counters()["lookups"].sum() for worker in engine.workers))


def _settings(each: Contender, stream: Stream) -> Settings:
    fields = {} if each.grid_bits is None else {"grid_bits": each.grid_bits}
    return stream.settings(n_workers=1, n_dispatchers=1, **fields)


def _load(engine: InlineEngine, each: Contender, stream: Stream, seed: int) -> Row:
    """Fill an engine and return what that cost; the making of events is not on the clock."""
    load_s = 0.0
    with collected():
        resident_before = _settled_bytes()
        for batch in _loading(each, stream, seed):
            started = time.process_time()
            engine.process(batch)
            load_s += time.process_time() - started
        resident = _settled_bytes() - resident_before
    (worker,) = engine.workers
    counts, n_live = worker.index.counts(), max(each.n_live, 1)
    return {
        "n_loaded": counts.n_subscriptions,
        "load_s": load_s,
        "loads_per_s": n_live / max(load_s, 1e-9),
        "inserts_per_s": n_live / max(engine.tally.workers[0].busy_s, 1e-9),
        "index_bytes": counts.n_bytes,
        "bytes_per_subscription": counts.n_bytes / n_live,
        "resident_bytes": resident,
        "resident_bytes_per_subscription": resident / n_live,
        "dispatcher_bytes_per_subscription": sum(each.n_bytes for each in engine.registrar.grid_ts.parts)
        / n_live,
        "postings_per_subscription": counts.n_postings / n_live,
        "postings_per_list": counts.n_postings / max(counts.n_lists, 1),
    }


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy events: a slice would keep all that it was cut from in memory."""
    return batch.take(pa.array(np.arange(batch.num_rows)))


def _settled_bytes() -> int:
    """Return the memory of this process once it has let go of what nobody uses, as far as it can."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only the C library of most Linuxes can
        ctypes.CDLL(None).malloc_trim(0)
    return resident_bytes()


def _stream(each: Contender, n_publications: int, seed: int) -> Stream:
    """Make the changing part of a contender's events, numbered behind those that stay."""
    changing = each.changing
    events = mixed_events(each.corpus, each.kind, changing.n, n_publications, seed, shape=changing.shape)
    (batch,) = renumbered(events, 1 + each.n_staying).combine_chunks().to_batches()
    return Stream(batch, changing.n, each.corpus.stop_words)


def _loading(each: Contender, stream: Stream, seed: int) -> Iterator[pa.RecordBatch]:
    """Make the subscriptions that stay, chunk by chunk, then take those that will change."""
    first = 1
    for group in each.staying:
        yield from chunks_of(group, group.corpus or each.corpus, each.kind, first, seed)
        first += group.n
    yield from batches_of(stream.loading, _CHUNK)


def chunks_of(group: Group, corpus: Corpus, kind: Kind, first: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Make subscriptions with seqs from ``first`` on, and ids that no stream of the workload has."""
    for start in range(first, first + group.n, _CHUNK):
        size = min(_CHUNK, first + group.n - start)
        (chunk_seed,) = np.random.SeedSequence([seed, 9, start]).generate_state(1).tolist()
        events = subscribe_events(corpus, kind, size, chunk_seed, shape=group.shape)
        ids = pa.array([f"stays-{seq}" for seq in range(start, start + size)])
        index = EVENTS.get_field_index("id")
        renamed = renumbered(events, start).set_column(index, EVENTS.field(index), ids)
        yield from renamed.combine_chunks().to_batches()


def renumbered(events: pa.Table, first: int) -> pa.Table:
    """Give events seqs from ``first`` on."""
    return events.set_column(
        0, EVENTS.field("seq"), pa.array(np.arange(first, first + events.num_rows), pa.int64())
    )
