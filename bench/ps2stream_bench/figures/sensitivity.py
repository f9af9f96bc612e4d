"""Ours: what each threshold of hybrid partitioning does to a plan while the others keep their default."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ps2stream.partitioning.hybrid import HybridPartitioner, HybridSettings
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.calibration import standard_costs
from ps2stream.planning.trial import try_plan
from ps2stream_bench.contest import N_WORKERS, sample_of_stream, workload_of
from ps2stream_bench.engines import stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import Middle, distinct, medians, middle, where
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import KINDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: What is tried, the default among it.
VALUES: dict[str, tuple[float, ...]] = {
    "sigma": (1.02, 1.05, 1.1, 1.2, 1.5, 2.0),
    "delta": (0.0, 0.5, 0.9, 0.95, 0.98, 1.0),
    "epsilon": (0.0, 0.01, 0.02, 0.05, 0.2),
    "theta": (1, 2, 4, 8, 16, 32),
    "bits": (6, 7, 8, 9, 10),
}

#: A default is good when no other value makes the largest load smaller by more than this share.
_NEAR = 0.1
#: Where the plot ends: a plan that fails altogether would flatten all others.
_HIGHEST = 1.6

_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"sample": 500, "live": 1_000, "corpus": 5_000, "repetitions": 1},
    "small": {"sample": 20_000, "live": 100_000, "corpus": 200_000, "repetitions": 2},
    "paper": {"sample": 100_000, "live": 1_000_000, "corpus": 1_000_000, "repetitions": 5},
}

_COLUMNS = [
    Column("workload", "workload"),
    Column("setting", "setting"),
    Column("value", "value", "g"),
    Column("total load, ms", "load_ms", ",.1f"),
    Column("L_max, ms", "max_load_ms", ",.2f"),
    Column("L_max/L_avg", "max_over_mean", ".3f"),
    Column("fan-out", "fan_out", ".2f"),
    Column("replication", "replication", ".2f"),
    Column("units", "units", ",.0f"),
    Column("build, s", "build_s", ".2f"),
]

_EXPLAINS = """\
A plan is judged on a sample that it was not made from, so a small sigma may be kept by fitting the one
sample, not the stream. Epsilon and theta matter only where cutting goes on for long; where it ends earlier,
for lack of publications or because sigma is kept, they change nothing. Delta decides what is looked into at
all: with a low one, regions whose texts are like their subscriptions are divided by text too, at the price
of fan-out. Finer cells (bits) let dense places be cut, and make a region touch more of them.

{ranges}
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for every kind of subscriptions, all of the US."""
    kinds = ("q3",) if scale == "tiny" else KINDS
    return [Case({"country": "us", "kind": kind, "workers": N_WORKERS, **_SIZES[scale]}) for kind in kinds]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Plan from one sample and try on another, for every value of every threshold."""
    n, n_seeds = case["sample"], 2 * case["repetitions"]
    stream = stream_of(context.corpus("us", case["corpus"]), case["kind"], case["live"], 4 * n, context.seed)
    for repetition in range(case["repetitions"]):
        first = context.seed + n_seeds * repetition
        seen, unseen = (sample_of_stream(stream, n, first + number) for number in range(2))
        costs = standard_costs(seen, "candidates")
        usual = tried(HybridSettings(), seen, unseen, costs, case["workers"])
        for setting, values in VALUES.items():
            for value in values:
                changed: Any = {setting: value}
                settings = replace(HybridSettings(), **changed)
                is_usual = settings == HybridSettings()
                row = usual if is_usual else tried(settings, seen, unseen, costs, case["workers"])
                about = {"workload": workload_of(case, context), "setting": setting, "value": float(value)}
                yield {**about, "is_default": is_usual, "repetition": repetition, **row}


def tried(settings: HybridSettings, seen: Sample, unseen: Sample, costs: Costs, n_workers: int) -> Row:
    """Plan from one sample and count the loads of another."""
    started = time.perf_counter()
    plan = HybridPartitioner(costs, settings).plan(seen, n_workers)
    build_s = time.perf_counter() - started
    trial = try_plan(plan, unseen)
    loads = trial.loads(costs) / 1e6
    return {
        "load_ms": float(loads.sum()),
        "max_load_ms": float(loads.max()),
        "max_over_mean": float(loads.max() / loads.mean()),
        "fan_out": trial.fan_out,
        "replication": trial.replication,
        "units": n_units(plan),
        "build_s": build_s,
    }


def n_units(plan: Plan) -> int:
    """Count what workers were given: boxes, and sets of terms of a box."""
    leaves = plan.tree.leaves() if plan.tree else ()
    return sum(len(getattr(leaf, "parts", (leaf,))) for leaf in leaves)


def page(rows: Sequence[Row]) -> Page:
    """Show what every value does, and say whether the defaults are good ones."""
    size = rows[0]
    ours = (
        f"{size['sample']:,} publications and as many subscriptions, which stand for {size['live']:,} live "
        f"ones, {size['workers']} workers. Nothing is timed but the building of a plan: loads are counted, "
        "by the load function *candidates* with standard costs, on another sample of the same stream. "
        "Repetitions draw other samples."
    )
    lines = medians(rows, ("workload", "setting", "value"))
    explains = _EXPLAINS.format(ranges=_ranges_told(rows))
    return Page("", ours, explains, [table(lines, _COLUMNS)], [_drawing(rows)], list(_verdicts(rows)))


def over_default(rows: Sequence[Row]) -> dict[tuple[str, str, float], Middle]:
    """Return the largest load of each (workload, setting, value) by that of the default, sample by sample."""
    usual = {_sample(row): row["max_load_ms"] for row in rows if row["is_default"]}
    ratios: dict[tuple[str, str, float], list[float]] = {}
    for row in rows:
        if _sample(row) in usual:
            key = row["workload"], row["setting"], row["value"]
            ratios.setdefault(key, []).append(row["max_load_ms"] / usual[_sample(row)])
    return {key: middle(values) for key, values in ratios.items()}


def _ranges_told(rows: Sequence[Row]) -> str:
    """Say between what the largest load lies while one threshold takes all its values."""
    loads: dict[str, list[float]] = {}
    for (_, setting, _), each in over_default(rows).items():
        loads.setdefault(setting, []).append(each.median)
    told = ", ".join(f"{setting} {min(each):.2f} to {max(each):.2f}" for setting, each in loads.items())
    return f"Over all values and workloads the largest load is, with the defaults as 1: {told}."


def _sample(row: Row) -> tuple[str, str, int]:
    return row["workload"], row["setting"], row["repetition"]


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    for workload in distinct(rows, "workload"):
        found = over_default(where(rows, workload=workload))
        if found:
            (_, setting, value), least = min(found.items(), key=lambda item: item[1].median)
            yield Verdict(
                f"{workload}: no other value of one threshold lowers the largest load "
                f"by more than {100 * _NEAR:.0f} %",
                "",
                f"the least is {least:.2f} times that of the defaults, with {setting} {value:g}",
                least.median >= 1 - _NEAR,
            )


def _drawing(rows: Sequence[Row]) -> Drawing:
    def draw(canvas: Canvas) -> None:
        found = over_default(rows)
        panels = canvas.subplots(1, len(VALUES), squeeze=False, sharey=True)[0]
        for axes, (setting, values) in zip(panels, VALUES.items(), strict=True):
            for workload in distinct(rows, "workload"):
                there = [i for i, value in enumerate(values) if (workload, setting, float(value)) in found]
                loads = [found[workload, setting, float(values[i])].median for i in there]
                axes.plot(there, loads, "o-", markersize=4, label=workload)
            axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
            axes.set_title(f"{setting} (default {getattr(HybridSettings(), setting):g})")
            axes.axhline(1.0, color="0.7", linewidth=0.8, zorder=0)
        panels[0].set_ylim(0.0, _HIGHEST)
        panels[0].set_ylabel("largest load of a worker,\nunseen sample, default = 1")
        panels[0].legend()

    caption = (
        f"The largest load of a worker over each threshold, up to {_HIGHEST:g} times that of the defaults"
    )
    return Drawing("thresholds", caption, draw, (14.0, 3.2))


FIGURE = Figure(
    "sensitivity",
    "The thresholds of hybrid partitioning",
    "What sigma, delta, epsilon, theta and the grid do to a plan of hybrid partitioning.",
    cases,
    measure,
    page,
)
