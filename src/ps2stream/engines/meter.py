"""A meter on a running stream: totals since the start, rates and latencies of the recent past."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from ps2stream.config import Settings
from ps2stream.engines.batch_tally import tally_batch
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.role_measures import measures_of, record_batch
from ps2stream.engines.tally import Tally, weighted_quantiles
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.metrics.recorder import Recorder
from ps2stream.roles.reports import WorkerReport
from ps2stream.sources.source import n_events

_WINDOW_S = 10.0


@dataclass(frozen=True, slots=True)
class RecentRates:
    """Rates of the last seconds; a latency is NaN where nothing came."""

    events_per_s: float
    matches_per_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    worker_busy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Batch:
    at: float
    duration_s: float
    n_events: int
    n_matches: int
    latencies: list[tuple[float, int]]
    worker_busy_s: dict[int, float]


class Meter:
    """Take in batches in the stream's thread, answer in any.

    ``keeps_latencies``: all of them, for quantiles over a whole run; a stream of months has none to spare.
    """

    def __init__(self, settings: Settings, *, keeps_latencies: bool = True) -> None:
        self._keeps_latencies = keeps_latencies
        self.tally = Tally.of(settings.n_workers, settings.n_dispatchers)
        self.n_batches = 0
        #: What is measured of the job as a whole; others may enter what they know.
        self.driver = Recorder("driver", 0)
        self._n_workers = settings.n_workers
        self._batches: deque[_Batch] = deque()
        self._lock = threading.Lock()

    def add(self, done: BatchDone) -> None:
        """Enter a batch whose deliveries are in the sink."""
        now = time.time()
        latencies = [wait for source in done.sources for wait in source.waits(now)]
        with self._lock:
            n_matches = self.tally.n_matches
            tally_batch(self.tally, done)
            if self._keeps_latencies:
                self.tally.latencies += latencies
            self.n_batches += 1
            busy = {each.worker: each.busy_s for each in done.reports if isinstance(each, WorkerReport)}
            entry = _Batch(
                time.monotonic(),
                done.duration_s,
                sum(map(n_events, done.sources)),
                self.tally.n_matches - n_matches,
                latencies,
                busy,
            )
            self._batches.append(entry)
        last_seq = max((source.last_seq for source in done.sources), default=0)
        record_batch(self.driver, done.duration_s, latencies, last_seq, done.commit_s)

    def measures(self, n_subscriptions: int = 0, n_restarts: int = 0) -> list[RoleMeasures]:
        """Return what all roles have measured; ``n_subscriptions``: those at the start of the stream."""
        with self._lock:
            # Before its first batch a job has said nothing of its subscriptions.
            n_live = self.tally.n_subscriptions if self.n_batches else n_subscriptions
            return measures_of(self.tally, self.driver, n_live, n_restarts)

    def forget_rates(self) -> None:
        """Let rates and latencies begin here; totals go on."""
        with self._lock:
            self._batches.clear()
            self.tally.latencies.clear()

    def recent(self) -> RecentRates:
        """Return the figures of the batches that ended in the last ten seconds."""
        now = time.monotonic()
        with self._lock:
            while self._batches and self._batches[0].at < now - _WINDOW_S:
                self._batches.popleft()
            batches = list(self._batches)
        if not batches:
            return RecentRates(0.0, 0.0, float("nan"), float("nan"), (0.0,) * self._n_workers)
        span_s = max(now - (batches[0].at - batches[0].duration_s), 1e-9)
        latencies = [each for batch in batches for each in batch.latencies]
        p50, p99 = weighted_quantiles(latencies, (0.5, 0.99))
        busy = (
            sum(batch.worker_busy_s.get(worker, 0.0) for batch in batches)
            for worker in range(self._n_workers)
        )
        return RecentRates(
            sum(batch.n_events for batch in batches) / span_s,
            sum(batch.n_matches for batch in batches) / span_s,
            p50,
            p99,
            tuple(min(1.0, each / span_s) for each in busy),
        )
