"""PS2Stream as it is measured: inline engines on one stream, which take turns batch by batch.

On few cores the clock shows total work, not balance. So two rates are taken of every run: *measured*
tuples/s by the clock on the wall, all roles on one core; and *projected* tuples/s of a cluster that has a
core for every role, which the busiest worker or dispatcher sets.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.inline import InlineEngine
from ps2stream.engines.kernel_warmup import warm
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import first_plan
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import Corpus, Kind, Shape, drifting_events, mixed_events

#: Subscriptions are loaded in batches of this many.
_LOAD_AT_ONCE = 100_000

#: Fingerprints fit into a signed column.
_FINGERPRINTS = 1 << 62


@dataclass(frozen=True, slots=True)
class Stream:
    """``n_live`` subscriptions to load, then publications and updates at 5 to 1."""

    events: pa.RecordBatch
    n_live: int
    stop_words: tuple[str, ...]

    @property
    def loading(self) -> pa.RecordBatch:
        return self.events.slice(0, self.n_live)

    @property
    def mixed(self) -> pa.RecordBatch:
        return self.events.slice(self.n_live)

    def settings(self, **fields: object) -> Settings:
        """Return settings for this stream: its stop words, no adjustment, and what else is given."""
        off = AdjustmentSettings(scope="off")
        usual = Settings(stop_words=self.stop_words, adjustment=off, sample_events=100_000)
        return replace(usual, **fields)  # type: ignore[arg-type]

    def plan(self, settings: Settings) -> Plan:
        """Make a plan from a sample of the whole stream."""
        return first_plan(self.events, replace(settings, sample_prefix_events=self.events.num_rows))


def stream_of(
    corpus: Corpus, kind: Kind, n_live: int, n_publications: int, seed: int, *, shape: Shape | None = None
) -> Stream:
    """Make a stream of one kind."""
    return _stream(
        corpus, mixed_events(corpus, kind, n_live, n_publications, seed, shape=shape or Shape()), n_live
    )


def drifting_stream_of(
    corpus: Corpus, n_live: int, n_publications: int, seed: int, *, n_intervals: int, rush: float = 1.0
) -> Stream:
    """Make a Q3 stream whose regions change from interval to interval."""
    events = drifting_events(corpus, n_live, n_publications, seed, n_intervals=n_intervals, rush=rush)
    return _stream(corpus, events, n_live)


def _stream(corpus: Corpus, events: pa.Table, n_live: int) -> Stream:
    (batch,) = events.combine_chunks().to_batches()
    return Stream(batch, n_live, corpus.stop_words)


def batches_of(events: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Cut events into batches."""
    for start in range(0, events.num_rows, size):
        yield events.slice(start, size)


def loaded(plan: Plan, settings: Settings, loading: pa.RecordBatch) -> InlineEngine:
    """Start an engine and load subscriptions into it."""
    warm_once()
    engine = InlineEngine(plan, settings)
    for batch in batches_of(loading, _LOAD_AT_ONCE):
        engine.process(batch)
    return engine


@cache
def warm_once() -> None:
    """Load the kernels, unless this process has done so."""
    warm()


@dataclass(slots=True)
class Meter:
    """Run an engine and read what it has done since the last reading."""

    engine: InlineEngine
    _wall_s: float = 0.0
    _cpu_s: float = 0.0
    _fingerprint: int = 0
    _before: _Totals = field(init=False)

    def __post_init__(self) -> None:
        self._before = _Totals.of(self.engine)

    def process(self, batch: pa.RecordBatch) -> pa.Table:
        """Let the engine process a batch on the clock; return its matches."""
        wall, cpu = time.perf_counter(), time.process_time()
        outcome = self.engine.process(batch)
        self._wall_s += time.perf_counter() - wall
        self._cpu_s += time.process_time() - cpu
        self._fingerprint += fingerprint(outcome.matches)
        return outcome.matches

    def read(self) -> Row:
        """Return a row of figures, and begin anew."""
        now, before = _Totals.of(self.engine), self._before
        wall_s, cpu_s = self._wall_s, self._cpu_s
        matched = self._fingerprint % _FINGERPRINTS
        self._before, self._wall_s, self._cpu_s, self._fingerprint = now, 0.0, 0.0, 0
        workers, dispatchers = now.workers_s - before.workers_s, now.dispatchers_s - before.dispatchers_s
        n_events, n_publications = now.n_events - before.n_events, now.n_publications - before.n_publications
        n_discarded = now.n_discarded - before.n_discarded
        made = self.engine.tally.adjustments[before.n_adjustments :]
        busiest = max(float(workers.max()), float(dispatchers.max()), 1e-9)
        per_publication = max(n_publications, 1)
        return {
            "n_events": n_events,
            "n_publications": n_publications,
            "n_matches": now.n_matches - before.n_matches,
            "fingerprint": matched,
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "tuples_per_s": n_events / max(wall_s, 1e-9),
            "projected_tuples_per_s": n_events / busiest,
            "worker_tuples_per_s": n_events / max(float(workers.max()), 1e-9),
            "limit": "worker" if workers.max() >= dispatchers.max() else "dispatcher",
            "workers_busy_s": float(workers.sum()),
            "busiest_worker_s": float(workers.max()),
            "busiest_dispatcher_s": float(dispatchers.max()),
            "registrar_busy_s": now.registrar_s - before.registrar_s,
            "merger_busy_s": now.merger_s - before.merger_s,
            "busy_max_over_mean": float(workers.max() / max(workers.mean(), 1e-9)),
            "busy_max_over_min": float(workers.max() / max(workers.min(), 1e-9)),
            "fan_out": (now.n_sent - before.n_sent) / max(n_publications - n_discarded, 1),
            "discarded_share": n_discarded / per_publication,
            "candidates_per_publication": (now.n_candidates - before.n_candidates) / per_publication,
            "matches_per_publication": (now.n_matches - before.n_matches) / per_publication,
            "n_live": now.n_live,
            "replication": now.n_stored / max(now.n_live, 1),
            "index_bytes": now.index_bytes,
            "worker_bytes": now.index_bytes / len(workers),
            "dispatcher_bytes": sum(grid_t.n_bytes for grid_t in self.engine.registrar.grid_ts.parts),
            "n_adjustments": len(made),
            "n_moved": sum(each.n_subscriptions for each in made),
            "moved_bytes": sum(each.n_bytes for each in made),
            "longest_pause_s": max((each.pause_s for each in made), default=0.0),
            "share_over_100_ms": _delayed(made, 0.1) / per_publication,
            "share_over_1_s": _delayed(made, 1.0) / per_publication,
        }


@dataclass(frozen=True, slots=True)
class _Totals:
    """What an engine has done from its start until now."""

    n_events: int
    n_publications: int
    n_discarded: int
    n_sent: int
    n_candidates: int
    n_matches: int
    n_live: int
    n_stored: int
    index_bytes: int
    n_adjustments: int
    registrar_s: float
    merger_s: float
    workers_s: Float64s
    dispatchers_s: Float64s

    @classmethod
    def of(cls, engine: InlineEngine) -> _Totals:
        tally, indexes = engine.tally, [worker.index.counts() for worker in engine.workers]
        return cls(
            tally.n_events,
            tally.n_publications,
            tally.n_discarded,
            sum(each.n_sent for each in tally.dispatchers),
            sum(each.n_candidates for each in tally.workers),
            tally.n_matches,
            tally.n_subscriptions,
            sum(index.n_subscriptions for index in indexes),
            sum(index.n_bytes for index in indexes),
            len(tally.adjustments),
            tally.registrar_busy_s,
            tally.merger_busy_s,
            np.array([each.busy_s for each in tally.workers]),
            np.array([each.busy_s for each in tally.dispatchers]),
        )


def in_turns(
    meters: Mapping[str, Meter],
    batches: Iterable[pa.RecordBatch],
    seed: int,
    after: Callable[[int], None] = lambda number: None,
) -> None:
    """Let contenders process batch after batch, each time in another order, the same for the same seed.

    ``after`` is called with the number of every batch that all of them have done.
    """
    rng = np.random.default_rng([seed, 8])
    names = list(meters)
    for number, batch in enumerate(batches):
        with collected():
            for index in rng.permutation(len(names)):
                meters[names[index]].process(batch)
        after(number)


def check_alike(rows: Iterable[Row], contender: str) -> None:
    """Refuse rows of one turn whose contenders do not deliver the same matches."""
    found = {str(row[contender]): (int(row["n_matches"]), row.get("fingerprint")) for row in rows}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} {n:,} (fingerprint {mixed})" for name, (n, mixed) in found.items())
        raise ValueError(f"all contenders must deliver the same matches; got {told}")


def fingerprint(matches: pa.RecordBatch | pa.Table) -> int:
    """Return a sum over matches that their order does not change, and that any other match would."""
    published, subscribed = (
        matches.column(name).to_numpy(zero_copy_only=False).astype(np.uint64)
        for name in ("publication_seq", "subscription_seq")
    )
    # Wraps around, as products of hashing do; xor and shift keep pairs from trading their partners unnoticed.
    mixed = (published * np.uint64(0x9E3779B97F4A7C15)) ^ (subscribed * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed ^= mixed >> np.uint64(29)
    return int((mixed * np.uint64(0xBF58476D1CE4E5B9)).sum(dtype=np.uint64)) % _FINGERPRINTS


@contextlib.contextmanager
def collected() -> Iterator[None]:
    """Keep Python's garbage collector away: it would charge what all roles left behind to one of them."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _delayed(made: list[Adjustment], more_than_s: float) -> int:
    return sum(each.n_delayed for each in made if each.pause_s > more_than_s)
