"""How long each partitioner takes for a plan, by the size of the sample and the number of workers."""

from __future__ import annotations

import gc
import time
from argparse import ArgumentParser, Namespace

from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.sample import Sample
from ps2stream_bench.partitioning.streams import add_load, corpus_at, costs_for, stream_of
from ps2stream_bench.results import Column, Row, medians, table

SUMMARY = "time how long a plan takes"
ABOUT = """\
Time what a partitioner takes for a plan, by the clock on the wall. The sample is drawn and its texts are cut
into terms before; kernels are compiled before.

examples:
  python -m ps2stream_bench.partitioning speed --workloads q3
  python -m ps2stream_bench.partitioning speed --samples 50000 --workers 8 64 --repeat 3
"""

_WARM_UP = 500


def add_options(parser: ArgumentParser) -> None:
    add, sizes = parser.add_argument, [25_000, 50_000, 100_000, 200_000]
    add("--samples", type=int, nargs="+", default=sizes, metavar="N", help="sizes of samples, of either kind")
    add("--workers", type=int, nargs="+", default=[8, 16, 32, 64], metavar="N", help="numbers of workers")
    add("--repeat", type=int, default=1, metavar="N", help="plans of each, of which the median counts")
    add_load(parser)


def run(arguments: Namespace) -> list[Row]:
    """Build every plan; the partitioners take turns."""
    corpus = corpus_at(arguments.corpus, arguments.corpus_size, arguments.seed)
    largest = max(arguments.samples)
    rows: list[Row] = []
    for kind in arguments.workloads:
        stream = stream_of(corpus, kind, largest, largest, arguments.seed)
        small = stream.sample(_WARM_UP, arguments.seed)
        costs = costs_for(small, arguments.load, calibrated=False)
        for name in arguments.partitioners:
            build_s(name, small, 2, costs)  # compiles or loads the kernels
        for n in arguments.samples:
            sample = stream.sample(n, arguments.seed)
            costs = costs_for(sample, arguments.load, calibrated=False)
            for repetition in range(arguments.repeat):
                for n_workers in arguments.workers:
                    for name in arguments.partitioners:
                        about = {"workload": kind, "repetition": repetition, "load": arguments.load}
                        point = {"partitioner": name, "sample": n, "workers": n_workers}
                        rows.append({**about, **point, "build_s": build_s(name, sample, n_workers, costs)})
    return rows


def build_s(name: str, sample: Sample, n_workers: int, costs: Costs) -> float:
    """Return the seconds by the clock on the wall: a partitioner may use several cores."""
    gc.collect()
    partitioner = partitioner_named(name, costs)
    started = time.perf_counter()
    partitioner.plan(sample, n_workers)
    return time.perf_counter() - started


def report(rows: list[Row]) -> str:
    """Lay out medians: a line for each partitioner and sample, a column for each number of workers."""
    lines: dict[tuple[str, ...], Row] = {}
    columns = [Column("workload", "workload"), Column("partitioner", "partitioner")]
    columns += [Column("sample, of either kind", "sample", ",.0f")]
    titles = {n: f"{n} workers, s" for n in dict.fromkeys(row["workers"] for row in rows)}
    columns += [Column(title, title, ".2f") for title in titles.values()]
    for row in medians(rows, ("workload", "partitioner", "sample", "workers")):
        key = (row["workload"], row["partitioner"], str(row["sample"]))
        lines.setdefault(key, dict(row))[titles[row["workers"]]] = row["build_s"]
    ordered = sorted(lines.values(), key=lambda row: (row["workload"], row["partitioner"], row["sample"]))
    return table(ordered, columns)
