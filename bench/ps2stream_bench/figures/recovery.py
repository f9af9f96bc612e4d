"""Cold start and recovery time against the number of subscriptions."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.replay import replay_inline
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.engines.tally import Tally
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS
from ps2stream.roles.reports import MergerReport
from ps2stream.sources.event_log import EventLog
from ps2stream_bench.engines import batches_of, check_alike, warm_once
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Verdict
from ps2stream_bench.figures.cost import Group, chunks_of, renumbered
from ps2stream_bench.metrics import Middle, distinct, medians, middles, ratio, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import Corpus, publish_events

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from pyspark.sql import SparkSession

COLD_INLINE = "cold start, inline"
COLD = "cold start, microbatch"
INTACT = "recovery, indexes there"
LOST = "recovery, indexes lost"
SESSION = "start of a Spark session"
_MODES = (COLD_INLINE, COLD, LOST, INTACT)

_N_LIVE: dict[Scale, tuple[int, ...]] = {
    "tiny": (2_000,),
    "small": (10_000, 100_000, 1_000_000),
    "paper": (100_000, 1_000_000, 10_000_000),
}
_N_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 200_000, "paper": 1_000_000}
#: Publications that come after the subscriptions; some of them match, however few those are.
_N_PUBLICATIONS = 2_000
#: Events are appended to a journal in packets of this many, as a replay does it.
_PACKET_EVENTS = 20_000
_START_SESSION = """
import time
started = time.perf_counter()
from ps2stream.engines.spark.session import local_session, warm_up
session = local_session("ps2stream-bench")
warm_up(session)
print(time.perf_counter() - started)
session.stop()
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for each number of subscriptions, and one for the start of Spark itself."""
    if scale == "tiny":
        return [_case(scale, n, n_workers=2, n_repetitions=1) for n in _N_LIVE[scale]]
    n_workers = 4 if scale == "small" else 8
    found = [_case(scale, n, n_workers=n_workers, n_repetitions=2) for n in _N_LIVE[scale]]
    return [*found, Case({"n_live": 0, "n_repetitions": 2})]


def _case(scale: Scale, n_live: int, *, n_workers: int, n_repetitions: int) -> Case:
    return Case(
        {
            "country": "us",
            "kind": "q1",
            "n_live": n_live,
            "n_corpus": _N_CORPUS[scale],
            "n_workers": n_workers,
            "n_repetitions": n_repetitions,
        }
    )


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Start from nothing and from a state, and take the time until publications are matched."""
    if case["n_live"] == 0:
        yield from _session_starts(case["n_repetitions"])
        return
    corpus = context.corpus(case["country"], case["n_corpus"])
    off = AdjustmentSettings(scope="off")
    settings = Settings(
        n_workers=case["n_workers"],
        n_dispatchers=case["n_workers"] // 2,
        stop_words=corpus.stop_words,
        adjustment=off,
        sample_events=100_000,
    )
    spark = context.spark()
    warm_once()
    if case["n_repetitions"] > 1:
        # The first stream of a session loads classes and starts processes; none that counts is to be it.
        rehearsed = Case({**case.settings, "n_live": 200, "n_repetitions": 1})
        with _made(RecoveryHome(context.scratch / "rehearsal", corpus, rehearsed, context.seed)) as home:
            home.start(settings, spark, COLD)
    with _made(RecoveryHome(context.scratch / "recovery", corpus, case, context.seed)) as home:
        yield from _starts(home, settings, spark)


@contextlib.contextmanager
def _made(home: RecoveryHome) -> Iterator[RecoveryHome]:
    """Write the events of a home, and remove it in the end."""
    home.write_events()
    try:
        yield home
    finally:
        shutil.rmtree(home.home)


def _starts(home: RecoveryHome, settings: Settings, spark: SparkSession) -> Iterator[Row]:
    """Start in every way, as often as the case asks for; all starts must find the same matches."""
    for repetition in range(home.case["n_repetitions"]):
        home.forget_state()
        rows = [home.start_inline(settings), home.start(settings, spark, COLD)]
        # Whoever comes second finds more in the caches.
        for mode in (INTACT, LOST) if repetition % 2 == 0 else (LOST, INTACT):
            home.append_publications()
            if mode == LOST:
                shutil.rmtree(home.state / "index")
            rows.append(home.start(settings, spark, mode))
        home.drop_publications()
        check_alike(rows, "mode")
        yield from ({"repetition": repetition, **row} for row in rows)


@dataclass(slots=True)
class RecoveryHome:
    """Where a job lives: an event log, the same events in a journal, its state, its output."""

    home: Path
    corpus: Corpus
    case: Case
    seed: int
    _n_appended: int = 0

    @property
    def log(self) -> Path:
        return self.home / "events.parquet"

    @property
    def journal(self) -> Path:
        return self.home / "journal"

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def out(self) -> Path:
        return self.home / "out"

    def write_events(self) -> None:
        """Write subscriptions and then some publications, as a log and as a journal."""
        self.home.mkdir()
        subscribes = chunks_of(Group(self.case["n_live"]), self.corpus, self.case["kind"], 1, self.seed)
        with (
            pq.ParquetWriter(self.log, EVENTS) as log,
            Journal.open(self.journal, create=True, durable=False) as journal,
        ):
            for chunk in (*subscribes, *self._publications()):
                log.write_batch(chunk)
                for packet in batches_of(chunk, _PACKET_EVENTS):
                    journal.append_ordered(packet)
        shutil.copytree(self.journal, self.home / "journal-at-first")

    def append_publications(self) -> None:
        """Let the same publications come once more."""
        with Journal.open(self.journal, durable=False) as journal:
            for batch in self._publications():
                journal.append_ordered(batch)

    def drop_publications(self) -> None:
        """Leave in the journal what was there at first."""
        shutil.rmtree(self.journal)
        shutil.copytree(self.home / "journal-at-first", self.journal)
        self._n_appended = _N_PUBLICATIONS

    def forget_state(self) -> None:
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.rmtree(self.out, ignore_errors=True)

    def start_inline(self, settings: Settings) -> Row:
        """Read the log into an engine that keeps nothing on disk."""
        matched_s: list[float] = []
        out = self.home / "out-inline"
        started = time.perf_counter()

        def on_progress(tally: Tally) -> None:
            if tally.n_publications and not matched_s:
                matched_s.append(time.perf_counter() - started)

        done = replay_inline(EventLog(self.log), out, settings, on_progress)
        shutil.rmtree(out)
        return {"mode": COLD_INLINE, "first_match_s": matched_s[0], "n_matches": done.tally.n_matches}

    def start(self, settings: Settings, spark: SparkSession, mode: str) -> Row:
        """Start a job on whatever state there is; wait until it has matched what the journal holds."""
        matched = threading.Event()
        n_matches = 0

        def on_batch(done: BatchDone) -> None:
            nonlocal n_matches
            n_matches += sum(each.n_matches for each in done.reports if isinstance(each, MergerReport))
            if any(source.n_publications for source in done.sources):
                matched.set()

        log_bytes, index_bytes = _size_of(self.state / "log"), _size_of(self.state / "index")
        started = time.perf_counter()
        with journal_stream(spark, self.journal, self.state, self.out, settings, on_batch=on_batch) as query:
            open_s = time.perf_counter() - started
            while not matched.wait(0.002):
                query.check()
            first_match_s = time.perf_counter() - started
            query.process_all_available()  # so that Spark has noted down this batch when it starts again
        return {
            "mode": mode,
            "open_s": open_s,
            "first_match_s": first_match_s,
            "n_matches": n_matches,
            "log_bytes": log_bytes,
            "index_bytes": index_bytes,
        }

    def _publications(self) -> list[pa.RecordBatch]:
        first = 1 + self.case["n_live"] + self._n_appended
        self._n_appended += _N_PUBLICATIONS
        events = renumbered(publish_events(self.corpus, _N_PUBLICATIONS, 0, self.seed), first)
        found: list[pa.RecordBatch] = events.combine_chunks().to_batches()
        return found


def _size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _session_starts(n: int) -> Iterator[Row]:
    """Start Spark in a process of its own, as the session of this run cannot be started twice."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for repetition in range(n):
        done = subprocess.run(
            [sys.executable, "-c", _START_SESSION],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        yield {
            "mode": SESSION,
            "repetition": repetition,
            "first_match_s": float(done.stdout.split()[-1]),
        }


def page(rows: Sequence[Row]) -> Page:
    """Say how long it takes until a job is there, or there again."""
    return Page(
        paper="The paper has no such figure. It is one of ours.",
        ours=_OURS + _about_session(rows),
        differs=_WHY,
        tables=[_table(rows)],
        drawings=[_drawing(rows)],
        verdicts=_verdicts(rows),
    )


_OURS = f"""\
The time from the start of a job until the first of {_N_PUBLICATIONS:,} publications that come after the
subscriptions are matched and written to the sink:

- *{COLD_INLINE}*: there is an event log in Parquet; a plan is made from a sample of it, and all events go
  through the inline engine in this process. It keeps nothing on disk, so this is its recovery, too.
- *{COLD}*: there is a journal with all events and no state; a plan is made, all events go through the
  micro-batch engine, which writes the subscription log and the indexes of its workers on its way.
- *{INTACT}*: the job was stopped after that, and the same publications have come once more. The state
  holds the subscription log, with a snapshot where the default settings have taken one, and the indexes
  of the workers.
- *{LOST}*: the same with all indexes deleted, as when a job goes on elsewhere with its log alone.

*Opened* is when the registrar is there and the stream has been started. Starting Spark is not part of any
of these; a short stream is run before, so that none of them is the first of its session. The files that a
start finds were written shortly before, so the page cache of the system holds them: these are restarts of
a job, not of a host, which would have to read them from its disk first. All starts must deliver the same
matches. Medians of all repetitions, in brackets from the least to the greatest."""

_WHY = """\
A cold start parses every expression, decides on it, writes it to the log and inserts it into the indexes:
the same work for every subscription. The micro-batch engine has a journal to read and a log to write on
top of what the inline one does, and a constant part for every batch. A recovery parses nothing: the log
holds compiled clauses. The registrar's registry and routing table are built anew from the log in any
case, in one process, and that is what is left of a recovery when the workers' indexes are there: those
are mapped files that need no reading. When they are lost, every worker reads the log and inserts its own
part again, all workers at once as far as there are cores.

The fewer the subscriptions, the more of this is hidden by what Spark takes to start a stream and to plan
the first batch."""


def _about_session(rows: Sequence[Row]) -> str:
    found = middles(where(rows, mode=SESSION), ("mode",), "first_match_s")
    return "".join(
        f"\n\nThe session itself, with its JVM and its Python processes, took {each:.1f} s to start."
        for each in found.values()
    )


def _table(rows: Sequence[Row]) -> str:
    by = ("mode", "n_live")
    starts = [row for row in rows if row.get("mode") in _MODES]
    taken = middles(starts, by, "first_match_s")
    found = []
    for row in medians(starts, by):
        rate = row["n_live"] / row["first_match_s"]
        mib = {name: _mib(row.get(f"{name}_bytes")) for name in ("log", "index")}
        found.append({**row, **mib, "taken": taken[row["mode"], row["n_live"]], "rate": rate})
    found.sort(key=lambda row: (row["n_live"], _MODES.index(row["mode"])))
    return table(
        found,
        [
            Column("subscriptions", "n_live", ",.0f"),
            Column("start", "mode"),
            Column("opened, s", "open_s", ".2f"),
            Column("first match, s", "taken", ".2f"),
            Column("subscriptions/s", "rate", ",.0f"),
            Column("log found, MiB", "log", ",.1f"),
            Column("indexes found, MiB", "index", ",.1f"),
        ],
    )


def _mib(n_bytes: float | None) -> float | None:
    return None if n_bytes is None else n_bytes / 2**20


def _drawing(rows: Sequence[Row]) -> Drawing:
    def points(mode: str) -> dict[float, Middle]:
        found = middles(where(rows, mode=mode), ("n_live",), "first_match_s")
        return {float(n): each for (n,), each in found.items()}

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, {mode: points(mode) for mode in _MODES if points(mode)})
        axes.set_xscale("log")
        axes.set_yscale("log")
        in_thousands(axes, "x")
        axes.set_xlabel("live subscriptions")
        axes.set_ylabel("seconds until the first match")
        if axes.get_legend_handles_labels()[0]:
            axes.legend()

    return Drawing("recovery", "Time until the first match, from nothing and from a state.", draw, (6.5, 3.6))


def _verdicts(rows: Sequence[Row]) -> list[Verdict]:
    starts = [row for row in rows if row.get("mode") in _MODES]
    largest = max(distinct(starts, "n_live"), default=0)
    found = where(starts, n_live=largest)
    claims = {
        INTACT: "A recovery with the workers' indexes is faster than a cold start",
        LOST: "A recovery without the workers' indexes is faster than a cold start",
    }
    verdicts = []
    for mode, claim in claims.items():
        share = ratio(found, "first_match_s", {"mode": mode}, {"mode": COLD})
        told = f"{share:.2f} of the time with {largest:,} subscriptions" if share.n else "not measured"
        verdicts.append(Verdict(claim, "", told, share.median < 1.0 if share.n else None))
    return verdicts


FIGURE = Figure(
    name="recovery",
    title="Cold start and recovery",
    about="How long a job takes until it matches, from nothing and from its state on disk.",
    cases=cases,
    measure=measure,
    page=page,
)
