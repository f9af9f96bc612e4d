"""Whole runs of both engines, as a user starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream_bench.engines import check_alike, fingerprint, stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.memory import MemoryWatch
from ps2stream_bench.metrics import distinct, medians, middles, ratio, where
from ps2stream_bench.plots import bars, in_thousands, short
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ENGINES = ("inline", "microbatch")

#: How much faster the micro-batch engine on two cores has to be than the inline engine on one, and from how
#: many subscriptions on.
_TARGET, _LARGE = 1.2, 1_000_000

_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (500,),
    "small": (100_000, 1_000_000),
    "paper": (1_000_000, 5_000_000),
}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 2_000, "small": 500_000, "paper": 2_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 200_000, "paper": 1_000_000}
_BATCH_EVENTS: dict[Scale, int] = {"tiny": 1_000, "small": 100_000, "paper": 100_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 1, "small": 3, "paper": 3}

_COLUMNS = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("engine", "engine"),
    Column("tuples/s after loading", "matching_tuples_per_s", ",.0f"),
    Column("tuples/s with loading", "tuples_per_s", ",.0f"),
    Column("projected tuples/s", "projected_tuples_per_s", ",.0f"),
    Column("batch p50, ms", "batch_p50_ms", ",.0f"),
    Column("p99, ms", "batch_p99_ms", ",.0f"),
    Column("candidates", "candidates_per_publication", ".1f"),
    Column("matches", "matches_per_publication", ".1f"),
    Column("index bytes a subscription", "index_bytes_per_subscription", ",.0f"),
    Column("peak memory, MiB", "peak_mib", ",.0f"),
    Column("whole command, s", "command_s", ",.1f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each number of subscriptions."""
    fixed: dict[str, Setting] = {
        "kind": "q1",
        "publications": _N_PUBLICATIONS[scale],
        "corpus": _N_CORPUS[scale],
        "batch_events": _BATCH_EVENTS[scale],
        "repetitions": _N_REPETITIONS[scale],
    }
    return [Case({"subscriptions": n, **fixed}) for n in _SIZES[scale]]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Replay one event log with each engine in turn; both have to deliver the same matches."""
    corpus = context.corpus("us", case["corpus"])
    sizes = (case["subscriptions"], case["publications"])
    stream = stream_of(corpus, case["kind"], *sizes, context.seed)
    home = context.scratch / "replay"
    home.mkdir()
    try:
        events, stop_words = home / "events.parquet", home / "stop-words.txt"
        pq.write_table(pa.Table.from_batches([stream.events]), events, row_group_size=100_000)
        stop_words.write_text("\n".join(stream.stop_words))
        rng = np.random.default_rng([context.seed, 10])
        for repetition in range(case["repetitions"]):
            rows = [
                {
                    "repetition": repetition,
                    "engine": engine,
                    **replay(events, stop_words, engine, home, case["batch_events"]),
                }
                for engine in rng.permutation(ENGINES).tolist()
            ]
            check_alike(rows, "engine")
            yield from rows
    finally:
        shutil.rmtree(home)


def replay(events: Path, stop_words: Path, engine: str, home: Path, batch_events: int) -> Row:
    """Run the command as a user would; return its report with the peak memory of all its processes."""
    out, report = home / engine, home / f"{engine}.json"
    command = [sys.executable, "-m", "ps2stream", "replay", str(events), "--out", str(out), "--quiet"]
    command += ["--report", str(report), "--engine", engine, "--stop-words", str(stop_words)]
    command += ["--workers", "2", "--dispatchers", "2", "--adjust", "off"]
    command += ["--batch-events", str(batch_events)]
    started = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    if engine == "inline" and hasattr(os, "sched_setaffinity"):  # else Arrow's threads take another core
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
    watch = MemoryWatch(process.pid)
    watch.start()
    _, complaint = process.communicate()
    peak_bytes, command_s = watch.stop(), time.monotonic() - started
    if process.returncode:
        raise RuntimeError(f"replay --engine {engine} ended with {process.returncode}: {complaint[-500:]}")
    found = json.loads(report.read_text())
    matches = pq.read_table(out / "matches", columns=["publication_seq", "subscription_seq"])
    shutil.rmtree(out)
    flat = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return {
        **flat,
        "batch_p50_ms": found["latency_ms"]["p50"],
        "batch_p99_ms": found["latency_ms"]["p99"],
        "peak_mib": peak_bytes / 2**20,
        "command_s": command_s,
        "n_matches": matches.num_rows,
        "fingerprint": fingerprint(matches),
    }


def page(rows: Sequence[Row]) -> Page:
    """Compare the engines."""
    lines = sorted(
        medians(rows, ["subscriptions", "engine"]), key=lambda row: (row["subscriptions"], row["engine"])
    )
    return Page(
        paper="",
        ours="`ps2stream replay` runs as a command of its own, with two workers and two dispatchers, on an "
        "event log of Q1: all subscriptions first, then publications and updates at 5 to 1. Memory is that "
        "of all processes of the command, the Java machine among them. The inline engine is kept to one "
        "core, where the system can do that; Spark has all. Both engines have to deliver the same matches, "
        "or the case fails.",
        differs="The phases of a micro-batch (decide on updates, dispatch, work and merge) follow each "
        "other, the first of them on one core; a batch has a fixed cost before it does anything; and routed "
        "publications cross from Python to Java and back. What it buys is durability and more machines.",
        tables=[table(lines, _COLUMNS)],
        drawings=[Drawing("rate", "Measured tuples/s after loading.", lambda canvas: _draw(canvas, rows))],
        verdicts=[_faster(rows, n) for n in sorted(distinct(rows, "subscriptions")) if n >= _LARGE],
    )


def _faster(rows: Sequence[Row], n: int) -> Verdict:
    own = where(rows, subscriptions=n)
    gain = ratio(own, "matching_tuples_per_s", {"engine": "microbatch"}, {"engine": "inline"})
    claim = f"microbatch on two cores is {_TARGET:g} times as fast as inline on one, Q1, {n:,} subscriptions"
    return Verdict(claim, "", f"{gain:.2f} times", gain.median >= _TARGET)


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    grouped = [{**row, "group": f"{short(row['subscriptions'])} subscriptions"} for row in rows]
    found = middles(grouped, ["group", "engine"], "matching_tuples_per_s")
    sizes = [f"{short(n)} subscriptions" for n in sorted(distinct(rows, "subscriptions"))]
    axes = canvas.subplots()
    bars(axes, sizes, ENGINES, found)
    axes.set_ylabel("tuples/s")
    in_thousands(axes)
    axes.legend()


FIGURE = Figure(
    name="replay",
    title="Both engines, whole runs",
    about="What `ps2stream replay` does with each engine: rate, batch latency, memory.",
    cases=cases,
    measure=measure,
    page=page,
)
