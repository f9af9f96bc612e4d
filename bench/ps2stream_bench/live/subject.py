"""An engine on topics with subscriptions loaded: flood it, offer it a load, and see what is delivered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.kafka.sending import Outgoing
from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE, UPDATES
from ps2stream.partitioning.plan import Plan
from ps2stream.roles.packets import encode, fitting
from ps2stream_bench.engines import batches_of
from ps2stream_bench.latency import arrivals
from ps2stream_bench.live.broker import Broker
from ps2stream_bench.live.clients import Client, Delivered, Observer, delivered
from ps2stream_bench.live.deployment import Deployment, running
from ps2stream_bench.live.quantiles import kept_up, quantiles_ms
from ps2stream_bench.live.schedule import Schedule, flood, scheduled
from ps2stream_bench.live.threads import Part, between, seconds_by_part
from ps2stream_bench.results import Row

#: A subscription of ours that asks for this word anywhere; who delivers it has taken in what came before.
_WORD = "sentinelofthebenchmark"
_LOOK_S = 0.02
_PROBE_S = 0.5
#: So long nothing may come before all is taken for delivered, after the sentinels were seen.
_QUIET_S = 0.3
_PATIENCE_S = 600.0
_AT_ONCE = 10_000


@dataclass(slots=True)
class Subject:
    """A running engine; ``n_partitions`` of its publications. ``seen``: all deliveries of the last load."""

    deployment: Deployment
    broker: Broker
    observer: Observer
    n_partitions: int
    client: Client
    seen: list[tuple[float, pa.RecordBatch]] = field(default_factory=list)
    _n: int = field(default=0)
    _updated_at: float = field(default=0.0)

    def load(self, subscriptions: pa.RecordBatch) -> float:
        """Let the engine take in subscriptions, in packets; return how many a second."""
        started = time.perf_counter()
        topics = self.deployment.topics
        for batch in batches_of(subscriptions, _AT_ONCE):
            packets = fitting(batch.select([name for name in UPDATES.names if name != "seq"]))
            self.client.send(Outgoing(topics.updates, 0, encode(each)) for each in packets)
        self.client.send([Outgoing(topics.updates, 0, encode(_sentinel(_WORD)))])
        self.client.flush()
        self._wait_for_sentinel(started)
        self.observer.take()
        return float(subscriptions.num_rows / (time.perf_counter() - started))

    def flood(self, events: pa.RecordBatch, *, is_packed: bool = False) -> Row:
        """Send all events at once; return the rate at which they were done, and where the time went.

        An update is done when a publication sees it. ``is_packed``: updates come in packets, too, as from a
        bulk loader.
        """
        schedule = flood(self._name(), self.deployment.topics, events, self.n_partitions, is_packed=is_packed)
        found, started, row = self._followed(schedule)
        took_s = max(found.last_at, self._updated_at) - started
        return {**row, "tuples_per_s": events.num_rows / took_s, "wall_s": took_s}

    def offer(
        self,
        events: pa.RecordBatch,
        tuples_per_s: float,
        seed: int,
        on_start: Callable[[], None] | None = None,
    ) -> Row:
        """Send events as they are due; return quantiles of latency over publications with a delivery.

        ``on_start`` is called when all is ready to be sent, which takes seconds; what is delivered from then
        on will be in ``seen``.
        """
        due_s = arrivals(events.num_rows, tuples_per_s, seed)
        name, topics = self._name(), self.deployment.topics
        schedule = scheduled(name, topics, events, due_s, self.n_partitions)
        found, started, row = self._followed(schedule, on_start)
        return {
            **row,
            **latency_row(schedule, found, started),
            "offered_tuples_per_s": tuples_per_s,
            "sent_late_ms": self.client.sent_late_s * 1000,
        }

    def _followed(
        self, schedule: Schedule, on_start: Callable[[], None] | None = None
    ) -> tuple[Delivered, float, Row]:
        self.observer.take()
        before = self._seconds()
        if on_start is not None:
            on_start()
        started = time.perf_counter() + 0.05
        self.client.follow(schedule, started)
        self._wait_for_rest()
        spent = between(before, self._seconds())
        self.seen = self.observer.take()
        found = delivered(schedule, self.seen)
        is_known = self.broker.pid is not None
        return (
            found,
            started,
            {
                "n_events": schedule.n_events,
                "n_matches": found.n_matches,
                **{f"cpu_s of {part}": s for part, s in spent.items() if is_known or part != "broker"},
            },
        )

    def _seconds(self) -> dict[Part, float]:
        return seconds_by_part(self.deployment.process.pid, self.broker.pid)

    def _name(self) -> str:
        self._n += 1
        return f"p{self._n}"

    def _wait_for_rest(self) -> None:
        """Return when what stands behind all else was delivered, and nothing came after it for a while.

        Publications do not wait for updates. So another subscription stands behind these: else what comes
        next would begin with all that the registrar has not come to yet.
        """
        word = f"sentinel{self._n}ofupdates"
        self.client.send([Outgoing(self.deployment.topics.updates, 0, encode(_sentinel(word)))])
        ids = self._send_sentinels(_WORD)
        self._wait(lambda: all(self.observer.has(each) for each in ids))
        self._updated_at = self._seen_by(word)
        ended = encode(_updates([{"op": UNSUBSCRIBE, "id": word}]))
        self.client.send([Outgoing(self.deployment.topics.updates, 0, ended)])
        self.client.flush()
        self._wait(lambda: time.perf_counter() - self.observer.last_at > _QUIET_S)

    def _seen_by(self, word: str) -> float:
        """Publish a word until a subscription to it is seen; return when that was sent which saw it."""
        sent_at: dict[str, float] = {}
        start = self.observer.n_seen

        def is_seen() -> bool:
            now = time.perf_counter()
            sent_at.update((id, now) for id in self._send_sentinels(word))
            return any(self.observer.has(id, start) for id in sent_at)

        self._wait(is_seen)
        return next(at for id, at in sent_at.items() if self.observer.has(id, start))

    def _wait_for_sentinel(self, started: float) -> None:
        """Ask again and again whether the sentinel's subscription is known."""
        ids: list[str] = []
        while not any(self.observer.has(each) for each in ids):
            self.deployment.check()
            if time.perf_counter() - started > _PATIENCE_S:
                raise RuntimeError(f"subscriptions were not taken in within {_PATIENCE_S:g} s")
            ids += self._send_sentinels(_WORD)
            time.sleep(_PROBE_S)
        self._wait(lambda: time.perf_counter() - self.observer.last_at > 2 * _PROBE_S)

    def _send_sentinels(self, word: str) -> list[str]:
        """Send a publication of one word to each partition."""
        name, topics = self._name(), self.deployment.topics
        ids = [f"{name}-{partition}" for partition in range(self.n_partitions)]
        for partition, id in enumerate(ids):
            row = {"id": id, "lat": 40.0, "lon": -100.0, "text": word}
            self.client.send(
                [Outgoing(topics.publications, partition, encode(pa.RecordBatch.from_pylist([row])))]
            )
        self.client.flush()
        return ids

    def _wait(self, is_over: Callable[[], bool]) -> None:
        until = time.perf_counter() + _PATIENCE_S
        while not is_over():
            self.deployment.check()
            if time.perf_counter() > until:
                raise RuntimeError(f"deliveries did not come within {_PATIENCE_S:g} s")
            time.sleep(_LOOK_S)


@contextlib.contextmanager
def subject_of(
    engine: str, broker: Broker, home: Path, settings: Settings, plan: Plan, loading: pa.RecordBatch
) -> Iterator[Subject]:
    """Run an engine with subscriptions while the context lasts."""
    with running(engine, broker, home, settings, plan) as deployment:
        observer = Observer(deployment.topics)
        observer.start()
        try:
            subject = Subject(deployment, broker, observer, settings.n_dispatchers, Client(deployment.topics))
            subject.load(loading)
            yield subject
        finally:
            observer.close()


def latency_row(schedule: Schedule, found: Delivered, started: float) -> Row:
    """Sum up latencies, from when publications were due."""
    is_seen = ~np.isnan(found.first_at)
    latency_s = found.first_at[is_seen] - started - schedule.due_s[is_seen]
    return {
        **quantiles_ms(latency_s),
        "kept_up": kept_up(schedule.due_s[is_seen], latency_s),
        "n_publications": len(schedule.due_s),
        "achieved_tuples_per_s": schedule.n_events / (found.last_at - started),
    }


def _sentinel(word: str) -> pa.RecordBatch:
    region = {"min_lon": -179.0, "min_lat": -89.0, "max_lon": 179.0, "max_lat": 89.0}
    return _updates([{"op": SUBSCRIBE, "id": word, "expression": word, **region}])


def _updates(rows: list[dict[str, object]]) -> pa.RecordBatch:
    schema = pa.schema([field for field in UPDATES if field.name != "seq"])
    return pa.RecordBatch.from_pylist(rows, schema)
