"""The engine that runs in one process on a journal, offered the same as those that run on topics.

A gateway appends what was due in the last few milliseconds, durably. A publication counts as delivered when
the matches of its batch are in the sink, synced: nobody waits for files as one waits for a topic.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s
from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.model.schemas import PUBLISH
from ps2stream.partitioning.plan import Plan
from ps2stream.state.home_layout import HomeLayout
from ps2stream_bench.engines import batches_of
from ps2stream_bench.latency import arrivals
from ps2stream_bench.live.deployment import Deployment, running
from ps2stream_bench.live.quantiles import kept_up, quantiles_ms
from ps2stream_bench.live.schedule import GATHER_S
from ps2stream_bench.live.threads import Part, between, seconds_by_part
from ps2stream_bench.results import Row

_AT_ONCE = 50_000
_LOOK_S = 0.02
_PATIENCE_S = 600.0


@dataclass(slots=True)
class JournalSubject:
    """A running engine, and the journal that it reads."""

    deployment: Deployment
    journal: Journal
    _ends: list[tuple[float, int]] = field(default_factory=list)

    def load(self, subscriptions: pa.RecordBatch) -> float:
        """Let the engine take in subscriptions; return how many a second."""
        started = time.perf_counter()
        self._append(subscriptions)
        return float(subscriptions.num_rows / (self._ends[-1][0] - started))

    def flood(self, events: pa.RecordBatch) -> Row:
        """Append all events at once; return the rate at which they were done."""
        before, started = self._seconds(), time.perf_counter()
        self._append(events)
        took_s = self._ends[-1][0] - started
        spent = between(before, self._seconds())
        return {
            "n_events": events.num_rows,
            "tuples_per_s": events.num_rows / took_s,
            "wall_s": took_s,
            "cpu_s of driver": spent["driver"],
            "cpu_s of senders and observer": spent["senders and observer"],
        }

    def offer(self, events: pa.RecordBatch, tuples_per_s: float, seed: int) -> Row:
        """Append events as they are due; return quantiles of latency over all publications."""
        due_s = arrivals(events.num_rows, tuples_per_s, seed)
        before, first_seq = self._seconds(), self.journal.last().seq + 1
        started, start, late_s = time.perf_counter() + 0.05, 0, 0.0
        while start < events.num_rows:
            tick_s = np.ceil(due_s[start] / GATHER_S) * GATHER_S
            while (ahead := started + tick_s - time.perf_counter()) > 0:
                time.sleep(ahead)
            late_s = max(late_s, -ahead)
            stop = int(np.searchsorted(due_s, time.perf_counter() - started, side="right"))
            self.journal.append(events.slice(start, stop - start))
            start = stop
        self._wait_for(first_seq + events.num_rows - 1)
        spent = between(before, self._seconds())
        is_publication = pa.compute.equal(events.column("op"), PUBLISH).to_numpy(zero_copy_only=False)
        done_s = self._done_at(first_seq + np.arange(events.num_rows)) - started
        latency_s = (done_s - due_s)[is_publication]
        return {
            **quantiles_ms(latency_s),
            "kept_up": kept_up(due_s[is_publication], latency_s),
            "n_events": events.num_rows,
            "n_publications": int(is_publication.sum()),
            "offered_tuples_per_s": tuples_per_s,
            "achieved_tuples_per_s": events.num_rows / float(done_s[-1]),
            "sent_late_ms": float(late_s * 1000),
            "cpu_s of driver": spent["driver"],
            "cpu_s of senders and observer": spent["senders and observer"],
        }

    def _append(self, events: pa.RecordBatch) -> None:
        for batch in batches_of(events, _AT_ONCE):
            last = self.journal.append(batch).last_seq
        self._wait_for(last)

    def _wait_for(self, seq: int) -> None:
        until = time.perf_counter() + _PATIENCE_S
        while not self._ends or self._ends[-1][1] < seq:
            self.deployment.check()
            if time.perf_counter() > until:
                raise RuntimeError(f"events were not processed within {_PATIENCE_S:g} s")
            self._ends += [(at, last) for at, last in self.deployment.board()["batches"]]
            time.sleep(_LOOK_S)

    def _done_at(self, seqs: Int64s) -> Float64s:
        """Return when the batch of each event was done."""
        at, last = np.array([each[0] for each in self._ends]), np.array([each[1] for each in self._ends])
        done: Float64s = at[np.searchsorted(last, seqs, side="left")]
        return done

    def _seconds(self) -> dict[Part, float]:
        return seconds_by_part(self.deployment.process.pid, None)


@contextlib.contextmanager
def journal_subject_of(
    home: Path, settings: Settings, plan: Plan, loading: pa.RecordBatch
) -> Iterator[JournalSubject]:
    """Run the engine with subscriptions while the context lasts."""
    with (
        running("inline", None, home, settings, plan) as deployment,
        Journal.open(HomeLayout(home).journal) as journal,
    ):
        subject = JournalSubject(deployment, journal)
        subject.load(loading)
        yield subject
