"""The real-time engine: throughput and core-seconds, visibility of updates, delays while cells move."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.partitioning.plan import Plan
from ps2stream_bench.cluster.bed import UnavailableError
from ps2stream_bench.engines import Stream, loaded, stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.latency import inline_latency
from ps2stream_bench.live.saturation import flooded, saturation_of
from ps2stream_bench.live.threads import PARTS
from ps2stream_bench.metrics import distinct, medians, middle, ratio, where
from ps2stream_bench.plots import stacked
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ps2stream_bench.live.subject import Subject

THROUGHPUT, VISIBILITY, ADJUSTMENT = "throughput", "visibility", "adjustment"
_TARGET = 1.2

_N_LIVE: dict[Scale, int] = {"tiny": 2_000, "small": 100_000, "paper": 1_000_000}
#: Of throughput.
_N_FLOODED: dict[Scale, Sequence[int]] = {
    "tiny": (2_000,),
    "small": (100_000, 1_000_000),
    "paper": (100_000, 1_000_000),
}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 150_000, "small": 4_000_000, "paper": 8_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 100_000, "paper": 200_000}
_N_TURNS: dict[Scale, int] = {"tiny": 1, "small": 3, "paper": 6}
_WARM_S: dict[Scale, float] = {"tiny": 0.5, "small": 25.0, "paper": 40.0}
_SECONDS: dict[Scale, float] = {"tiny": 3.0, "small": 10.0, "paper": 30.0}
#: As a share of saturation, while visibility and delays are looked at.
_LOAD = 0.5
_FLOOD = 1e9

#: Cells move whenever loads differ a little: far more often than anybody would want it.
_RESTLESS = AdjustmentSettings(scope="local", sigma=1.05, target=1.01, window=10_000)


def cases(scale: Scale) -> list[Case]:
    """Return cases for each of the three questions."""
    fixed: dict[str, Setting] = {
        "kind": "q1",
        "publications": _N_PUBLICATIONS[scale],
        "corpus": _N_CORPUS[scale],
        "warm_s": _WARM_S[scale],
    }
    loaded: dict[str, Setting] = {**fixed, "subscriptions": _N_LIVE[scale], "seconds": _SECONDS[scale]}
    flooded: dict[str, Setting] = {**fixed, "mode": THROUGHPUT, "workers": 1, "turns": _N_TURNS[scale]}
    return [
        *(Case({**flooded, "subscriptions": n_live}) for n_live in _N_FLOODED[scale]),
        Case({"mode": VISIBILITY, "workers": 1, **loaded}),
        Case({"mode": ADJUSTMENT, "workers": 2, **loaded}),
    ]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Measure what a case asks."""
    corpus = context.corpus("us", case["corpus"])
    n_live = case["subscriptions"]
    stream = stream_of(corpus, case["kind"], n_live, case["publications"], context.seed)
    before = os.getloadavg()[0]
    try:
        for row in _MEASURES[case["mode"]](case, stream, context):
            yield {"load_average_before": before, **row}
    except UnavailableError as reason:
        context.say(f"    left out: {reason}")
        yield {"unavailable": str(reason)}


@contextlib.contextmanager
def _started(stream: Stream, given: Settings, plan: Plan, context: Context) -> Iterator[Subject]:
    from ps2stream_bench.live.broker import lent_broker
    from ps2stream_bench.live.subject import subject_of

    with (
        tempfile.TemporaryDirectory(dir=context.scratch) as scratch,
        lent_broker() as broker,
        subject_of("realtime", broker, Path(scratch), given, plan, stream.loading) as subject,
    ):
        yield subject


def _throughput(case: Case, stream: Stream, context: Context) -> Iterator[Row]:
    """Let inline and realtime process one part after the other of the same events, in turns."""
    given = stream.settings(n_workers=case["workers"], n_dispatchers=1)
    plan, events = stream.plan(given), stream.mixed
    with _started(stream, given, plan, context) as subject:
        alone = loaded(plan, given, stream.loading)
        _, rest = flooded(subject, events, case["warm_s"], context.seed)
        alone.process(events.slice(0, events.num_rows - rest.num_rows))
        size = rest.num_rows // case["turns"]
        for turn in range(case["turns"]):
            part = rest.slice(turn * size, size)
            sink = context.scratch / "inline-matches"
            with _one_core():
                achieved = inline_latency(alone, part, _FLOOD, sink).achieved_tuples_per_s
            yield {"repetition": turn, "engine": "inline", "n_events": size, "tuples_per_s": achieved}
            before = _busy(subject.deployment.board())
            row = subject.flood(part, is_packed=True)
            busy = _busy(subject.deployment.board())
            told = {f"busy_s of {role}": seconds - before.get(role, 0.0) for role, seconds in busy.items()}
            yield {"repetition": turn, "engine": "realtime", **row, **told}


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process on one core; where the system has no such thing, trust that it uses no more."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _busy(board: dict[str, Any]) -> dict[str, float]:
    """Return the seconds that roles have been at work, as they say: neither reading nor writing topics."""
    found: dict[str, float] = {}
    for role in board.get("roles", []):
        name = role["role"]
        found[name] = found.get(name, 0.0) + role["counters"].get("busy_seconds", 0.0)
    return found


def _visibility(case: Case, stream: Stream, context: Context) -> Iterator[Row]:
    """Subscribe under load, and see which publication is the first to see it."""
    from ps2stream_bench.live.visibility import Probe

    given = stream.settings(n_workers=case["workers"], n_dispatchers=1)
    with _started(stream, given, stream.plan(given), context) as subject:
        rest, rate = _saturated(subject, stream.mixed, case, context)
        part = rest.slice(0, int(rate * case["seconds"]))
        probe = Probe(subject, part.num_rows / rate)
        row = subject.offer(part, rate, context.seed, on_start=probe.start)
        probe.join()
        waited_s, n_unseen = probe.found_s(subject.seen)
        waited_ms = waited_s * 1000
        if not len(waited_ms):
            raise RuntimeError("no subscription was acknowledged in time to be looked for")
        p50, p99 = np.quantile(waited_ms, [0.5, 0.99], method="inverted_cdf")
        yield {
            **row,
            "n_updates_looked_for": len(waited_ms),
            "n_updates_unseen": n_unseen,
            "visible_p50_ms": float(p50),
            "visible_p99_ms": float(p99),
        }


def _adjustment(case: Case, stream: Stream, context: Context) -> Iterator[Row]:
    """Offer the same load while no cell moves, and while some do all the time."""
    rate = 0.0
    for is_moving in (False, True):
        given = stream.settings(n_workers=case["workers"], n_dispatchers=1)
        plan = stream.plan(given)
        if is_moving:
            given = stream.settings(n_workers=case["workers"], n_dispatchers=1, adjustment=_RESTLESS)
        with _started(stream, given, plan, context) as subject:
            rest, own_rate = _saturated(subject, stream.mixed, case, context)
            rate = rate or own_rate
            n_before = _n_adjustments(subject)
            row = subject.offer(rest.slice(0, int(rate * case["seconds"])), rate, context.seed)
            n_made = _n_adjustments(subject) - n_before
            yield {"repetition": 0, "cells": "move" if is_moving else "stay", "n_adjustments": n_made, **row}


def _n_adjustments(subject: Subject) -> float:
    return float(subject.deployment.board().get("job", {}).get("counters", {}).get("adjustments", 0))


def _saturated(
    subject: Subject, events: pa.RecordBatch, case: Case, context: Context
) -> tuple[pa.RecordBatch, float]:
    """Return the events that are left after a look at the saturation, and half of that."""
    found = saturation_of(subject, events, case["warm_s"], context.seed)
    return found.rest, _LOAD * found.tuples_per_s


_MEASURES = {THROUGHPUT: _throughput, VISIBILITY: _visibility, ADJUSTMENT: _adjustment}

_RATES = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("engine", "engine"),
    Column("tuples/s", "tuples_per_s", ",.0f"),
    *(Column(f"{part}, µs a tuple", f"us of {part}", ".1f") for part in PARTS),
    *(Column(f"{role} at work", f"us at {role}", ".1f") for role in ("registrar", "dispatcher", "worker")),
]
_BEFORE = Column("others' load before", "load_average_before", ".1f")
_VISIBLE = [
    Column("offered, tuples/s", "offered_tuples_per_s", ",.0f"),
    Column("subscriptions looked for", "n_updates_looked_for", ",.0f"),
    Column("not seen within 2 s", "n_updates_unseen", ",.0f"),
    Column("visible after: p50, ms", "visible_p50_ms", ",.0f"),
    Column("p99, ms", "visible_p99_ms", ",.0f"),
    _BEFORE,
]
_DELAYS = [
    Column("cells", "cells"),
    Column("adjustments", "n_adjustments", ",.0f"),
    Column("offered, tuples/s", "offered_tuples_per_s", ",.0f"),
    Column("p50, ms", "latency_p50_ms", ",.0f"),
    Column("p99, ms", "latency_p99_ms", ",.0f"),
    Column("over 100 ms, %", "over_100_ms", ".1f"),
    Column("over 1 s, %", "over_1_s", ".1f"),
    _BEFORE,
]

_PAPER = """\
While cells move, 20 % of the tuples take longer than 100 ms and 4 % longer than a second (Sec. VI-D, greedy
selection). Throughput of one machine and visibility of updates are not in the paper."""

_OURS = """\
US, Q1, five publications with one update, exactly once: what workers deliver are transactions of Kafka.
*Throughput*: the same events flood the real-time engine, with broker, JVM, sender and observer on the two
cores, and the inline engine on one core, with a Parquet sink and without a journal; they take turns. The
broker is warm: Java has translated what it does often.
Seconds are those of the system's counters, by thread: those of librdkafka bear names. *At work* is what roles
say of themselves: their processor time between reading and writing topics.

*Visibility*, with {subscriptions:,} subscriptions: under half of the saturation, from when brokers had
acknowledged a subscription until a publication was sent that was delivered to it, without asking to come
after it; the grain is 5 ms. One that was not seen within 2 s counts with these.

*Adjustment*, with as many: half of the saturation, two workers; cells move whenever loads differ by 5 %.
Shares are those of all publications with a match, beside a run in which nothing moves.

*Others' load before* is the system's load average when a case began: what else waited for a core. Rates and
delays are those of such a machine; processor time of a tuple hardly depends on it."""


def page(rows: Sequence[Row]) -> Page:
    """Show the three parts, and judge the targets."""
    left_out = [f"\n\nLeft out: {reason}." for reason in distinct(rows, "unavailable")]
    measured = [row for row in rows if not row.get("unavailable")]
    rates = [_per_tuple(row) for row in where(measured, mode=THROUGHPUT)]
    visible = where(measured, mode=VISIBILITY)
    delays = [
        {**row, "over_100_ms": 100 * row["share_over_100_ms"], "over_1_s": 100 * row["share_over_1_s"]}
        for row in where(measured, mode=ADJUSTMENT)
    ]
    titled = [
        ("Throughput, and where core-seconds go:", medians(rates, ["subscriptions", "engine"]), _RATES),
        ("Visibility:", visible, _VISIBLE),
        ("Delays:", delays, _DELAYS),
    ]
    realtime = where(rates, engine="realtime")
    return Page(
        paper=_PAPER,
        ours=_OURS.format(subscriptions=min(row["subscriptions"] for row in rows)) + "".join(left_out),
        differs="",
        tables=[f"{title}\n\n{table(found, columns)}" for title, found, columns in titled if found],
        drawings=[Drawing("core-seconds", _CAPTION, lambda canvas: _draw(canvas, realtime))]
        if realtime
        else [],
        verdicts=list(_verdicts(rates, visible, delays)),
    )


_CAPTION = "Processor time of a tuple by what spent it, in each turn."


def _per_tuple(row: Row) -> Row:
    n = row["n_events"]
    told = {
        f"{'us of' if name.startswith('cpu_s') else 'us at'} {name.partition(' of ')[2]}": 1e6 * value / n
        for name, value in row.items()
        if name.startswith(("cpu_s of ", "busy_s of ")) and value is not None
    }
    return {**row, **told}


def _verdicts(rates: Sequence[Row], visible: Sequence[Row], delays: Sequence[Row]) -> Iterator[Verdict]:
    for n in distinct(rates, "subscriptions"):
        own = where(rates, subscriptions=n)
        each = ratio(own, "tuples_per_s", {"engine": "realtime"}, {"engine": "inline"})
        claim = f"{n:,.0f} subscriptions: two cores do {_TARGET:g} times as many tuples/s as inline on one"
        yield Verdict(claim, "", f"{each:.2f}", each.median >= _TARGET)
    if visible:
        p99 = middle(row["visible_p99_ms"] for row in visible)
        claim = "99 % of subscriptions are visible within a second after they were acknowledged"
        yield Verdict(claim, "", f"p99 {p99:,.0f} ms", p99.median <= 1000)
    moving = where(delays, cells="move")
    for name, limit, target, words in (
        ("over_100_ms", 20.0, 1.0, "100 ms"),
        ("over_1_s", 4.0, 0.0, "a second"),
    ):
        if moving:
            each = middle(row[name] for row in moving)
            claim = f"While cells move, at most {limit:g} % of publications take longer than {words}"
            yield Verdict(claim, f"{limit:g} %", f"{each:.1f} %", each.median <= limit)
            claim = f"While cells move, at most {target:g} % of publications take longer than {words}"
            yield Verdict(claim, "", f"{each:.1f} %", each.median <= target)


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    parts: dict[str, list[float]] = {
        part: [row.get(f"us of {part}") or 0.0 for row in rows] for part in PARTS
    }
    names = [f"{row['subscriptions']:,.0f}, turn {row['repetition'] + 1:.0f}" for row in rows]
    stacked(axes, names, parts)
    axes.set_ylabel("µs a tuple")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


FIGURE = Figure(
    name="realtime",
    title="The real-time engine",
    about="Throughput against inline on one core and where core-seconds go; when updates are visible; delays "
    "while cells move.",
    cases=cases,
    measure=measure,
    page=page,
)
