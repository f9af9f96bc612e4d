"""Latency from when a publication was due until its first delivery was seen: three engines, three loads."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ps2stream_bench.cluster.bed import UnavailableError
from ps2stream_bench.engines import Stream, stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.live.saturation import Subject, saturation_of
from ps2stream_bench.metrics import distinct, medians, middle, middles, where
from ps2stream_bench.plots import bars, in_thousands
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: In the order of tables. One that ``live/engine_driver.py`` knows can be added.
ENGINES = ("realtime", "realtime, at least once", "microbatch", "inline")
MODERATE = 50
#: At a moderate load on two cores.
_TARGETS_MS = {"realtime": {"p50": 25.0, "p99": 100.0}, "inline": {"p50": 10.0}}

_N_LIVE: dict[Scale, Sequence[int]] = {
    "tiny": (2_000,),
    "small": (100_000, 1_000_000),
    "paper": (100_000, 1_000_000),
}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 60_000, "small": 4_500_000, "paper": 8_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 100_000, "paper": 200_000}
_LOADS: dict[Scale, str] = {"tiny": "50", "small": "10 50 80", "paper": "10 50 80"}
_SECONDS: dict[Scale, float] = {"tiny": 1.0, "small": 6.0, "paper": 30.0}
_WARM_S: dict[Scale, float] = {"tiny": 0.5, "small": 25.0, "paper": 40.0}
#: With others each engine starts, loads and warms up anew, which takes minutes.
_N_REPETITIONS = 1
#: With two cores more roles would only take turns.
_N_WORKERS, _N_DISPATCHERS = 1, 1


def cases(scale: Scale) -> list[Case]:
    """Return a case for each engine and number of subscriptions; its loads share one running engine."""
    return [
        Case(
            {
                "engine": engine,
                "kind": "q1",
                "subscriptions": n_live,
                "publications": _N_PUBLICATIONS[scale],
                "corpus": _N_CORPUS[scale],
                "loads": _LOADS[scale],
                "seconds": _SECONDS[scale],
                "warm_s": _WARM_S[scale],
                "repetitions": _N_REPETITIONS,
            }
        )
        for n_live in _N_LIVE[scale]
        for engine in ENGINES
    ]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Find the saturation of an engine, then offer it shares of that in random order."""
    corpus = context.corpus("us", case["corpus"])
    for repetition in range(case["repetitions"]):
        seed = context.seed + 1000 * repetition
        before = os.getloadavg()[0]
        stream = stream_of(corpus, case["kind"], case["subscriptions"], case["publications"], seed)
        try:
            with started(case["engine"], stream, context) as subject:
                for row in _points(subject, stream.mixed, case, seed):
                    yield {"repetition": repetition, "load_average_before": before, **row}
        except UnavailableError as reason:
            context.say(f"    left out: {reason}")
            yield {"repetition": repetition, "unavailable": str(reason)}


@contextlib.contextmanager
def started(engine: str, stream: Stream, context: Context, **settings: Setting) -> Iterator[Subject]:
    """Run an engine with the subscriptions of a stream."""
    fixed = {"n_workers": _N_WORKERS, "n_dispatchers": _N_DISPATCHERS, **settings}
    given = stream.settings(**fixed)
    plan = stream.plan(given)
    with tempfile.TemporaryDirectory(dir=context.scratch) as scratch:
        if engine == "inline":
            from ps2stream_bench.live.journal_subject import journal_subject_of

            with journal_subject_of(Path(scratch), given, plan, stream.loading) as alone:
                yield alone
            return
        from ps2stream_bench.live.broker import lent_broker
        from ps2stream_bench.live.subject import subject_of

        with (
            lent_broker() as broker,
            subject_of(engine, broker, Path(scratch), given, plan, stream.loading) as subject,
        ):
            yield subject


def _points(subject: Subject, events: pa.RecordBatch, case: Case, seed: int) -> Iterator[Row]:
    """Warm up, measure saturation on a part of the events, and each load on a part of its own."""
    loads = [int(load) for load in case["loads"].split()]
    saturation, flood, rest = saturation_of(subject, events, case["warm_s"], seed)
    start = 0
    seconds = min(case["seconds"], rest.num_rows / (saturation * sum(loads) / 100))
    for index in np.random.default_rng([seed, 15]).permutation(len(loads)):
        offered = saturation * loads[index] / 100
        part = rest.slice(start, max(int(offered * seconds), 1))
        start += part.num_rows
        row = subject.offer(part, offered, seed)
        rates = {"saturation_tuples_per_s": saturation, "flood_tuples_per_s": flood}
        yield {"load": loads[index], "point_s": seconds, **rates, **row}


_COLUMNS = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("engine", "engine"),
    Column("load, %", "load", ".0f"),
    Column("offered, tuples/s", "offered_tuples_per_s", ",.0f"),
    Column("achieved", "achieved_tuples_per_s", ",.0f"),
    Column("p50, ms", "latency_p50_ms", ",.0f"),
    Column("p90", "latency_p90_ms", ",.0f"),
    Column("p99", "latency_p99_ms", ",.0f"),
    Column("p99.9", "latency_p99_9_ms", ",.0f"),
    Column("max", "latency_max_ms", ",.0f"),
    Column("sent late by, ms", "sent_late_ms", ",.0f"),
    Column("others' load before", "load_average_before", ".1f"),
]

_PAPER = """\
The paper's roles hand on every tuple by itself; it names 15 to 407 ms as averages "at a moderate input
speed", without quantiles and without saying which speed that is."""

_OURS = """\
US, Q1, five publications with one update, {workers} worker and {dispatchers} dispatcher. Saturation is the
highest rate of an open loop with which an engine keeps up (of 90, 75, 62, 50, 40 and 30 % of what it makes of
a flood, each tried for some seconds: latency must not grow), found first in the same run; then shares of it
are offered.
Every event is due by a schedule (Poisson arrivals) that was made before the run, whether the engine keeps up
or not. A gateway gathers what was due for {gather} ms: publications go to Kafka as one packet (an Arrow IPC
stream), each update as a JSON record of its own. Latency is from when a publication was *due* until its
first delivery was seen, so that gathering, a sender that was late and a stall of the engine all count.

*realtime* and *microbatch*: seen by a consumer of the topic of matches that reads what was committed;
publications without a match have no latency. *inline*: a journal is appended to durably in place of topics,
and a publication is done when the matches of its batch are in Parquet files, synced. Broker, engine, sender
and observer share the two cores of one machine, and brokers are set up as they come.

*Others' load before* is the system's load average when a case began: what else waited for a core. Where it is
not near 0 a latency is that of a busy machine, and engines whose cases began at different loads cannot be
compared by it."""

_DIFFERS = """\
A delivery of the real-time engine goes through a record of the dispatcher and a transaction of the worker,
which is several requests to the broker; the other engines pay for a batch of Spark, or for synced files."""


def page(rows: Sequence[Row]) -> Page:
    """Show quantiles by engine and load, and judge the target at a moderate load."""
    from ps2stream_bench.live.schedule import GATHER_S

    found = [row for row in rows if row.get("load")]
    left_out = [f"\n\nLeft out: {reason}." for reason in distinct(rows, "unavailable")]
    found.sort(key=lambda row: (row["subscriptions"], ENGINES.index(row["engine"]), row["load"]))
    ours = _OURS.format(workers=_N_WORKERS, dispatchers=_N_DISPATCHERS, gather=f"{GATHER_S * 1000:g}")
    by = ["subscriptions", "engine", "load"]
    drawings = [Drawing("quantiles", _CAPTION, lambda canvas: _draw(canvas, found))] if found else []
    return Page(
        paper=_PAPER,
        ours="\n".join([ours, "", *_saturations(found)]) + "".join(left_out),
        differs=_DIFFERS,
        tables=[table(medians(found, by), _COLUMNS)] if found else [],
        drawings=drawings,
        verdicts=list(_verdicts(found)),
    )


_CAPTION = "p50 and p99 of latency at each load, in percent of an engine's saturation."


def _saturations(rows: Sequence[Row]) -> Iterator[str]:
    for n in distinct(rows, "subscriptions"):
        for engine in distinct(where(rows, subscriptions=n), "engine"):
            found = where(rows, subscriptions=n, engine=engine)
            kept_up, flood = (
                middle(row[f"{name}_tuples_per_s"] for row in found).median
                for name in ("saturation", "flood")
            )
            yield (
                f"- *{engine}* with {n:,.0f} subscriptions keeps up with {kept_up:,.0f} tuples/s, "
                f"and takes in a flood at {flood:,.0f}"
            )


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    for n in distinct(rows, "subscriptions"):
        for engine, targets_ms in _TARGETS_MS.items():
            found = where(rows, engine=engine, load=MODERATE, subscriptions=n)
            for name, target_ms in targets_ms.items() if found else ():
                each = middle(row[f"latency_{name}_ms"] for row in found)
                who = f"{engine}, {n:,.0f} subscriptions"
                claim = f"{who}: {name} at half of saturation is at most {target_ms:g} ms"
                yield Verdict(claim, "", f"{each:,.0f} ms", each.median <= target_ms)


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    sizes = distinct(rows, "subscriptions")
    panels = canvas.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
    for axes, n in zip(panels, sizes, strict=True):
        own = where(rows, subscriptions=n)
        loads, engines = sorted(distinct(own, "load")), distinct(own, "engine")
        values = {}
        for name in ("p50", "p99"):
            by_load = middles(own, ["engine", "load"], f"latency_{name}_ms")
            for (engine, load), each in by_load.items():
                values[f"{load:.0f} %", f"{engine} {name}"] = each
        bars(
            axes,
            [f"{load:.0f} %" for load in loads],
            [f"{engine} {name}" for engine in engines for name in ("p50", "p99")],
            values,
        )
        axes.set(title=f"{n:,.0f} subscriptions", xlabel="load", yscale="log")
        in_thousands(axes)
    panels[0].set_ylabel("latency, ms")
    panels[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


FIGURE = Figure(
    name="latency",
    title="Latency of deliveries",
    about="From when a publication was due until its first delivery was seen, at 10, 50 and 80 % of "
    "saturation: real-time, micro-batch and inline.",
    cases=cases,
    measure=measure,
    page=page,
)
