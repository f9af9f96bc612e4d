"""Under load for long: do memory, files and topics stay as they are?"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream_bench.cluster.bed import UnavailableError
from ps2stream_bench.engines import stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import distinct
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ps2stream_bench.live.subject import Subject

_N_LIVE: dict[Scale, int] = {"tiny": 2_000, "small": 100_000, "paper": 1_000_000}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 20_000, "small": 400_000, "paper": 1_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 100_000, "paper": 200_000}
_SECONDS: dict[Scale, int] = {"tiny": 6, "small": 300, "paper": 3_600}
_RATE: dict[Scale, int] = {"tiny": 2_000, "small": 40_000, "paper": 60_000}
_N_LOOKS = 120
#: What users keep, and for how long, is theirs to say: here some minutes' worth.
_KEPT_BYTES = 128 << 20
_OWN_TOPICS = ("log", "routed", "loads", "control", "notes")

#: Cells move whenever loads differ a little: far more often than anybody would want it.
_RESTLESS = AdjustmentSettings(scope="local", sigma=1.05, target=1.01, window=200_000)
#: In the second half nothing may be larger than in the first, but for a little.
_MOST_GROWTH = 1.1
_SLACK_MIB = 16.0


def cases(scale: Scale) -> list[Case]:
    """Return one case: it takes as long as it says."""
    settings: dict[str, Setting] = {
        "kind": "q1",
        "subscriptions": _N_LIVE[scale],
        "publications": _N_PUBLICATIONS[scale],
        "corpus": _N_CORPUS[scale],
        "workers": 2,
        "seconds": _SECONDS[scale],
        "tuples_per_s": _RATE[scale],
    }
    return [Case(settings)]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Send by the clock, and look again and again how large everything is."""
    from ps2stream_bench.live.broker import lent_broker
    from ps2stream_bench.live.subject import subject_of

    corpus = context.corpus("us", case["corpus"])
    stream = stream_of(corpus, case["kind"], case["subscriptions"], case["publications"], context.seed)
    given = stream.settings(n_workers=case["workers"], n_dispatchers=1, adjustment=_RESTLESS)
    plan = stream.plan(given)
    try:
        with (
            tempfile.TemporaryDirectory(dir=context.scratch) as scratch,
            lent_broker() as broker,
            subject_of("realtime", broker, Path(scratch), given, plan, stream.loading) as subject,
        ):
            if broker.pid is None:
                raise UnavailableError("sizes are seen on this machine only: let the figure start its broker")
            yield from _soaked(subject, case, stream.mixed)
    except UnavailableError as reason:
        context.say(f"    left out: {reason}")
        yield {"unavailable": str(reason)}


def _soaked(subject: Subject, case: Case, events: pa.RecordBatch) -> Iterator[Row]:
    from ps2stream_bench.live.churn import TICK_S, Churn
    from ps2stream_bench.live.retention import keep_at_most

    topics, n = subject.deployment.topics, subject.n_partitions
    keep_at_most(topics, _KEPT_BYTES)
    churn = Churn(topics, events, case["tuples_per_s"], n, case["subscriptions"] // 2)
    started, every_s = time.perf_counter(), case["seconds"] / _N_LOOKS
    look_at, late_s = started + every_s, 0.0
    for number, records in enumerate(churn.ticks()):
        due = started + number * TICK_S
        if (ahead := due - time.perf_counter()) > 0:
            time.sleep(ahead)
        late_s = max(late_s, -ahead)
        subject.client.send(records)
        if due >= look_at:
            look_at += every_s
            n_sent = (number + 1) * churn.n_events_of_tick
            yield {**_looked(subject), "at_s": due - started, "n_sent": n_sent, "sent_late_s": late_s}
            late_s = 0.0
            if due - started >= case["seconds"]:
                break
    subject.client.flush()


def _looked(subject: Subject) -> Row:
    from ps2stream_bench.live.sizes import disk_mib, memory_mib, topics_mib

    subject.deployment.check()
    subject.observer.drop()
    deployment, broker = subject.deployment, subject.broker
    assert broker.pid is not None
    board = deployment.board()
    job = board.get("job", {})
    memory = memory_mib(deployment.process.pid, broker.pid)
    sizes = topics_mib(broker.pid, deployment.topics.prefix)
    latency = job.get("latency") or {}
    return {
        **{f"memory of {part}": size for part, size in memory.items()},
        **{f"topic {name}": size for name, size in sizes.items()},
        "topics between roles": sum(sizes.get(name, 0.0) for name in _OWN_TOPICS),
        "files of state": disk_mib(deployment.home / "state"),
        "n_adjustments": job.get("counters", {}).get("adjustments", 0.0),
        "n_restarts": job.get("counters", {}).get("restarts", 0.0),
        "n_matches": job.get("counters", {}).get("delivered_matches", 0.0),
        "n_subscriptions": float(job.get("subscriptions", math.nan)),
        "latency_p50_ms": 1000 * (latency.get("p50") or math.nan),
        "latency_p99_ms": 1000 * (latency.get("p99") or math.nan),
    }


#: What must not grow, in MiB.
_WATCHED = (
    "memory of roles",
    "memory of driver",
    "memory of Java",
    "memory of broker",
    "files of state",
    "topics between roles",
)

_PAPER = "The paper has no such figure."
_OURS = """\
US, Q1 with {subscriptions:,} subscriptions and half as many that come and go, {tuples_per_s:,} tuples/s for
{seconds:,} s, five publications with one update, two workers, exactly once; cells move whenever loads differ
by 5 %. Users' topics keep the last of what was sent. Memory is that of the processes' own pages, of what
they share a part. Of the first half the maximum is taken from its second quarter on: indexes and topics fill
first."""

_PEAKS = """\
A snapshot is written beside the one before, which goes once the new one is whole: a look at that moment sees
both, and so it is with the memory of workers while cells move. Such peaks are in the maxima; what is between
them is in the plot."""


def page(rows: Sequence[Row]) -> Page:
    """Show sizes over time, and judge whether they grow."""
    left_out = [f"\n\nLeft out: {reason}." for reason in distinct(rows, "unavailable")]
    looks = sorted((row for row in rows if not row.get("unavailable")), key=lambda row: row["at_s"])
    growth = [_growth(looks, name) for name in _WATCHED] if looks else []
    summary = _summary(looks) if looks else []
    return Page(
        paper=_PAPER,
        ours=_OURS.format(**{name: rows[0][name] for name in ("subscriptions", "tuples_per_s", "seconds")})
        + "".join(left_out),
        differs=_PEAKS,
        tables=[table(growth, _GROWTH), table(summary, _SUMMARY)] if looks else [],
        drawings=[Drawing("sizes", "Memory and disk over time.", lambda canvas: _draw(canvas, looks))]
        if looks
        else [],
        verdicts=[
            Verdict(
                f"{row['what']} does not grow in the second half",
                "",
                f"{row['first']:,.0f} to {row['second']:,.0f} MiB",
                row["second"] <= max(_MOST_GROWTH * row["first"], row["first"] + _SLACK_MIB),
            )
            for row in growth
        ]
        + [
            Verdict(
                "no role had to be started again",
                "",
                f"{row['n_restarts']:,.0f} starts",
                not row["n_restarts"],
            )
            for row in summary
            if row.get("n_restarts") is not None
        ],
    )


_GROWTH = [
    Column("what", "what"),
    Column("at most, first half, MiB", "first", ",.0f"),
    Column("second half, MiB", "second", ",.0f"),
]
_SUMMARY = [
    Column("tuples", "n_sent", ",.0f"),
    Column("matches", "n_matches", ",.0f"),
    Column("adjustments", "n_adjustments", ",.0f"),
    Column("roles started again", "n_restarts", ",.0f"),
    Column("subscriptions in the end", "n_subscriptions", ",.0f"),
    Column("sent late at worst, s", "sent_late_s", ".1f"),
    Column("latency p50, ms", "latency_p50_ms", ",.0f"),
    Column("p99, ms", "latency_p99_ms", ",.0f"),
]


def _growth(looks: Sequence[Row], name: str) -> Row:
    sizes = [row.get(name) or 0.0 for row in looks]
    quarter, half = len(sizes) // 4, len(sizes) // 2
    return {"what": name, "first": max(sizes[quarter:half] or sizes), "second": max(sizes[half:])}


def _summary(looks: Sequence[Row]) -> list[Row]:
    last, late = looks[-1], max(row["sent_late_s"] for row in looks)
    return [{**last, "sent_late_s": late}]


def _draw(canvas: Canvas, looks: Sequence[Row]) -> None:
    memory, disk = canvas.subplots(1, 2)
    minutes = [row["at_s"] / 60 for row in looks]
    for axes, names in ((memory, _WATCHED[:4]), (disk, _WATCHED[4:])):
        for name in names:
            axes.plot(minutes, [row.get(name) for row in looks], label=name.removeprefix("memory of "))
        axes.set_xlabel("minutes")
        axes.set_ylim(bottom=0)
        axes.legend()
    memory.set_ylabel("memory, MiB")
    disk.set_ylabel("disk, MiB")


FIGURE = Figure(
    name="soak",
    title="Under load for long",
    about="Memory, files and topics of the real-time engine over time, with churn and adjustments.",
    cases=cases,
    measure=measure,
    page=page,
)
