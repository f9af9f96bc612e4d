"""Latency of the micro-batch engine: a thread feeds its journal by schedule while the stream runs.

What was due is appended every 10 ms, durably, as a gateway would for many senders; the time that takes is
part of the latency. Publishers, Spark and its Python processes share the machine.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s
from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.partitioning.plan import Plan
from ps2stream.state.home_layout import HomeLayout
from ps2stream_bench.latency import Arrivals, Latency, RealClock, Timeline, arrivals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ps2stream.engines.durable_job import BatchDone

#: What is due is appended so often. Senders that append every event alone would measure SQLite.
_FEED_EVERY_S = 0.01

#: Subscriptions, and events for which no clock runs, are appended this many at a time.
_APPEND_AT_ONCE = 50_000

_LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class _Done:
    """A batch in the sink: when it was there, how long it took, and the last seq in it."""

    at: float
    took_s: float
    last_seq: int


@dataclass(slots=True)
class LiveStream:
    """A stream that runs on a journal, and the end of each of its batches."""

    journal: Journal
    check: Callable[[], None]
    _batches: list[_Done] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def add(self, done: BatchDone) -> None:
        """Take notice of a batch whose matches are in the sink; called in the stream's thread."""
        last_seq = max(source.last_seq for source in done.sources)
        with self._news:
            self._batches.append(_Done(time.perf_counter(), done.duration_s, last_seq))
            self._news.notify_all()

    @property
    def last_batch_s(self) -> float:
        """Return how long the job was at its latest batch."""
        return self._batches[-1].took_s

    def load(self, events: pa.RecordBatch) -> float:
        """Append events as fast as the journal takes them, wait for the last; return tuples/s."""
        started = time.perf_counter()
        for start in range(0, events.num_rows, _APPEND_AT_ONCE):
            last_seq = self.journal.append(events.slice(start, _APPEND_AT_ONCE)).last_seq
        self._wait_for(last_seq)
        return float(events.num_rows / (self._batches[-1].at - started))

    def latency(
        self, events: pa.RecordBatch, tuples_per_s: float, *, seed: int = 0, how: Arrivals = "poisson"
    ) -> Latency:
        """Append events when they are due; return how long each took to the sink."""
        due_s = arrivals(events.num_rows, tuples_per_s, seed, how)
        n_before, seq_before = len(self._batches), self.journal.last().seq
        started = time.perf_counter()
        with ThreadPoolExecutor(1, "feeding") as feeding:
            fed = feeding.submit(_feed, self.journal, events, due_s)
            self._wait_for(seq_before + events.num_rows, fed)
        return _timeline(due_s, self._batches[n_before:], started, seq_before).latency(tuples_per_s)

    def _wait_for(self, seq: int, fed: Future[None] | None = None) -> None:
        with self._news:
            while not self._batches or self._batches[-1].last_seq < seq:
                self.check()
                if fed and fed.done():
                    fed.result()
                self._news.wait(_LOOK_EVERY_S)


@contextlib.contextmanager
def live_stream(
    spark: SparkSession,
    directory: Path,
    plan: Plan,
    settings: Settings,
    loading: pa.RecordBatch,
    *,
    prune: bool = False,
) -> Iterator[LiveStream]:
    """Run a stream on a new journal in a directory, with subscriptions loaded before anybody looks."""
    from ps2stream.engines.spark.stream import journal_stream

    home = HomeLayout(directory)
    with Journal.open(home.journal, create=True) as journal:
        live = LiveStream(journal, check=lambda: stream.check())
        with journal_stream(
            spark, home.journal, home.state, home.out, settings, plan=plan, on_batch=live.add, prune=prune
        ) as stream:
            live.load(loading)
            yield live


def _feed(journal: Journal, events: pa.RecordBatch, due_s: Float64s) -> None:
    clock, start = RealClock(), 0
    while start < len(due_s):
        clock.wait_until(max(float(due_s[start]), clock.now() + _FEED_EVERY_S))
        stop = int(np.searchsorted(due_s, clock.now(), side="right"))
        if stop > start:
            journal.append(events.slice(start, stop - start))
            start = stop


def _timeline(due_s: Float64s, batches: list[_Done], started: float, seq_before: int) -> Timeline:
    """Lay the batches that followed a seq over the schedule of its tuples."""
    last_seqs = np.array([each.last_seq for each in batches])
    first = np.concatenate([[0], last_seqs[:-1] - seq_before])
    done_s = np.array([each.at - started for each in batches])
    began_s = done_s - np.array([each.took_s for each in batches])
    return Timeline(due_s, first, began_s, done_s)
