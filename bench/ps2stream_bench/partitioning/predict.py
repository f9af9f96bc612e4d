"""How well the load functions predict the busy time of workers, over plans of all kinds."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.load import LOAD_FUNCTIONS, Costs
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.pipeline.calibration import prediction, quietest, standard_costs
from ps2stream.pipeline.trial import Trial, try_plan
from ps2stream_bench.partitioning.streams import corpus_at, costs_fields, costs_for, stream_of
from ps2stream_bench.results import Column, Row, table

SUMMARY = "see how well load functions predict the busy time of workers"
ABOUT = """\
Try plans of all partitioners for several numbers of workers on a sample, and compare the load of every worker
with the processor time it took, for each load function. 'calibrated' costs are measured on the sample first,
'standard' ones are constants. Errors are relative to the measured time.

The rank correlation over everything profits from plans of few workers having large loads. The columns by
number of workers do not, but they need plans of several partitioners: one that balances by a load function
makes all its workers equal in it, and what is left to rank is noise.

examples:
  python -m ps2stream_bench.partitioning predict
  python -m ps2stream_bench.partitioning predict --workloads q2 --workers 8 --repeat 5
"""

#: Stands for all partitioners, and in place of a number of workers for all of these.
ALL = "all"


@dataclass(frozen=True, slots=True)
class Tried:
    """A plan and what came of it."""

    partitioner: str
    plan: Plan
    trial: Trial


def add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--sample", type=int, default=100_000, metavar="N", help="publications, and as many subscriptions")
    add("--workers", type=int, nargs="+", default=[4, 8, 16], metavar="N", help="numbers of workers")
    add("--repeat", type=int, default=3, metavar="N", help="trials of a plan, of which the least times count")


def run(arguments: Namespace) -> list[Row]:
    """Judge every load function, with costs measured here and with standard ones."""
    corpus = corpus_at(arguments.corpus, arguments.corpus_size, arguments.seed)
    rows: list[Row] = []
    for kind in arguments.workloads:
        stream = stream_of(corpus, kind, arguments.sample, arguments.sample, arguments.seed)
        sample = stream.sample(arguments.sample, arguments.seed)
        tried = _tried(arguments.partitioners, sample, arguments.workers, arguments.repeat)
        for load in LOAD_FUNCTIONS:
            for origin in ("calibrated", "standard"):
                costs = costs_for(sample, load, calibrated=origin == "calibrated")
                about = {"workload": kind, "costs": origin, **costs_fields(costs)}
                rows += [{**about, **row} for row in judge(tried, costs)]
    return rows


def judge(tried: Sequence[Tried], costs: Costs) -> Iterator[Row]:
    """Compare loads with busy time: over everything, for each number of workers, for each partitioner.

    A worker of 4 has more to do than one of 16 whatever the load function, which flatters the correlation
    over everything; those of equal numbers are the ones to trust.
    """
    n_workers = dict.fromkeys(str(each.plan.n_workers) for each in tried)
    names = dict.fromkeys(each.partitioner for each in tried)
    groups = [(ALL, ALL), *((ALL, n) for n in n_workers), *((name, ALL) for name in names)]
    for name, n in groups:
        chosen = [
            each.trial
            for each in tried
            if name in (ALL, each.partitioner) and n in (ALL, str(each.plan.n_workers))
        ]
        found = prediction(chosen, costs)
        yield {
            "partitioner": name,
            "workers": n,
            "n": found.n_workers,
            "rank_correlation": found.rank_correlation,
            "mean_error": found.mean_error,
            "max_error": found.max_error,
        }


def report(rows: list[Row]) -> str:
    """Lay out a line for each workload, load function and origin of costs."""
    lines: dict[tuple[str, ...], Row] = {}
    columns = [Column(name, name) for name in ("workload", "load", "costs")]
    columns += [Column("mean error", "mean_error", ".0%"), Column("largest", "max_error", ".0%")]
    numbers = dict.fromkeys(row["workers"] for row in rows if row["partitioner"] == ALL)
    titles = {n: "rank correlation" if n == ALL else f"of {n} workers" for n in numbers}
    columns += [Column(title, title, ".3f") for title in titles.values()]
    for row in rows:
        if row["partitioner"] == ALL:
            line = lines.setdefault((row["workload"], row["load"], row["costs"]), dict(row))
            line[titles[row["workers"]]] = row["rank_correlation"]
    return table(lines.values(), columns)


def _tried(names: Sequence[str], sample: Sample, workers: Sequence[int], n_turns: int) -> list[Tried]:
    """Try all plans in turns; of the seconds of several turns the least count."""
    costs = standard_costs(sample, "candidates")
    plans = [(name, partitioner_named(name, costs).plan(sample, n)) for name in names for n in workers]
    turns = [[try_plan(plan, sample) for _, plan in plans] for _ in range(n_turns)]
    return [
        Tried(name, plan, quietest([turn[number] for turn in turns]))
        for number, (name, plan) in enumerate(plans)
    ]
