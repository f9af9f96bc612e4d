"""Ours: how well two load functions predict the busy time of workers, over plans of all partitioners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream.partitioning import PARTITIONERS, partitioner_named
from ps2stream.partitioning.load import LOAD_FUNCTIONS, Costs
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.calibration import calibrate, rank_correlation, standard_costs
from ps2stream.planning.trial import try_plan
from ps2stream_bench.contest import sample_of_stream, workload_of
from ps2stream_bench.engines import stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import distinct, grouped, where
from ps2stream_bench.plots import colour_of
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import KINDS, Kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: Where costs come from: measured on the sample first, or constants.
_ORIGINS = ("calibrated", "standard")

#: A worker that has hardly anything to do measures the clock.
_LEAST_ROWS = 50

_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"sample": 800, "corpus": 5_000, "workers": "2 4", "repetitions": 2},
    "small": {"sample": 30_000, "corpus": 200_000, "workers": "4 8 16", "repetitions": 3},
    "paper": {"sample": 200_000, "corpus": 1_000_000, "workers": "4 8 16 32", "repetitions": 5},
}
_KINDS: dict[Scale, tuple[Kind, ...]] = {"tiny": ("q3",), "small": ("q1", "q3"), "paper": KINDS}

_OURS = """\
Plans of all partitioners for several numbers of workers are tried on the sample that they were made from:
its subscriptions are inserted, its publications matched, its subscriptions deleted. The load of every
worker by a load function is compared with the processor time that it took; of several trials the least time
counts. Errors are relative to the measured time. *Calibrated* costs are measured on the sample first,
*standard* ones are constants.

The rank correlation over everything profits from plans of few workers having large loads. The columns by
number of workers do not, but they need plans of several partitioners: one that balances by a load function
makes all its workers equal in it, and what is left to rank is noise.
"""

_EXPLAINS = """\
Definition 1 of the paper charges a worker for every pair of a publication and a subscription that meet
there (load function *paper*). An index does not look at all pairs: it reads the lists of the terms that a
publication has, in the cell that it is in. The load function *candidates* counts these looks. The number of
pairs goes by the square of a worker's share, that of looks in proportion to it, and a worker with a dense
place has many looks for few pairs; one constant c1 cannot fit both a plan of few workers and one of many.

Neither function charges for a call, which costs the same however few tuples it is for: with a small sample
and many workers both may foretell too little. Calibrated costs are fitted to small parts of the sample, so
they carry the noise of that moment.
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for some kinds of subscriptions, all of the US."""
    return [Case({"country": "us", "kind": kind, **_SIZES[scale]}) for kind in _KINDS[scale]]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Try all plans in turns; yield a row for each worker of each of them and every trial."""
    n = case["sample"]
    stream = stream_of(context.corpus("us", case["corpus"]), case["kind"], n, n, context.seed)
    sample = sample_of_stream(stream, n, context.seed)
    models = _models(sample)
    usual = standard_costs(sample, "candidates")
    plans = {
        (name, n_workers): partitioner_named(name, usual).plan(sample, n_workers)
        for name in PARTITIONERS
        for n_workers in map(int, case["workers"].split())
    }
    rng = np.random.default_rng([context.seed, 14])
    for repetition in range(case["repetitions"]):
        for index in rng.permutation(len(plans)):
            (name, n_workers), plan = list(plans.items())[index]
            about = {"workload": workload_of(case, context), "partitioner": name, "n_workers": n_workers}
            for row in _trial(plan, sample, models):
                yield {**about, "repetition": repetition, **row}


def _models(sample: Sample) -> dict[str, Costs]:
    return {
        f"{load}_{origin}_s": (calibrate if origin == "calibrated" else standard_costs)(sample, load)
        for load in LOAD_FUNCTIONS
        for origin in _ORIGINS
    }


def _trial(plan: Plan, sample: Sample, models: dict[str, Costs]) -> Iterator[Row]:
    """Try a plan once; yield what every worker had to do, what it took, and what was predicted."""
    # A trial holds the sampled subscriptions only, however many they stand for.
    trial = try_plan(plan, sample)
    trial = replace(trial, sample=sample._replace(n_live=0))
    busy_s = trial.busy_s()
    predicted = {name: 1e-9 * trial.loads(costs) for name, costs in models.items()}
    for worker in range(plan.n_workers):
        yield {
            "worker": worker,
            "n_publications": int(trial.n_publications[worker]),
            "n_subscriptions": int(trial.n_subscriptions[worker]),
            "busy_s": float(busy_s[worker]),
            **{name: float(loads[worker]) for name, loads in predicted.items()},
        }


def page(rows: Sequence[Row]) -> Page:
    """Show the errors of every load function, and say which is the better one."""
    workers = quietest(rows)
    numbers = sorted(distinct(workers, "n_workers"))
    columns = [Column("workload", "workload"), Column("load", "load"), Column("costs", "costs")]
    columns += [Column("mean error", "mean_error", ".0%"), Column("largest", "max_error", ".0%")]
    columns += [Column("workers judged", "n", ",.0f"), Column("rank correlation", "rank_all", ".3f")]
    columns += [Column(f"of {n} workers", f"rank_{n}", ".3f") for n in numbers]
    lines = [
        _judged(where(workers, workload=workload), load, origin, numbers)
        for workload in distinct(workers, "workload")
        for load in LOAD_FUNCTIONS
        for origin in _ORIGINS
    ]
    return Page("", _OURS, _EXPLAINS, [table(lines, columns)], [_drawing(workers)], list(_verdicts(lines)))


def quietest(rows: Sequence[Row]) -> list[Row]:
    """Keep of every worker the trial that took the least time: noise only ever adds to it."""
    by = ("workload", "partitioner", "n_workers", "worker")
    busy = [row for row in rows if row["n_publications"] + row["n_subscriptions"] >= _LEAST_ROWS]
    return [min(group, key=lambda row: row["busy_s"]) for group in grouped(busy, by).values()]


def _judged(workers: Sequence[Row], load: str, origin: str, numbers: Sequence[int]) -> Row:
    field = f"{load}_{origin}_s"
    predicted, measured = _columns(workers, field)
    errors = np.abs(predicted - measured) / np.maximum(measured, 1e-9)
    ranks = {f"rank_{n}": rank_correlation(*_columns(where(workers, n_workers=n), field)) for n in numbers}
    return {
        "workload": workers[0]["workload"],
        "load": load,
        "costs": origin,
        "n": len(workers),
        "mean_error": float(errors.mean()),
        "max_error": float(errors.max()),
        "rank_all": rank_correlation(predicted, measured),
        **ranks,
    }


def _columns(workers: Sequence[Row], field: str) -> tuple[Float64s, Float64s]:
    return np.array([row[field] for row in workers]), np.array([row["busy_s"] for row in workers])


def _verdicts(lines: Sequence[Row]) -> Iterator[Verdict]:
    for workload in distinct(lines, "workload"):
        of_it = where(lines, workload=workload)
        errors = {(line["load"], line["costs"]): line["mean_error"] for line in of_it}
        ranks = {(line["load"], line["costs"]): line["rank_all"] for line in of_it}
        told = "; ".join(
            f"{load}, {origin} costs {errors[load, origin]:.0%} (rank correlation {ranks[load, origin]:.2f})"
            for load, origin in errors
        )
        yield Verdict(
            f"{workload}: counting candidates predicts busy time better than counting pairs",
            "",
            f"mean error: {told}",
            all(errors["candidates", origin] < errors["paper", origin] for origin in _ORIGINS),
        )


def _drawing(workers: Sequence[Row]) -> Drawing:
    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(1, len(LOAD_FUNCTIONS), squeeze=False, sharex=True, sharey=True)[0]
        for axes, load in zip(panels, LOAD_FUNCTIONS, strict=True):
            for index, name in enumerate(distinct(workers, "partitioner")):
                predicted, measured = _columns(where(workers, partitioner=name), f"{load}_calibrated_s")
                axes.scatter(
                    1000 * measured,
                    1000 * predicted,
                    s=9,
                    color=colour_of(name, index),
                    label=name,
                    alpha=0.7,
                )
            _, measured = _columns(workers, "busy_s")
            ends = [1000 * float(measured.min()), 1000 * float(measured.max())]
            axes.plot(ends, ends, color="0.5", linewidth=0.8)
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter("{x:g}")
            axes.set_title(f"load function: {load}")
            axes.set_xlabel("busy time of a worker, ms")
        panels[0].set_ylabel("predicted, ms")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    caption = (
        "Predicted and measured busy time of every worker of every plan, calibrated costs, all workloads"
    )
    return Drawing("busy-time", caption, draw, (9.0, 3.8))


FIGURE = Figure(
    "prediction",
    "Which load function predicts the busy time of workers",
    "The load that partitioners balance, by the paper's formula and by ours, against measured time.",
    cases,
    measure,
    page,
)
