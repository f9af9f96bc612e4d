"""Ours: how long each partitioner takes for a plan, by the size of the sample and the number of workers."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ps2stream.partitioning import PARTITIONERS, partitioner_named
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.calibration import standard_costs
from ps2stream_bench.contest import sample_of_stream, workload_of
from ps2stream_bench.engines import stream_of
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting
from ps2stream_bench.metrics import distinct, medians, middles, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: Kernels are compiled, or loaded, on a sample of this size before anything is timed.
_WARM_UP = 500

_SAMPLES: dict[Scale, tuple[int, ...]] = {
    "tiny": (500, 1_000),
    "small": (12_500, 25_000, 50_000),
    "paper": (25_000, 50_000, 100_000, 200_000),
}
_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"corpus": 5_000, "workers": "4", "repetitions": 1},
    "small": {"corpus": 200_000, "workers": "8 64", "repetitions": 3},
    "paper": {"corpus": 1_000_000, "workers": "8 16 32 64", "repetitions": 5},
}

_OURS = """\
Seconds by the clock on the wall (a partitioner may use several cores) from a sample to a plan: the sample
is drawn and its texts are cut into terms before, and kernels are compiled before. A sample has as many
publications as subscriptions. The partitioners take turns; medians.
"""

_EXPLAINS = """\
All partitioners share the digest of a sample: which lists of terms and cells its publications read and its
subscriptions stand in. It grows with the sample; the quicker a partitioner, the more of its time this is.
Hybrid has more to do for more workers: it cuts until the load is balanced, and every cut of a region is
tried in both directions and by text. Hypergraph partitions a hypergraph of the terms that occur together.
{told}
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for every size of the sample: US-Q3, where hybrid has the most to decide."""
    return [Case({"country": "us", "kind": "q3", "sample": n, **_SIZES[scale]}) for n in _SAMPLES[scale]]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Build every plan; the partitioners take turns."""
    n = case["sample"]
    stream = stream_of(context.corpus("us", case["corpus"]), case["kind"], n, n, context.seed)
    small, sample = (sample_of_stream(stream, size, context.seed) for size in (min(n, _WARM_UP), n))
    costs = standard_costs(sample, "candidates")
    for name in PARTITIONERS:
        build_s(name, small, 2, costs)
    rng = np.random.default_rng([context.seed, 12])
    for repetition in range(case["repetitions"]):
        for n_workers in map(int, case["workers"].split()):
            for name in rng.permutation(list(PARTITIONERS)).tolist():
                about = {"workload": workload_of(case, context), "partitioner": name, "n_workers": n_workers}
                took_s = build_s(name, sample, n_workers, costs)
                yield {**about, "repetition": repetition, "build_s": took_s}


def build_s(name: str, sample: Sample, n_workers: int, costs: Costs) -> float:
    """Return the seconds that a plan takes."""
    gc.collect()
    partitioner = partitioner_named(name, costs)
    started = time.perf_counter()
    partitioner.plan(sample, n_workers)
    return time.perf_counter() - started


def page(rows: Sequence[Row]) -> Page:
    """Show the times, a column for each number of workers."""
    numbers = sorted(distinct(rows, "n_workers"))
    columns = [Column("workload", "workload"), Column("partitioner", "partitioner")]
    columns += [Column("sample, of either kind", "sample", ",.0f")]
    columns += [Column(f"{n} workers, s", f"build_{n}_s", ".2f") for n in numbers]
    found: dict[tuple[str, int], Row] = {}
    for row in medians(sorted(rows, key=_place), ("partitioner", "sample", "n_workers")):
        line = found.setdefault((row["partitioner"], row["sample"]), dict(row))
        line[f"build_{row['n_workers']:.0f}_s"] = row["build_s"]
    explains = _EXPLAINS.format(told=_told(rows))
    return Page("", _OURS, explains, [table(found.values(), columns)], [_drawing(rows, numbers)])


def _told(rows: Sequence[Row]) -> str:
    """Say what the largest sample takes, and how that grows with the number of workers."""
    of_it = where(rows, sample=max(distinct(rows, "sample")))
    found = middles(of_it, ("partitioner", "n_workers"), "build_s")
    few, many = (end(distinct(of_it, "n_workers")) for end in (min, max))
    seconds = {name: each.median for (name, n), each in found.items() if n == many}
    quickest, slowest = (end(seconds, key=seconds.__getitem__) for end in (min, max))
    told = (
        f"With the largest sample and {many} workers {quickest} is the quickest ({seconds[quickest]:.2f} s), "
        f"{slowest} the slowest ({seconds[slowest]:.2f} s)."
    )
    if few < many and {("hybrid", few), ("hybrid", many)} <= found.keys():
        grown = found["hybrid", many].median / found["hybrid", few].median
        told += f" Hybrid takes {grown:.1f} times as long for {many} workers as for {few}."
    return told


def _place(row: Row) -> tuple[int, int]:
    return list(PARTITIONERS).index(row["partitioner"]), row["sample"]


def _drawing(rows: Sequence[Row], numbers: Sequence[int]) -> Drawing:
    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(1, len(numbers), squeeze=False, sharey=True)[0]
        for axes, n_workers in zip(panels, numbers, strict=True):
            found = middles(where(rows, n_workers=n_workers), ("partitioner", "sample"), "build_s")
            lines(
                axes,
                {
                    name: {float(n): each for (partitioner, n), each in found.items() if partitioner == name}
                    for name in PARTITIONERS
                },
            )
            axes.set_title(f"{n_workers} workers")
            axes.set_xlabel("publications in the sample, as many subscriptions")
            in_thousands(axes, "x")
        # Once all lines are drawn: a limit ends the scaling of the axis that the panels share.
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("seconds for a plan")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return Drawing("seconds", "Time to plan over the size of the sample", draw, (9.0, 3.4))


FIGURE = Figure(
    "planning",
    "Time to plan",
    "Seconds that each partitioner takes from a sample to a plan.",
    cases,
    measure,
    page,
)
