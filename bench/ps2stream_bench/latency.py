"""Latency of an open loop: events are due by a schedule, whether the engine keeps up or not.

A closed loop asks for the next tuple when the last one is done; a stall of a second then delays one tuple,
and the thousand that would have come meanwhile are never counted (*coordinated omission*). Here every tuple
has a time at which it is due, made before the run, and its latency is from then until its batch is in the
sink. Whatever is due when the engine is free makes up the next batch.

Three engines are measured so: the inline one by the real clock, a cluster with a core for every role by a
virtual clock that measured CPU time drives (*projected*), and the micro-batch one on a journal that is fed
by schedule.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s
from ps2stream.engines.inline import InlineEngine
from ps2stream.sinks.parquet import ParquetSink
from ps2stream_bench.engines import collected
from ps2stream_bench.results import Row

#: How tuples arrive: by chance, as from many senders that know nothing of each other, or at equal distances.
Arrivals = Literal["poisson", "even"]

#: The most events of a batch. A larger one is hardly cheaper per event, and all of it waits for its end.
MAX_BATCH = 10_000

#: An engine may be behind by this share of the time that was looked at, and still count as keeping up.
_SLACK = 0.05

_QUANTILES = (0.5, 0.9, 0.99, 0.999)

#: Take a batch to its end; return how long that takes, or None when the clock has seen it.
Process = Callable[[pa.RecordBatch], float | None]


@dataclass(frozen=True, slots=True)
class Latency:
    """What tuples met on their way: quantiles over tuples, in milliseconds.

    Latency is the sum of waiting, until the tuple's batch began, and processing, until that is in the sink.
    """

    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p99_9_ms: float
    max_ms: float
    waiting_mean_ms: float
    processing_mean_ms: float
    offered_tuples_per_s: float
    achieved_tuples_per_s: float
    kept_up: bool
    n_tuples: int
    n_batches: int

    def row(self) -> Row:
        """Return the fields as a row has them."""
        return {
            "latency_mean_ms": self.mean_ms,
            "latency_p50_ms": self.p50_ms,
            "latency_p90_ms": self.p90_ms,
            "latency_p99_ms": self.p99_ms,
            "latency_p99_9_ms": self.p99_9_ms,
            "latency_max_ms": self.max_ms,
            "waiting_mean_ms": self.waiting_mean_ms,
            "processing_mean_ms": self.processing_mean_ms,
            "offered_tuples_per_s": self.offered_tuples_per_s,
            "achieved_tuples_per_s": self.achieved_tuples_per_s,
            "kept_up": self.kept_up,
            "n_tuples": self.n_tuples,
            "n_batches": self.n_batches,
            "mean_batch_events": self.n_tuples / self.n_batches,
        }


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each tuple was due, and of each batch its first tuple, when it began and when it was in the sink.

    All in seconds from the start of the schedule.
    """

    due_s: Float64s
    first: Int64s
    began_s: Float64s
    done_s: Float64s

    def latencies_s(self) -> Float64s:
        """Return the latency of every tuple."""
        return self._of_tuples(self.done_s) - self.due_s

    def latency(self, tuples_per_s: float) -> Latency:
        """Sum up what was offered at a rate."""
        latency_ms = self.latencies_s() * 1000
        # A quantile is the latency of some tuple, as it is for the engine's own figures.
        p50, p90, p99, p99_9 = np.quantile(latency_ms, _QUANTILES, method="inverted_cdf")
        waiting_ms = (self._of_tuples(self.began_s) - self.due_s) * 1000
        return Latency(
            float(latency_ms.mean()),
            float(p50),
            float(p90),
            float(p99),
            float(p99_9),
            float(latency_ms.max()),
            float(waiting_ms.mean()),
            float((latency_ms - waiting_ms).mean()),
            tuples_per_s,
            len(self.due_s) / float(self.done_s[-1]),
            self.kept_up(),
            len(self.due_s),
            len(self.first),
        )

    def kept_up(self) -> bool:
        """Say whether the engine did not fall further and further behind.

        When offered more than it can do, latency grows with time, as fast at the end as at the beginning: no
        multiple of an early latency tells that from a slow but steady engine. Growth is compared with time.
        The last quarter may wait longer than the second one by one batch and 5 % of the time between them,
        and the end may come two batches (one that runs, one that has gathered) and 5 % of the whole after the
        last tuple was due. It takes some twenty batches to notice a load of 120 %.
        """
        latencies_s, n = self.latencies_s(), len(self.due_s)
        second, last = slice(n // 4, max(n // 2, n // 4 + 1)), slice(n * 3 // 4, n)
        growth_s = float(np.median(latencies_s[last]) - np.median(latencies_s[second]))
        apart_s = float(np.median(self.due_s[last]) - np.median(self.due_s[second]))
        overdue_s = float(self.done_s[-1] - self.due_s[-1])
        batch_s = self._batch_s()
        return growth_s <= batch_s + _SLACK * apart_s and overdue_s <= 2 * batch_s + _SLACK * float(
            self.due_s[-1]
        )

    def _batch_s(self) -> float:
        """Return the usual time of a batch, from when it could begin to the sink.

        Only the first half counts: later on, a backlog may have made batches longer.
        """
        could_begin = np.maximum(self.due_s[self.first], np.concatenate([[0.0], self.done_s[:-1]]))
        in_time = could_begin <= max(float(self.due_s[-1]) / 2, float(could_begin[0]))
        return float(np.median((self.done_s - could_begin)[in_time]))

    def _of_tuples(self, of_batches: Float64s) -> Float64s:
        return np.repeat(of_batches, np.diff(self.first, append=len(self.due_s)))


def arrivals(n: int, tuples_per_s: float, seed: int, how: Arrivals = "poisson") -> Float64s:
    """Return when each of ``n`` tuples is due, in seconds from the start and in order."""
    if n < 1 or tuples_per_s <= 0:
        raise ValueError(f"a schedule needs tuples and a rate above 0; got {n:,} at {tuples_per_s:,}/s")
    duration_s = n / tuples_per_s
    if how == "even":
        return np.arange(1, n + 1) / tuples_per_s
    # Poisson arrivals of which n are known to have come in a time are n even draws: the rate is met exactly.
    return np.sort(np.random.default_rng([seed, 11]).uniform(0.0, duration_s, n))


class Clock(Protocol):
    """A clock that begins at 0; what takes time on it either passes by itself or is told."""

    def now(self) -> float: ...

    def wait_until(self, when_s: float) -> None: ...

    def spend(self, seconds: float) -> None: ...


class RealClock:
    """The clock on the wall."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def now(self) -> float:
        return time.perf_counter() - self._started

    def wait_until(self, when_s: float) -> None:
        time.sleep(max(when_s - self.now(), 0.0))

    def spend(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(slots=True)
class VirtualClock:
    """A clock that stands still until time is spent."""

    now_s: float = 0.0

    def now(self) -> float:
        return self.now_s

    def wait_until(self, when_s: float) -> None:
        self.now_s = max(self.now_s, when_s)

    def spend(self, seconds: float) -> None:
        self.now_s += seconds


def open_loop(
    process: Process, events: pa.RecordBatch, due_s: Float64s, clock: Clock, max_batch: int = MAX_BATCH
) -> Timeline:
    """Process batch after batch of what is due by then: at least one event, at most ``max_batch``."""
    batches: list[tuple[int, float, float]] = []
    start = 0
    while start < len(due_s):
        clock.wait_until(float(due_s[start]))
        began_s = clock.now()
        n_due = int(np.searchsorted(due_s, began_s, side="right"))
        if n_due <= start:  # a sleep may end a little early
            continue
        stop = min(n_due, start + max_batch)
        took_s = process(events.slice(start, stop - start))
        if took_s is not None:
            clock.spend(took_s)
        batches.append((start, began_s, clock.now()))
        start = stop
    first, began, done = zip(*batches, strict=True)
    return Timeline(due_s, np.array(first), np.array(began), np.array(done))


def inline_latency(
    engine: InlineEngine,
    events: pa.RecordBatch,
    tuples_per_s: float,
    sink: Path | None = None,
    *,
    max_batch: int = MAX_BATCH,
    seed: int = 0,
    how: Arrivals = "poisson",
) -> Latency:
    """Offer events to an engine by the real clock; matches are written to the sink when one is given.

    The events have to come after all that the engine has seen. A sink is emptied first.
    """
    _check_order(engine, events)
    process = _through_sink(engine, sink)
    due_s = arrivals(events.num_rows, tuples_per_s, seed, how)
    with _settled():
        return open_loop(process, events, due_s, RealClock(), max_batch).latency(tuples_per_s)


def projected_latency(
    engine: InlineEngine,
    events: pa.RecordBatch,
    tuples_per_s: float,
    *,
    max_batch: int = MAX_BATCH,
    seed: int = 0,
    how: Arrivals = "poisson",
) -> Latency:
    """Offer events to a cluster that has a core for every role, by a virtual clock.

    A batch takes what the registrar, the busiest dispatcher, the busiest worker and the merger need for it,
    one after the other. Network and sink take no time; the next batch begins when the one before is done,
    though a cluster would have its roles work on several at once.
    """
    _check_order(engine, events)
    due_s = arrivals(events.num_rows, tuples_per_s, seed, how)
    with collected():
        return open_loop(_projected(engine), events, due_s, VirtualClock(), max_batch).latency(tuples_per_s)


def _check_order(engine: InlineEngine, events: pa.RecordBatch) -> None:
    """Refuse events that the engine would reject as late: it would be fast for nothing."""
    if events.num_rows and events.column("seq")[0].as_py() <= engine.high_water:
        first = events.column("seq")[0].as_py()
        raise ValueError(f"events must have seqs above {engine.high_water}; the first has {first}")


def _through_sink(engine: InlineEngine, directory: Path | None) -> Process:
    sink = ParquetSink.at(directory) if directory else None
    if sink:
        sink.clear()
    n_batches = 0

    def process(batch: pa.RecordBatch) -> None:
        nonlocal n_batches
        outcome = engine.process(batch)
        if sink:
            sink.write_matches(n_batches, 0, outcome.matches.to_batches())
            sink.write_rejected(n_batches, "engine", outcome.rejected)
        n_batches += 1

    return process


def _projected(engine: InlineEngine) -> Process:
    tally = engine.tally

    def busy_s() -> tuple[float, Float64s, Float64s]:
        alone = tally.registrar_busy_s + tally.merger_busy_s
        dispatchers = np.array([each.busy_s for each in tally.dispatchers])
        return alone, dispatchers, np.array([each.busy_s for each in tally.workers])

    def process(batch: pa.RecordBatch) -> float:
        alone, dispatchers, workers = busy_s()
        engine.process(batch)
        alone_after, dispatchers_after, workers_after = busy_s()
        in_parallel = (dispatchers_after - dispatchers).max() + (workers_after - workers).max()
        return float(alone_after - alone + in_parallel)

    return process


@contextlib.contextmanager
def _settled() -> Iterator[None]:
    """Let Python's garbage collector care for what is made from now on only.

    It stays on, as its pauses are part of latency; but what earlier cases left behind is not the engine's.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
