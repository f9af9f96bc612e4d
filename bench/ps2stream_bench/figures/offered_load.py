"""Latency against offered load, up to saturation and beyond."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ps2stream.engines.inline import InlineEngine
from ps2stream_bench.engines import Stream, loaded, stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.latency import Latency, inline_latency
from ps2stream_bench.metrics import Middle, distinct, grouped, medians, middle, middles, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

ENGINES = ("inline", "microbatch")

#: What the paper may have meant by "a moderate input speed", in percent of saturation.
MODERATE = 50

#: What the mean latency at a moderate load should stay below. The paper names no figure for the stream that
#: is measured here; those that it does name (Sec. VI-C, Latency) are what we take for a yardstick.
_TARGETS_MS = {
    "inline": (25.0, "the paper's figures on Q2 are 15 and 25 ms"),
    "microbatch": (407.0, "the longest that the paper names, metric partitioning on Q1 of the UK"),
}

#: Offered loads in percent of saturation. Micro-batches are long, so each of their points has to be.
_LOADS: dict[tuple[Scale, str], str] = {
    ("tiny", "inline"): "20 50 120",
    ("tiny", "microbatch"): "50",
    ("small", "inline"): "5 20 40 50 60 80 90 100 120",
    ("small", "microbatch"): "5 20 50 80 100 120",
    ("paper", "inline"): "5 20 40 50 60 80 90 100 120",
    ("paper", "microbatch"): "5 20 40 50 60 80 90 100 120",
}
_SECONDS: dict[tuple[Scale, str], float] = {
    ("tiny", "inline"): 1.0,
    ("tiny", "microbatch"): 3.0,
    ("small", "inline"): 2.5,
    ("small", "microbatch"): 8.0,
    ("paper", "inline"): 10.0,
    ("paper", "microbatch"): 60.0,
}
_N_REPETITIONS: dict[tuple[Scale, str], int] = {
    ("tiny", "inline"): 1,
    ("tiny", "microbatch"): 1,
    ("small", "inline"): 3,
    ("small", "microbatch"): 2,
    ("paper", "inline"): 5,
    ("paper", "microbatch"): 3,
}
#: What a repetition may use up. Where an engine is faster than was thought, its points become shorter.
_N_PUBLICATIONS: dict[tuple[Scale, str], int] = {
    ("tiny", "inline"): 200_000,
    ("tiny", "microbatch"): 60_000,
    ("small", "inline"): 2_000_000,
    ("small", "microbatch"): 1_500_000,
    ("paper", "inline"): 8_000_000,
    ("paper", "microbatch"): 8_000_000,
}
_N_LIVE: dict[Scale, int] = {"tiny": 2_000, "small": 100_000, "paper": 5_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 200_000, "paper": 1_000_000}
_ROLES: dict[Scale, tuple[int, int]] = {"tiny": (4, 2), "small": (4, 2), "paper": (8, 4)}

#: Which share of the stream warms an engine up, and which then finds its saturation.
_WARMING, _SATURATING = 0.05, 0.10

#: A rate at which everything is due at once.
_FLOOD = 1e9

_QUANTILES = {"p50": "latency_p50_ms", "p90": "latency_p90_ms", "p99": "latency_p99_ms"}
_QUANTILES |= {"p99.9": "latency_p99_9_ms"}

_COLUMNS = [
    Column("engine", "engine"),
    Column("load, %", "load", ".0f"),
    Column("offered, tuples/s", "offered_tuples_per_s", ",.0f"),
    Column("achieved", "achieved_tuples_per_s", ",.0f"),
    Column("kept up", "kept_up_in"),
    Column("mean, ms", "latency_mean_ms", ",.1f"),
    Column("p50", "latency_p50_ms", ",.1f"),
    Column("p90", "latency_p90_ms", ",.1f"),
    Column("p99", "latency_p99_ms", ",.1f"),
    Column("p99.9", "latency_p99_9_ms", ",.1f"),
    Column("max", "latency_max_ms", ",.1f"),
    Column("mean waiting", "waiting_mean_ms", ",.1f"),
    Column("mean processing", "processing_mean_ms", ",.1f"),
    Column("tuples a batch", "mean_batch_events", ",.0f"),
]


_PAPER = """\
"The latency is the average time of each tuple staying in the system", at "a moderate input speed of the
data stream". What speed that is, and how latency changes with it, is not said. The text names 15 ms for
hybrid and metric partitioning and 25 ms for kd-tree partitioning on Q2, and 407 ms for metric partitioning
on Q1 of the UK. For hybrid partitioning on Q1 of the US, which is measured here, it names no number, so
that there is no claim to judge; its figures serve as targets of ours."""

_METHOD = """\
US, Q1, hybrid partitioning. Saturation is what an engine makes of a flood, when all events are there at
once. Then shares of it are offered in an open loop: events are due by a schedule (Poisson arrivals),
whether the engine keeps up or not, and latency is from when a tuple was due until the matches of its batch
are in Parquet files, synced to disk. What was due while an engine stalled counts in full. The inline engine
takes all that is due, up to 10,000 events, as its next batch. The micro-batch engine reads a journal, to
which what is due is appended every 10 ms. All roles and the publisher share one machine."""

_BATCHES = """\
Storm hands on every tuple by itself. Both of our engines work in batches, and a batch has a fixed cost."""

_COSTS = """\
A tuple waits until the batch before its own has ended, then for its own: at low load, latency is about one
and a half times what a batch takes, and only a cheaper batch would lower it. Inline, the fixed cost is
calls into Arrow and the synced file of matches. A micro-batch costs far more: Spark plans and starts
several jobs, the log of subscriptions and the sink are synced, and Spark notes what it is about to read and
what it has done, so that after a crash every match is there exactly once. What Spark does between two
batches counts as waiting.

With more load batches grow, more tuples share their fixed cost, and latency rises slowly. Beyond saturation
a backlog grows for as long as the load lasts: the figures at 120 % say how long we looked, no more. A
micro-batch holds up to 100,000 events, and the few that fit into a point near saturation cannot show for
certain whether the engine keeps up.

The paper's cluster has a machine for every role and a network between them. Ours shares its cores with the
publisher and, for micro-batches, with the Java machine."""


def cases(scale: Scale) -> list[Case]:
    """Return a case for each engine; its loads share one running engine."""
    n_workers, n_dispatchers = _ROLES[scale]
    found = []
    for engine in ENGINES:
        settings: dict[str, Setting] = {
            "engine": engine,
            "kind": "q1",
            "subscriptions": _N_LIVE[scale],
            "publications": _N_PUBLICATIONS[scale, engine],
            "corpus": _N_CORPUS[scale],
            "workers": n_workers,
            "dispatchers": n_dispatchers,
            "loads": _LOADS[scale, engine],
            "seconds": _SECONDS[scale, engine],
            "repetitions": _N_REPETITIONS[scale, engine],
        }
        found.append(Case(settings))
    return found


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Find the saturation of an engine, then offer it shares of that in random order; again and again."""
    corpus = context.corpus("us", case["corpus"])
    loads = [int(load) for load in case["loads"].split()]
    for repetition in range(case["repetitions"]):
        seed = context.seed + 1000 * repetition
        stream = stream_of(corpus, case["kind"], case["subscriptions"], case["publications"], seed)
        with _started(case, stream, context) as subject:
            for row in _points(subject, stream.mixed, loads, case["seconds"], seed):
                yield {"repetition": repetition, **row}


class Subject(Protocol):
    """A running engine whose subscriptions are loaded."""

    def load(self, events: pa.RecordBatch) -> float:
        """Process events as fast as possible; return tuples/s."""
        ...

    def latency(self, events: pa.RecordBatch, tuples_per_s: float, *, seed: int) -> Latency:
        """Process events as they are due."""
        ...


@dataclass(frozen=True, slots=True)
class _Inline:
    engine: InlineEngine
    sink: Path

    def load(self, events: pa.RecordBatch) -> float:
        return inline_latency(self.engine, events, _FLOOD, self.sink).achieved_tuples_per_s

    def latency(self, events: pa.RecordBatch, tuples_per_s: float, *, seed: int) -> Latency:
        return inline_latency(self.engine, events, tuples_per_s, self.sink, seed=seed)


@contextlib.contextmanager
def _started(case: Case, stream: Stream, context: Context) -> Iterator[Subject]:
    settings = stream.settings(n_workers=case["workers"], n_dispatchers=case["dispatchers"])
    plan = stream.plan(settings)
    with tempfile.TemporaryDirectory(dir=context.scratch) as scratch:
        if case["engine"] == "inline":
            yield _Inline(loaded(plan, settings, stream.loading), Path(scratch))
            return
        from ps2stream_bench.microbatch_latency import live_stream

        with live_stream(context.spark(), Path(scratch), plan, settings, stream.loading) as live:
            yield live


def _points(
    subject: Subject, events: pa.RecordBatch, loads: Sequence[int], seconds: float, seed: int
) -> Iterator[Row]:
    """Measure saturation on the first part of the events, and each load on a part of its own."""
    warming, saturating = (int(share * events.num_rows) for share in (_WARMING, _SATURATING))
    subject.load(events.slice(0, warming))
    saturation = subject.load(events.slice(warming, saturating))
    start = warming + saturating
    # Of the rest every load gets as many seconds as any other.
    seconds = min(seconds, (events.num_rows - start) / (saturation * sum(loads) / 100))
    for index in np.random.default_rng([seed, 12]).permutation(len(loads)):
        offered = saturation * loads[index] / 100
        part = events.slice(start, max(int(offered * seconds), 1))
        start += part.num_rows
        latency = subject.latency(part, offered, seed=seed)
        about: Row = {"load": loads[index], "point_s": seconds, "saturation_tuples_per_s": saturation}
        yield {**about, **latency.row()}


def page(rows: Sequence[Row]) -> Page:
    """Show latency over load for each engine, and compare a moderate load with what the paper says."""
    rows = sorted(rows, key=lambda row: (row["engine"], row["load"], row["repetition"]))
    return Page(
        paper=_PAPER,
        ours=_ours(rows),
        differs=_differs(rows),
        tables=[_table(rows)],
        drawings=[
            Drawing(
                "offered-load",
                "Latency of tuples over offered load; the dashed line is saturation.",
                lambda canvas: _draw(canvas, rows),
            )
        ],
        verdicts=list(_verdicts(rows)),
    )


def _ours(rows: Sequence[Row]) -> str:
    told = [
        f"- *{engine}* saturates at {_saturation(rows, engine):,.0f} tuples/s"
        for engine in distinct(rows, "engine")
    ]
    return "\n".join([_METHOD, "", *told])


def _differs(rows: Sequence[Row]) -> str:
    told = [f"{_at_rest(rows, engine):,.0f} ms ({engine})" for engine in distinct(rows, "engine")]
    return f"{_BATCHES} At the lowest load measured a batch takes {' and '.join(told)}. {_COSTS}"


def _table(rows: Sequence[Row]) -> str:
    kept = {
        key: f"{sum(bool(row['kept_up']) for row in group)} of {len(group)}"
        for key, group in grouped(rows, ["engine", "load"]).items()
    }
    found = medians(rows, ["engine", "load"])
    return table([{**row, "kept_up_in": kept[row["engine"], row["load"]]} for row in found], _COLUMNS)


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    for engine, (target_ms, whence) in _TARGETS_MS.items():
        claim = f"{engine}: mean latency at half of saturation is below {target_ms:g} ms ({whence})"
        found = where(rows, engine=engine, load=MODERATE)
        if not found:
            yield Verdict(claim, "", "not measured", None)
            continue
        mean, p50 = (middle(row[f"latency_{name}_ms"] for row in found) for name in ("mean", "p50"))
        offered = middle(row["offered_tuples_per_s"] for row in found)
        # The paper's latency is an average, so ours is judged by the mean.
        yield Verdict(
            claim,
            "",
            f"mean {mean:,.1f} ms, p50 {p50:,.1f} ms at {offered:,.0f} tuples/s",
            mean.median < target_ms,
        )


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    engines = distinct(rows, "engine")
    panels: Sequence[Axes] = canvas.subplots(1, len(engines), squeeze=False)[0]
    for axes, engine in zip(panels, engines, strict=True):
        found, saturation = where(rows, engine=engine), _saturation(rows, engine).median
        lines(axes, {name: _over_load(found, field, saturation) for name, field in _QUANTILES.items()})
        axes.axvline(saturation, color="0.4", linestyle="--", linewidth=1, label="saturation")
        axes.set(title=engine, xlabel="offered load, tuples/s", yscale="log", xlim=(0, None))
        axes.set_ylim(*_decades(found))
        axes.minorticks_off()
        in_thousands(axes, "x")
        in_thousands(axes, "y")
    panels[0].set_ylabel("latency, ms")
    panels[-1].legend(loc="upper left")


def _decades(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the powers of ten between which all latencies lie: an axis within one would have no ticks."""
    shown = [row[field] for row in rows for field in _QUANTILES.values()]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _over_load(rows: Iterable[Row], field: str, saturation: float) -> dict[float, Middle]:
    """Return a figure over tuples/s; repetitions differ a little in saturation, their shares of it do not."""
    return {saturation * load / 100: found for (load,), found in middles(rows, ["load"], field).items()}


def _saturation(rows: Iterable[Row], engine: str) -> Middle:
    """Return the saturation of an engine: one value for each repetition, not for each of its points."""
    by_repetition = grouped(where(rows, engine=engine), ["repetition"])
    return middle(group[0]["saturation_tuples_per_s"] for group in by_repetition.values())


def _at_rest(rows: Iterable[Row], engine: str) -> float:
    """Return what a batch takes at the lowest load that there is."""
    found = where(rows, engine=engine)
    lowest = min(row["load"] for row in found)
    return middle(row["processing_mean_ms"] for row in where(found, load=lowest)).median


FIGURE = Figure(
    name="offered-load",
    title="Latency against offered load",
    about="Latency of tuples against offered load up to saturation, inline and micro-batch.",
    cases=cases,
    measure=measure,
    page=page,
)
