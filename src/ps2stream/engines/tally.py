"""The tally of a run: counts of all batches, and the report made of them."""

from __future__ import annotations

import math
import resource
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ps2stream.balance.adjustments import Adjustment
from ps2stream.roles.reports import WorkerReport
from ps2stream.store.traffic import NO_TRAFFIC, Traffic


@dataclass(slots=True)
class WorkerTally:
    """What one worker did, and how large its index is now."""

    n_publications: int = 0
    n_updates: int = 0
    n_candidates: int = 0
    n_matches: int = 0
    n_subscriptions: int = 0
    n_bytes: int = 0
    busy_s: float = 0.0
    host: str = ""
    n_moves: int = 0
    n_rebuilds: int = 0
    rebuild_s: float = 0.0

    def add(self, report: WorkerReport) -> None:
        """Enter what the worker did in a batch."""
        self.n_publications += report.n_publications
        self.n_updates += report.n_updates
        self.n_candidates += report.n_candidates
        self.n_matches += report.n_matches
        self.n_subscriptions, self.n_bytes = report.n_subscriptions, report.n_bytes
        self.busy_s += report.busy_s
        self.n_moves += bool(self.host) and report.host != self.host
        self.host = report.host
        self.n_rebuilds += report.rebuild_s > 0
        self.rebuild_s += report.rebuild_s


@dataclass(slots=True)
class DispatcherTally:
    n_publications: int = 0
    n_discarded: int = 0
    n_sent: int = 0
    busy_s: float = 0.0


@dataclass(slots=True)
class Tally:
    """Add up batches as they are done."""

    workers: list[WorkerTally]
    dispatchers: list[DispatcherTally]
    n_publications: int = 0
    n_updates: int = 0
    n_matches: int = 0
    n_rejected: int = 0
    n_subscriptions: int = 0
    registrar_busy_s: float = 0.0
    merger_busy_s: float = 0.0
    driver_traffic: Traffic = NO_TRAFFIC
    task_traffic: Traffic = NO_TRAFFIC
    latencies: list[tuple[float, int]] = field(default_factory=list)  # (seconds, events)
    adjustments: list[Adjustment] = field(default_factory=list)
    n_batches: int = 0
    #: (when, events, publications) so far: at the end of loading, and at the end of the newest batch.
    marks: list[tuple[float, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, n_workers: int, n_dispatchers: int) -> Tally:
        return cls(
            [WorkerTally() for _ in range(n_workers)], [DispatcherTally() for _ in range(n_dispatchers)]
        )

    @property
    def n_events(self) -> int:
        return self.n_publications + self.n_updates

    @property
    def n_discarded(self) -> int:
        return sum(dispatcher.n_discarded for dispatcher in self.dispatchers)

    def mark(self) -> None:
        """Remember how far the run is now; called at the end of every batch.

        What nobody will ask for is forgotten: a stream may run for months.
        """
        self.n_batches += 1
        kept = self.marks[:1] if self.n_publications else []
        self.marks = [*kept, (time.monotonic(), self.n_events, self.n_publications)]

    def matching_tuples_per_s(self) -> float:
        """Return the rate from the first batch that matched something on; NaN where there is none.

        A log that begins with a million subscriptions is loaded first; this leaves that out.
        """
        loading = [mark for mark in self.marks if mark[2] == 0] or self.marks[:1]
        if not self.marks or self.marks[-1][0] <= loading[-1][0]:
            return float("nan")
        return (self.marks[-1][1] - loading[-1][1]) / (self.marks[-1][0] - loading[-1][0])

    def store_traffic(self) -> dict[str, Any]:
        """Return what object stores were asked, in all, by the driver and by tasks; and what a batch cost.

        Of tasks that Spark ran again, what the last attempt asked counts: the others tell nothing.
        """
        total = self.driver_traffic + self.task_traffic
        per_batch = {name: number / max(self.n_batches, 1) for name, number in asdict(total).items()}
        return {
            **asdict(total),
            "driver": asdict(self.driver_traffic),
            "tasks": asdict(self.task_traffic),
            "batches": self.n_batches,
            "per_batch": per_batch,
        }

    def adjusted(self, record: Adjustment) -> None:
        """Enter an adjustment, or what has become known about it since."""
        known = {each.batch_id: row for row, each in enumerate(self.adjustments)}
        if record.batch_id in known:
            self.adjustments[known[record.batch_id]] = record
        else:
            self.adjustments.append(record)

    def latency_ms(self, *quantiles: float) -> list[float]:
        """Return quantiles over events; NaN while there are none."""
        return weighted_quantiles(self.latencies, quantiles)

    def report(self, wall_s: float) -> dict[str, Any]:
        """Return the figures of a run as plain values."""
        n_bytes = sum(worker.n_bytes for worker in self.workers)
        stored = sum(worker.n_subscriptions for worker in self.workers)
        busiest = max([worker.busy_s for worker in self.workers] + [each.busy_s for each in self.dispatchers])
        per_publication = max(self.n_publications, 1)
        p50, p90, p99, p999 = self.latency_ms(0.5, 0.9, 0.99, 0.999)
        return {
            "events": self.n_events,
            "publications": self.n_publications,
            "updates": self.n_updates,
            "matches": self.n_matches,
            "rejected": self.n_rejected,
            "discarded_publications": self.n_discarded,
            "live_subscriptions": self.n_subscriptions,
            "wall_s": wall_s,
            "tuples_per_s": self.n_events / wall_s if wall_s else 0.0,
            "matching_tuples_per_s": _known(self.matching_tuples_per_s()),
            # What a cluster with a core for every role would do: the busiest role sets the pace.
            "projected_tuples_per_s": self.n_events / busiest if busiest else 0.0,
            "latency_ms": {
                name: _known(value)
                for name, value in (("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999))
            },
            "candidates_per_publication": sum(w.n_candidates for w in self.workers) / per_publication,
            "matches_per_publication": self.n_matches / per_publication,
            "replication": stored / max(self.n_subscriptions, 1),
            "index_bytes": n_bytes,
            "index_bytes_per_subscription": n_bytes / max(self.n_subscriptions, 1),
            "registrar_busy_s": self.registrar_busy_s,
            "merger_busy_s": self.merger_busy_s,
            "store": self.store_traffic(),
            "adjustments": [asdict(adjustment) for adjustment in self.adjustments],
            "workers": [_fields(worker) for worker in self.workers],
            "dispatchers": [_fields(dispatcher) for dispatcher in self.dispatchers],
            "peak_memory_bytes": {
                "driver": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "largest_child": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
            },
        }


def weighted_quantiles(values: list[tuple[float, int]], quantiles: tuple[float, ...]) -> list[float]:
    """Return quantiles in milliseconds of (seconds, weight) pairs."""
    if not values:
        return [float("nan")] * len(quantiles)
    ordered = np.array(sorted(values))
    reached = np.cumsum(ordered[:, 1]) / ordered[:, 1].sum()
    rows = np.minimum(np.searchsorted(reached, quantiles), len(ordered) - 1)
    return [float(each) * 1000 for each in ordered[rows, 0]]


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _fields(tally: WorkerTally | DispatcherTally) -> dict[str, int | float | str]:
    return {name: getattr(tally, name) for name in tally.__slots__}
