"""The demo itself: a journal, a publisher, the stream on some engine, and somebody who watches."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.cli.interrupts import AbruptInterrupts
from ps2stream.cli.render.compilation import load_kernels
from ps2stream.config import Settings
from ps2stream.demo.adjustments import in_words, made_at
from ps2stream.demo.snapshot import AdjustmentLine, SampleMatch, Snapshot, Summary
from ps2stream.demo.view import View
from ps2stream.demo.workload import Workload
from ps2stream.engines.embedded import embedded_stream
from ps2stream.engines.live_stream import LiveStream
from ps2stream.engines.meter import Meter
from ps2stream.journal import Journal
from ps2stream.model.schemas import PUBLISH, SUBSCRIBE
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.first_plan import plan_of, sample_from
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.home_layout import HomeLayout
from ps2stream.state.state import State

_LOAD_AT_ONCE = 20_000
_PUBLISH_EVERY_S = 0.1
#: Without a rate of its own the publisher keeps the journal this far ahead of the stream.
_AHEAD_EVENTS = 200_000
_N_SAMPLES = 5
#: A made-up stream is soon known, and somebody waits for the first match.
_SAMPLE_EVENTS = 50_000
_SHOW_EVERY_S = 0.5
_LOOK_EVERY_S = 0.1
_FIRST_SHIFT_S = 10.0
_SHIFT_EVERY_S = 15.0

#: For a stream that drifts within seconds: a window of some six seconds at the default rate.
DRIFTING = AdjustmentSettings(window=60_000, sigma=1.3)


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """How large the demo is; ``rate`` is in events a second, 0 for as many as the stream takes.

    ``drift``: every now and then another part of the world becomes busy.
    """

    seconds: float = 60.0
    n_subscriptions: int = 100_000
    rate: int = 10_000
    seed: int = 7
    drift: bool = False


class Publisher(threading.Thread):
    """Append events to the journal at an even rate, and remember what samples need."""

    def __init__(self, journal: Journal, workload: Workload, demo: DemoSettings, meter: Meter) -> None:
        super().__init__(name="publisher", daemon=True)
        self._journal, self._workload, self._meter = journal, workload, meter
        self._rate, self._drift = demo.rate, demo.drift
        self._stopped = threading.Event()
        self._recent: deque[pa.RecordBatch] = deque(maxlen=64)
        self._expressions: dict[str, str] = {}
        self.n_appended = 0
        self.busy_around = ""
        self.failure: BaseException | None = None

    def load(self, n_subscriptions: int) -> None:
        """Append the subscriptions that the demo begins with."""
        for start in range(0, n_subscriptions, _LOAD_AT_ONCE):
            self._append(self._workload.subscriptions(min(_LOAD_AT_ONCE, n_subscriptions - start)))

    def run(self) -> None:
        try:
            started, n_sent = time.monotonic(), 0
            next_shift = started + _FIRST_SHIFT_S
            while not self._stopped.wait(_PUBLISH_EVERY_S):
                if self._drift and time.monotonic() >= next_shift:
                    self.busy_around = self._workload.shift().name
                    next_shift += _SHIFT_EVERY_S
                due = round((time.monotonic() - started) * self._rate) - n_sent
                if not self._rate:
                    due = _AHEAD_EVENTS - (self.n_appended - self._meter.tally.n_events)
                if due > 0:
                    self._append(self._workload.events(due))
                    n_sent += due
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        self._stopped.set()
        if self.is_alive():
            self.join()

    def sample(self, match: dict[str, object]) -> SampleMatch | None:
        """Fill a match with what its people wrote, if that is still remembered."""
        # A copy: the publisher goes on appending.
        for batch in reversed(self._recent.copy()):
            rows = batch.filter(pc.equal(batch.column("id"), pa.scalar(str(match["publication_id"]))))
            if rows.num_rows:
                row = rows.to_pylist()[0]
                subscription = str(match["subscription_id"])
                place = f"{row['lat']:.2f}, {row['lon']:.2f}"
                return SampleMatch(subscription, self._expressions.get(subscription, "?"), place, row["text"])
        return None

    def _append(self, events: pa.RecordBatch) -> None:
        subscribes = events.filter(pc.equal(events.column("op"), SUBSCRIBE))
        names = zip(
            subscribes.column("id").to_pylist(), subscribes.column("expression").to_pylist(), strict=True
        )
        self._expressions.update(names)
        self._recent.append(events.filter(pc.equal(events.column("op"), PUBLISH)))
        self._journal.append(events)
        self.n_appended += events.num_rows


class Show:
    """Run the demo from the first line on the screen to the summary."""

    def __init__(
        self, demo: DemoSettings, settings: Settings, view: View, interrupts: AbruptInterrupts
    ) -> None:
        self._demo, self._settings, self._view, self._interrupts = demo, settings, view, interrupts
        self._started, self._started_at = time.monotonic(), time.time()
        self._streaming_since: float | None = None
        self._meter = Meter(settings)
        self._publisher: Publisher  # from when it has something to publish
        self._samples: deque[SampleMatch] = deque(maxlen=_N_SAMPLES)
        self._newest_file = ""
        self._busy_around = ""
        self._at_start = 0  # events of the loading phase, which the summary leaves out

    def run(self, spark_log: Path | None = None) -> Summary:
        """Show the demo; return its figures. Interrupted while it streams it ends early, not badly.

        ``spark_log``: where Spark writes; without it, the stream runs in this process.
        """
        with (
            tempfile.TemporaryDirectory(prefix="ps2stream-demo-") as scratch,
            self._interrupts.tidied_by(lambda: shutil.rmtree(scratch, ignore_errors=True)),
        ):
            home = HomeLayout(Path(scratch))
            with (
                Journal.open(home.journal, create=True, durable=False) as journal,
                self._inline(home, journal)
                if spark_log is None
                else self._on_spark(home, journal, spark_log) as stream,
            ):
                self._stream(stream, home, self._publisher)
        return self._summary()

    @contextlib.contextmanager
    def _inline(self, home: HomeLayout, journal: Journal) -> Iterator[LiveStream]:
        self._prepare(home, journal)
        with embedded_stream(
            home.journal, home.state, home.out, self._settings, on_batch=self._meter.add
        ) as stream:
            yield stream

    @contextlib.contextmanager
    def _on_spark(self, home: HomeLayout, journal: Journal, log: Path) -> Iterator[LiveStream]:
        from ps2stream.engines.spark.jvm import end_jvm
        from ps2stream.engines.spark.session import own_session
        from ps2stream.engines.spark.stream import journal_stream

        def prepare() -> None:
            self._prepare(home, journal)
            self._report("starting Spark")

        with (
            self._interrupts.tidied_by(end_jvm),
            own_session("ps2stream demo", log=log, meanwhile=prepare) as spark,
            journal_stream(
                spark, home.journal, home.state, home.out, self._settings, on_batch=self._meter.add
            ) as stream,
        ):
            yield stream

    def _prepare(self, home: HomeLayout, journal: Journal) -> None:
        """Do what needs no engine."""
        load_kernels()
        self._report("planning")
        plan = plan_of(_sample(self._demo, self._settings), self._settings)
        State.at(home.state).create(plan, self._settings)
        self._publisher = Publisher(journal, Workload(self._demo.seed), self._demo, self._meter)
        self._publisher.load(self._demo.n_subscriptions)

    def _stream(self, stream: LiveStream, home: HomeLayout, publisher: Publisher) -> None:
        try:
            self._load(stream, publisher)
            publisher.start()
            with self._interrupts.held():
                self._watch(stream, publisher, home.out)
        finally:
            publisher.stop()

    def _load(self, stream: LiveStream, publisher: Publisher) -> None:
        """Wait until the subscriptions are in; the time of the demo begins there."""
        while self._meter.tally.n_events < publisher.n_appended:
            stream.check()
            self._report(f"loading {self._demo.n_subscriptions:,} subscriptions")
            time.sleep(_LOOK_EVERY_S)
        self._streaming_since = time.monotonic()
        self._at_start = self._meter.tally.n_events
        self._meter.forget_rates()

    def _watch(self, stream: LiveStream, publisher: Publisher, out: Path) -> None:
        """Show the stream until its time is over or somebody has seen enough."""
        until = time.monotonic() + self._demo.seconds
        while time.monotonic() < until and not self._interrupts:
            stream.check()
            if publisher.failure is not None:
                raise publisher.failure
            self._take_samples(publisher, out)
            self._busy_around = publisher.busy_around
            self._report("streaming")
            time.sleep(_SHOW_EVERY_S)

    def _take_samples(self, publisher: Publisher, out: Path) -> None:
        written = ParquetSink.at(out).matches
        newest = max((key for key in written.list() if key.startswith("batch-")), default="")
        if newest > self._newest_file:
            self._newest_file = newest
            matches = pq.read_table(pa.BufferReader(written.get(newest))).slice(0, 1000)
            step = max(1, matches.num_rows // 2)
            for row in matches.take(list(range(0, matches.num_rows, step))[:2]).to_pylist():
                if sample := publisher.sample(row):
                    self._samples.append(sample)

    def _report(self, phase: str) -> None:
        now = time.monotonic()
        tally, recent = self._meter.tally, self._meter.recent()
        remaining = (
            None if self._streaming_since is None else self._streaming_since + self._demo.seconds - now
        )
        self._view.show(
            Snapshot(
                elapsed_s=now - self._started,
                remaining_s=remaining,
                phase=phase,
                n_events=tally.n_events,
                n_publications=tally.n_publications,
                n_matches=tally.n_matches,
                n_rejected=tally.n_rejected,
                n_discarded=tally.n_discarded,
                n_subscriptions=tally.n_subscriptions,
                events_per_s=recent.events_per_s,
                matches_per_s=recent.matches_per_s,
                latency_p50_ms=recent.latency_p50_ms,
                latency_p99_ms=recent.latency_p99_ms,
                worker_busy=recent.worker_busy,
                worker_subscriptions=tuple(worker.n_subscriptions for worker in tally.workers),
                samples=tuple(self._samples),
                adjustments=self._adjustments(),
                busy_around=self._busy_around,
            )
        )

    def _adjustments(self) -> tuple[AdjustmentLine, ...]:
        # A copy: the stream's thread enters more.
        records = self._meter.tally.adjustments.copy()
        return tuple(AdjustmentLine(made_at(each) - self._started_at, in_words(each)) for each in records)

    def _summary(self) -> Summary:
        tally = self._meter.tally
        elapsed_s = time.monotonic() - (self._streaming_since or time.monotonic())
        p50, p99 = tally.latency_ms(0.5, 0.99)
        return Summary(
            elapsed_s=min(elapsed_s, self._demo.seconds),
            n_events=tally.n_events - self._at_start,
            n_publications=tally.n_publications,
            n_matches=tally.n_matches,
            n_rejected=tally.n_rejected,
            n_discarded=tally.n_discarded,
            n_subscriptions=tally.n_subscriptions,
            latency_p50_ms=p50,
            latency_p99_ms=p99,
            worker_busy=tuple(worker.busy_s / max(elapsed_s, 1e-9) for worker in tally.workers),
            worker_subscriptions=tuple(worker.n_subscriptions for worker in tally.workers),
            n_adjustments=len(tally.adjustments),
            moved_bytes=sum(each.n_bytes for each in tally.adjustments),
            paused_s=sum(each.pause_s for each in tally.adjustments),
        )


def _sample(demo: DemoSettings, settings: Settings) -> Sample:
    """Draw a sample of events like those to come, for the plan."""
    like = Workload(demo.seed + 1)
    n = min(settings.sample_events, _SAMPLE_EVENTS)
    sample = sample_from([like.subscriptions(n // 2), like.events(n)], settings)
    return sample._replace(n_live=demo.n_subscriptions)
