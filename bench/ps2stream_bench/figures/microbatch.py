"""What a micro-batch costs before it does anything, and whether memory stays flat over a long run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ps2stream_bench.engines import Stream, stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.memory import PROCESS_KINDS, resident_by_kind
from ps2stream_bench.metrics import distinct, grouped, medians, middle, where
from ps2stream_bench.plots import lines
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import endless_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ps2stream_bench.microbatch_latency import LiveStream

#: The most that a micro-batch of next to nothing may take.
TARGET_MS = 200.0
#: The most that memory may be in the last third of a run, in parts of what it was in the middle third.
FLAT = 1.05

_FIXED, _MEMORY = "fixed cost", "memory"
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 100_000, "paper": 500_000}

#: Almost nothing to match: this many subscriptions, this many events a batch, this many batches that count.
_FEW_LIVE: dict[Scale, int] = {"tiny": 200, "small": 10_000, "paper": 10_000}
_FEW_EVENTS: dict[Scale, int] = {"tiny": 100, "small": 2_000, "paper": 2_000}
_N_BATCHES: dict[Scale, int] = {"tiny": 3, "small": 40, "paper": 80}
#: The first batches of a session compile what Java runs often.
_N_WARMING: dict[Scale, int] = {"tiny": 1, "small": 30, "paper": 60}

_N_LIVE: dict[Scale, int] = {"tiny": 200, "small": 100_000, "paper": 1_000_000}
_N_AT_ONCE: dict[Scale, int] = {"tiny": 200, "small": 50_000, "paper": 100_000}
_SECONDS: dict[Scale, float] = {"tiny": 1.0, "small": 90.0, "paper": 1_800.0}
_EVERY_S: dict[Scale, float] = {"tiny": 0.3, "small": 5.0, "paper": 60.0}

#: Publications for each live subscription before a stream starts over; a life lasts for five or more.
_MIXED = 2

_FIXED_COLUMNS = [
    Column("events", "events", ",.0f"),
    Column("from append to sink, ms", "trigger_ms", ".0f"),
    Column("of it, the batch itself", "batch_ms", ".0f"),
]
_MEMORY_COLUMNS = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("processes", "process"),
    Column("first third, MiB", "first", ",.0f"),
    Column("middle third", "middle", ",.0f"),
    Column("last third", "last", ",.0f"),
    Column("most", "most", ",.0f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for the fixed cost and one for a long run."""
    shared: dict[str, Setting] = {"kind": "q1", "corpus": _N_CORPUS[scale], "workers": 2, "dispatchers": 2}
    fixed: dict[str, Setting] = {
        "what": _FIXED,
        "subscriptions": _FEW_LIVE[scale],
        "events": _FEW_EVENTS[scale],
        "batches": _N_BATCHES[scale],
        "warming": _N_WARMING[scale],
    }
    memory: dict[str, Setting] = {
        "what": _MEMORY,
        "subscriptions": _N_LIVE[scale],
        "events": _N_AT_ONCE[scale],
        "seconds": _SECONDS[scale],
        "every_s": _EVERY_S[scale],
    }
    return [Case({**fixed, **shared}), Case({**memory, **shared})]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Run a stream on Spark and look at its batches, or at its memory."""
    from ps2stream_bench.microbatch_latency import live_stream

    look = _fixed_cost if case["what"] == _FIXED else _memory
    corpus = context.corpus("us", case["corpus"])
    n_live = case["subscriptions"]
    stream = stream_of(corpus, case["kind"], n_live, _MIXED * n_live, context.seed)
    settings = stream.settings(n_workers=case["workers"], n_dispatchers=case["dispatchers"])
    with tempfile.TemporaryDirectory(dir=context.scratch) as scratch:
        home = Path(scratch)
        plan = stream.plan(settings)
        with live_stream(context.spark(), home, plan, settings, stream.loading, prune=True) as live:
            yield from look(case, stream, live, home)


def _fixed_cost(case: Case, stream: Stream, live: LiveStream, home: Path) -> Iterator[Row]:
    """Let batches of a few events come, each when the one before is done with."""
    parts = endless_parts(stream.loading, stream.mixed, case["events"])
    for _ in range(case["warming"]):
        live.load(next(parts))
    for number in range(case["batches"]):
        part = next(parts)
        started = time.perf_counter()
        live.load(part)
        whole_s = time.perf_counter() - started
        yield {"batch": number, "trigger_ms": 1000 * whole_s, "batch_ms": 1000 * live.last_batch_s}


def _memory(case: Case, stream: Stream, live: LiveStream, home: Path) -> Iterator[Row]:
    """Let events come without a pause; look at the memory of all processes from time to time."""
    parts = endless_parts(stream.loading, stream.mixed, case["events"])
    started = time.perf_counter()
    next_s, n_events = 0.0, 0
    while (now_s := time.perf_counter() - started) < case["seconds"]:
        part = next(parts)
        live.load(part)
        n_events += part.num_rows
        for path in (home / "out").glob("*/batch-*.parquet"):
            path.unlink()  # half an hour of matches would fill a disk
        if now_s >= next_s:
            next_s += case["every_s"]
            yield from _resident(now_s, n_events)


def _resident(now_s: float, n_events: int) -> Iterator[Row]:
    for kind, now in resident_by_kind(os.getpid()).items():
        yield {
            "minute": now_s / 60,
            "process": kind,
            "resident_bytes": now.n_bytes,
            "anonymous_bytes": now.anonymous_bytes,
            "n_events": n_events,
        }


def page(rows: Sequence[Row]) -> Page:
    """Say what a batch costs and how memory went."""
    fixed, memory = where(rows, what=_FIXED), where(rows, what=_MEMORY)
    return Page(
        paper="The paper has no micro-batches. Both figures are ours.",
        ours=_OURS,
        differs=_WHY,
        tables=[
            table(medians(fixed, ["case"]), _FIXED_COLUMNS),
            table(list(_thirds(memory)), _MEMORY_COLUMNS),
        ],
        drawings=[
            Drawing("memory", "Resident memory by kind of process.", lambda canvas: _draw(canvas, memory))
        ],
        verdicts=[_fixed_verdict(fixed), _memory_verdict(memory)],
    )


_OURS = """\
*Fixed cost*: two workers and two dispatchers, few subscriptions, and batches of a few events that come one at
a time. A time is from when a batch is appended to when its matches are in the sink; medians over the batches
after a warm-up.

*Memory*: publications and updates at 5 to 1 without a pause. As many subscriptions begin as end, so the same
number lives all the time. What several processes map is shared out among them. *Driver* is the process that
started Spark; it holds the corpus and the events of the benchmark, too. Matches are removed once written."""

_WHY = """\
A batch is a job of two stages, of two tasks each, and files that are synced: its range, the subscription log,
the matches, the last seq. What comes before it is the append to the journal and the look that finds it."""


def _third(row: Row, until: float) -> str:
    share = row["minute"] / until if until else 0.0
    return "first" if share < 1 / 3 else "middle" if share < 2 / 3 else "last"


def _thirds(rows: Sequence[Row]) -> Iterator[Row]:
    """Return for every kind of process, and for all, the median of each third of a run."""
    for (n_live,), run in grouped(rows, ["subscriptions"]).items():
        until = max(row["minute"] for row in run)
        summed = [
            {**group[0], "process": "all", "resident_bytes": sum(row["resident_bytes"] for row in group)}
            for group in grouped(run, ["source", "minute"]).values()
        ]
        for process in (*PROCESS_KINDS, "all"):
            found = where([*run, *summed], process=process)
            mib = {"first": [], "middle": [], "last": []}  # type: dict[str, list[float]]
            for row in found:
                mib[_third(row, until)].append(row["resident_bytes"] / 2**20)
            yield {
                "subscriptions": n_live,
                "process": process,
                **{third: middle(values).median for third, values in mib.items()},
                "most": max((value for values in mib.values() for value in values), default=None),
            }


def _fixed_verdict(rows: Sequence[Row]) -> Verdict:
    claim = f"An almost empty micro-batch with two workers takes at most {TARGET_MS:.0f} ms"
    taken = middle(row["trigger_ms"] for row in rows)
    if not taken.n:
        return Verdict(claim, "", "not measured", None)
    return Verdict(claim, "", f"{taken:.0f} ms", taken.median <= TARGET_MS)


def _memory_verdict(rows: Sequence[Row]) -> Verdict:
    claim = f"Memory is flat: in the last third of a run at most {FLAT:g} times that of the middle third"
    found = [row for row in _thirds(rows) if row["process"] == "all"]
    known = [row for row in found if row["middle"] == row["middle"] and row["last"] == row["last"]]
    if not known:
        return Verdict(claim, "", "not measured", None)
    largest = max(known, key=lambda row: row["subscriptions"])
    share = largest["last"] / largest["middle"]
    minutes = max(row["minute"] for row in where(rows, subscriptions=largest["subscriptions"]))
    told = f"{share:.3f} times, in {minutes:.1f} minutes with {largest['subscriptions']:,} subscriptions"
    return Verdict(claim, "", told, share <= FLAT)


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    points = {
        process: {
            row["minute"]: middle([row["resident_bytes"] / 2**20]) for row in where(rows, process=process)
        }
        for process in distinct(rows, "process")
    }
    lines(axes, points)
    axes.set(xlabel="minutes", ylabel="MiB", ylim=(0, None))
    if points:
        axes.legend()


FIGURE = Figure(
    name="microbatch",
    title="What a micro-batch costs",
    about="The fixed cost of a micro-batch, and memory over a long run.",
    cases=cases,
    measure=measure,
    page=page,
)
