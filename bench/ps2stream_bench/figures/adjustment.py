"""What adjustment is worth while the stream drifts (Sec. VI, Fig. on dynamic load adjustments)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ps2stream.balance.settings import AdjustmentSettings, Scope
from ps2stream_bench.engines import (
    Meter,
    Stream,
    batches_of,
    check_alike,
    drifting_stream_of,
    in_turns,
    loaded,
    stream_of,
)
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import Middle, distinct, grouped, middle, ratio, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: What is adjusted in which contender.
CONTENDERS: dict[str, Scope] = {"none": "off", "local": "local", "local and global": "both"}
#: What drifts: nothing, the kinds of regions as in the paper, and how busy regions are as well.
DRIFTS = ("nothing", "kinds", "kinds and places")

#: Twice the paper's dispatchers: four would set the pace, and what adjustment does to workers be unseen.
_N_WORKERS, _N_DISPATCHERS = 8, 8
_RUSH = 5.0
#: Publications in a life of a subscription, for each that is alive.
_LIFE = 10
#: Live subscriptions, publications of a window, events of a batch.
_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"live": 300, "window": 2_000, "batch": 1_200},
    "small": {"live": 60_000, "window": 200_000, "batch": 20_000},
    "paper": {"live": 1_000_000, "window": 200_000, "batch": 100_000},
}
#: Intervals where something drifts, and where nothing does.
_INTERVALS: dict[Scale, tuple[int, int]] = {"tiny": (3, 2), "small": (5, 3), "paper": (6, 4)}
_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 200_000, "paper": 1_000_000}
#: Which contender is judged: the paper's system adjusts locally and globally.
_JUDGED = "local and global"
_PAPER_GAIN = 0.26
#: For each drift what is claimed, and the figure that the paper states.
_GAINS = (
    (
        "kinds",
        "Local and global adjustment raises throughput by at least 26 % when regions change their kind",
        "+26 % throughput",
    ),
    (
        "kinds and places",
        "Local and global adjustment raises throughput by at least 26 % when busy places change, too",
        "",
    ),
)
_CALM = "A stream that does not change is not adjusted after the first interval"

_COLUMNS = [
    Column("drift", "drift"),
    Column("adjustment", "adjustment"),
    Column("projected tuples/s", "projected", ",.0f"),
    Column("gain", "gain", "+.1%"),
    Column("gain of the busiest worker", "worker_gain", "+.1%"),
    Column("max/mean of workers", "max_mean", ".2f"),
    Column("copies of a subscription", "replication", ".2f"),
    Column("adjustments", "n_adjustments", ",d"),
    Column("moved, MB", "moved_mb", ",.1f"),
    Column("longest pause, ms", "longest_pause_ms", ",.0f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each drift."""
    n_drifting, n_still = _INTERVALS[scale]
    n_intervals = {drift: n_still if drift == "nothing" else n_drifting for drift in DRIFTS}
    fixed = {**_SIZES[scale], "corpus": _CORPUS[scale]}
    return [Case({"drift": drift, "intervals": n, **fixed}) for drift, n in n_intervals.items()]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Run engines with and without adjustment in turns; a row for each interval and engine."""
    stream = _stream_of(case, context)
    n_events = stream.mixed.num_rows // case["intervals"]
    plain = stream.settings(n_workers=_N_WORKERS, n_dispatchers=_N_DISPATCHERS)
    # What is to come after the first interval is not known when the plan is made.
    first = Stream(stream.events.slice(0, case["live"] + n_events), case["live"], stream.stop_words)
    plan = first.plan(plain)
    meters = {}
    for name, scope in CONTENDERS.items():
        adjusting = AdjustmentSettings(
            scope=scope,
            window=case["window"],
            check_every=_LIFE * case["live"],
        )
        settings = stream.settings(n_workers=_N_WORKERS, n_dispatchers=_N_DISPATCHERS, adjustment=adjusting)
        meters[name] = Meter(loaded(plan, settings, stream.loading))
    for interval in range(case["intervals"]):
        part = stream.mixed.slice(interval * n_events, n_events)
        in_turns(meters, batches_of(part, case["batch"]), context.seed + interval)
        rows = [
            {"repetition": 0, "interval": interval, "adjustment": name, **meter.read()}
            for name, meter in meters.items()
        ]
        check_alike(rows, "adjustment")
        yield from rows


def _stream_of(case: Case, context: Context) -> Stream:
    corpus = context.corpus("us", case["corpus"])
    n_live, n_intervals = case["live"], case["intervals"]
    n_publications = _LIFE * n_live * n_intervals
    if case["drift"] == "nothing":
        return stream_of(corpus, "q3", n_live, n_publications, context.seed)
    rush = _RUSH if case["drift"] == "kinds and places" else 1.0
    return drifting_stream_of(
        corpus, n_live, n_publications, context.seed, n_intervals=n_intervals, rush=rush
    )


def page(rows: Sequence[Row]) -> Page:
    """Say what adjustment gains."""
    drifts = [drift for drift in DRIFTS if where(rows, drift=drift)]
    live, window = (", ".join(f"{n:,}" for n in distinct(rows, name)) for name in ("live", "window"))
    shown = {
        "throughput": (
            "projected_tuples_per_s",
            "Projected tuples/s in every interval; the drift begins with the second.",
        ),
        "balance": (
            "busy_max_over_mean",
            "How much longer the busiest worker takes than the average one.",
        ),
    }
    return Page(
        _PAPER,
        f"{_OURS} Live subscriptions: {live}; publications of a window: {window}.",
        _DIFFERS,
        [table(summary(rows), _COLUMNS)],
        [
            Drawing(name, caption, partial(_draw, rows=rows, drifts=drifts, field=field))
            for name, (field, caption) in shown.items()
            if drifts
        ],
        verdicts(rows),
    )


def summary(rows: Sequence[Row]) -> list[Row]:
    """Make a line for each drift and contender of the intervals after the first."""
    found = []
    groups = grouped(drifted(rows), ("drift", "adjustment"))
    for drift, name in ((drift, name) for drift in DRIFTS for name in CONTENDERS):
        own = groups.get((drift, name), [])
        if not own:
            continue
        found.append(
            {
                "drift": drift,
                "adjustment": name,
                "projected": middle(row["projected_tuples_per_s"] for row in own).median,
                "gain": None if name == "none" else gain_of(rows, drift, name),
                "worker_gain": None if name == "none" else gain_of(rows, drift, name, "worker_tuples_per_s"),
                "max_mean": middle(row["busy_max_over_mean"] for row in own),
                "replication": middle(row["replication"] for row in own).median,
                "n_adjustments": sum(row["n_adjustments"] for row in own),
                "moved_mb": sum(row["moved_bytes"] for row in own) / 1e6,
                "longest_pause_ms": 1e3 * max(row["longest_pause_s"] for row in own),
            }
        )
    return found


def drifted(rows: Sequence[Row]) -> list[Row]:
    """Return the intervals after the first, in which nothing has drifted yet."""
    return [row for row in rows if row["interval"] > 0]


def gain_of(rows: Sequence[Row], drift: str, name: str, field: str = "projected_tuples_per_s") -> Middle:
    """Return what a contender gains over the engine without adjustment, interval by interval."""
    own = where(drifted(rows), drift=drift)
    found = ratio(own, field, {"adjustment": name}, {"adjustment": "none"})
    return Middle(found.median - 1, found.low - 1, found.high - 1, found.n)


def most_gain_of(rows: Sequence[Row], drift: str) -> Middle:
    """Return what perfect balance at no cost would gain over the engine without adjustment."""
    return middle(
        max(row["busiest_worker_s"], row["busiest_dispatcher_s"])
        / max(row["workers_busy_s"] / _N_WORKERS, row["busiest_dispatcher_s"], 1e-9)
        - 1
        for row in where(drifted(rows), drift=drift, adjustment="none")
    )


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge the paper's claim, and what adjustment should do where the paper does not say."""
    gains = [_judge_gain(rows, drift, claim, paper) for drift, claim, paper in _GAINS]
    return [*gains, _judge_calm(where(drifted(rows), drift="nothing"))]


def _judge_gain(rows: Sequence[Row], drift: str, claim: str, paper: str) -> Verdict:
    gain, beside = (gain_of(rows, drift, name) for name in (_JUDGED, "local"))
    if not gain.n:
        return Verdict(claim, paper, "not measured", None)
    told = f"{gain:+.1%} over {gain.n} intervals"
    if beside.n:
        told += f"; local adjustment alone {beside:+.1%}"
    most = f"{most_gain_of(rows, drift):+.1%}, of the workers alone {_unbalance_of(rows, drift):+.1%}"
    return Verdict(claim, paper, f"{told}; perfect balance would give {most}", gain.median >= _PAPER_GAIN)


def _judge_calm(own: Sequence[Row]) -> Verdict:
    adjusted = [name for name in CONTENDERS if where(own, adjustment=name) and name != "none"]
    if not adjusted:
        return Verdict(_CALM, "", "not measured", None)
    n_made = {name: sum(row["n_adjustments"] for row in where(own, adjustment=name)) for name in adjusted}
    told = ", ".join(f"{name} {n}" for name, n in n_made.items())
    return Verdict(_CALM, "", f"adjustments: {told}", not any(n_made.values()))


def _unbalance_of(rows: Sequence[Row], drift: str) -> Middle:
    """Return how much longer than the average the busiest worker takes without adjustment."""
    plain = where(drifted(rows), drift=drift, adjustment="none")
    return middle(row["busy_max_over_mean"] - 1 for row in plain)


def _draw(canvas: Canvas, rows: Sequence[Row], drifts: Sequence[str], field: str) -> None:
    panels = canvas.subplots(1, len(drifts), sharey=True, squeeze=False)[0]
    for axes, drift in zip(panels, drifts, strict=True):
        own = where(rows, drift=drift)
        lines(
            axes,
            {
                name: {row["interval"] + 1: middle([row[field]]) for row in where(own, adjustment=name)}
                for name in CONTENDERS
                if where(own, adjustment=name)
            },
        )
        axes.set_title(f"drift: {drift}")
        axes.set_xlabel("interval")
        axes.set_xticks(sorted(each + 1 for each in distinct(own, "interval")))
    if field == "projected_tuples_per_s":
        panels[0].set_ylabel("projected tuples/s")
        panels[0].set_ylim(bottom=0)
        in_thousands(panels[0])
    else:
        panels[0].set_ylabel("busy time, max/mean")
    panels[0].legend(title="adjustment")


_PAPER = """\
STS-US-Q3 with 10M subscriptions, 4 dispatchers, 8 workers, cells selected by GR. Every interval of 10M
new subscriptions the kind of 10 % of the regions switches between Q1 and Q2. With dynamic load adjustment
the throughput is 26 % higher than without."""

_OURS = f"""\
Three engines start from one plan, made from the first interval, and take turns batch by batch on one
stream: without adjustment, with local, and with local and global adjustment. An interval lasts for a life
of a subscription as in the paper: ten publications for every live subscription, in which all
subscriptions are replaced about once. The table is about the intervals after the first; a gain compares
the same interval of the same run.

Three streams: *nothing* drifts; *kinds* is the paper's drift; with *kinds and places* also 10 of the 100
regions are {_RUSH:g} times as busy, in every interval others. Sigma, target and margin have their
defaults. There are 8 workers as in the paper but 8 dispatchers instead of 4: four would set the pace,
and what adjustment does to workers would not be seen. A window is a part of an interval and a new plan is
considered once an interval, as our intervals are shorter than the defaults are made for. *Projected*
tuples/s are those of a cluster with a core for every role: the busiest worker or dispatcher sets them.

Each stream is run once, and the intervals of that run are the sample: medians are over them, and brackets
say how far they differ from each other, not how far another run would. The paper's claim is judged by
*{_JUDGED}*, which is what its system does; local adjustment alone stands beside it."""

_DIFFERS = """\
- *What can be gained at most* is what the busiest worker takes longer than the average one; the verdict
  names it. A worker of ours pays mostly for publications, for their look-ups and for the matches that it
  sends, not for all pairs of publications and subscriptions as in the paper's Definition 1. When a tenth
  of the regions swaps the kind of its subscriptions, publications stay where they are, and so does the
  work that they make. So kinds alone disturb a plan less than they would by that definition.
- *What balance gains is lost in part to copies.* Territories that are cut up have longer borders, and a
  subscription that touches a border is stored, inserted and removed by several workers.
- *Dispatchers set a limit as well.* Where one of them is busier than all workers, no adjustment of
  workers shows in the throughput; the gain of the busiest worker alone stands beside it. While a new plan
  of global adjustment takes over, they route every publication by both plans.
- *Places.* When busy places change, whole workers have more to do than others. That is what adjustment is
  for.
- *Size.* 10M subscriptions with intervals of 100M publications are beyond a benchmark that makes all
  events in advance; at the scale `paper` it is 1M."""

FIGURE = Figure(
    name="adjustment",
    title="The effect of dynamic load adjustment",
    about="Throughput over time of a stream that drifts, with and without adjustment.",
    cases=cases,
    measure=measure,
    page=page,
)
