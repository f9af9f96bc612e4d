"""What the thresholds of hybrid partitioning do to a plan: each is varied, the others keep their default."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ps2stream.partitioning.hybrid import HybridPartitioner, HybridSettings
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.pipeline.trial import try_plan
from ps2stream_bench.partitioning.streams import add_load, corpus_at, costs_for, stream_of
from ps2stream_bench.results import Column, Row, table

SUMMARY = "vary the thresholds of hybrid partitioning"
ABOUT = """\
Build plans with one threshold of hybrid partitioning varied at a time, and try them on a sample of the same
stream that they have not seen. Nothing is timed but the building: the load of a plan is counted.

examples:
  python -m ps2stream_bench.partitioning sensitivity
  python -m ps2stream_bench.partitioning sensitivity --workloads q3 --plot sensitivity.png
"""

#: What is tried, the default among it.
VALUES: dict[str, tuple[float, ...]] = {
    "sigma": (1.02, 1.05, 1.1, 1.2, 1.5, 2.0),
    "delta": (0.0, 0.5, 0.9, 0.95, 0.98, 1.0),
    "epsilon": (0.0, 0.01, 0.02, 0.05, 0.2),
    "theta": (1, 2, 4, 8, 16, 32),
    "bits": (6, 7, 8, 9, 10),
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


def add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--sample", type=int, default=50_000, metavar="N", help="publications, and as many subscriptions")
    add("--subscriptions", type=int, default=200_000, metavar="N", help="live subscriptions")
    add("--workers", type=int, default=8, metavar="N", help="workers")
    add("--settings", nargs="+", choices=list(VALUES), default=list(VALUES), help="thresholds to vary")
    add("--plot", type=Path, metavar="FILE", help="draw L_max over each threshold into this .png or .svg")
    add_load(parser)


def run(arguments: Namespace) -> list[Row]:
    """Build and try all plans."""
    corpus = corpus_at(arguments.corpus, arguments.corpus_size, arguments.seed)
    rows: list[Row] = []
    for kind in arguments.workloads:
        n_publications = 4 * arguments.sample
        stream = stream_of(corpus, kind, arguments.subscriptions, n_publications, arguments.seed)
        seen, unseen = (stream.sample(arguments.sample, arguments.seed + i) for i in range(2))
        costs = costs_for(seen, arguments.load, calibrated=False)
        for setting in arguments.settings:
            for value in VALUES[setting]:
                changed: Any = {setting: value}
                settings = replace(HybridSettings(), **changed)
                measured = try_settings(settings, seen, unseen, costs, arguments.workers)
                rows.append({"workload": kind, "setting": setting, "value": float(value), **measured})
    if arguments.plot:
        plot(rows, arguments.settings, arguments.plot)
    return rows


def try_settings(settings: HybridSettings, seen: Sample, unseen: Sample, costs: Costs, n_workers: int) -> Row:
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


def report(rows: list[Row]) -> str:
    return table(rows, _COLUMNS)


def plot(rows: list[Row], settings: Sequence[str], path: Path) -> None:
    """Draw the largest load over each threshold; 1 is the load with all defaults."""
    import matplotlib.pyplot as plt

    usual = {field.name: field.default for field in fields(HybridSettings)}
    figure, axes = plt.subplots(1, len(settings), figsize=(3.2 * len(settings), 3.2), sharey=True)
    for axis, setting in zip([axes] if len(settings) == 1 else axes, settings, strict=True):
        for kind in dict.fromkeys(row["workload"] for row in rows):
            points = [row for row in rows if row["workload"] == kind and row["setting"] == setting]
            base = next(row["max_load_ms"] for row in points if row["value"] == usual[setting])
            values = range(len(points))
            axis.plot(values, [row["max_load_ms"] / base for row in points], "o-", label=kind.upper())
            axis.set_xticks(values, [f"{row['value']:g}" for row in points])
        axis.set_title(f"{setting} (default {usual[setting]})", fontsize=10)
        axis.axhline(1.0, color="0.7", linewidth=0.8, zorder=0)
    figure.axes[0].set_ylabel("largest load of a worker,\nunseen sample, default = 1")
    figure.axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
