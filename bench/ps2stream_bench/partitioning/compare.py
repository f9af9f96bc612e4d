"""What a stream costs under the plan of each partitioner, measured with the whole inline engine."""

from __future__ import annotations

import contextlib
import gc
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream.config import Settings
from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan, balance_of
from ps2stream.partitioning.sample import Sample
from ps2stream.pipeline.calibration import part_of
from ps2stream.pipeline.inline import InlineEngine
from ps2stream.pipeline.tally import Tally
from ps2stream.pipeline.trial import try_plan
from ps2stream_bench.partitioning.streams import (
    Stream,
    add_load,
    corpus_at,
    costs_fields,
    costs_for,
    stream_of,
)
from ps2stream_bench.results import Column, Row, medians, table

SUMMARY = "run whole streams under the plan of each partitioner"
ABOUT = """\
Build a plan with each partitioner from a sample of the stream, then run the whole stream through the inline
engine: subscriptions are loaded first, then ten publications come with one subscribe and one unsubscribe.
The partitioners take turns, and the table shows medians over the repetitions.

What the columns say:
  estimated load      Definition 1 over the work counted on the sample, all workers together
  L_max/L_min         how unevenly that load is shared
  fan-out             workers that a publication goes to, of those that are not discarded
  replication         workers that a subscription is stored at
  candidates, matches of a publication
  workers busy        processor time of all workers after loading: the work that the plan makes
  max/min, max/mean   how unevenly the workers share that
  projected tuples/s  tuples after loading / time of the busiest worker or dispatcher: the pace of a cluster
                      that has a core for every role. 'limit' says which role it was.
  by workers alone    the same with dispatchers to spare: tuples after loading / time of the busiest worker.
                      Where dispatchers are the limit, this is what tells plans apart.

With few publications one worker whose index happens to double its tables looks overloaded.

examples:
  python -m ps2stream_bench.partitioning compare
  python -m ps2stream_bench.partitioning compare --workloads q3 --partitioners grid --repeat 5 --out raw.parquet
  python -m ps2stream_bench.partitioning compare --subscriptions 1000000 --dispatchers 8
"""

_WARM_UP = 500

_COLUMNS = [
    Column("workload", "workload"),
    Column("partitioner", "partitioner"),
    Column("estimated load, ms", "estimated_load_ms", ",.0f"),
    Column("L_max/L_min", "estimated_balance", ".2f"),
    Column("fan-out", "fan_out", ".2f"),
    Column("replication", "replication", ".2f"),
    Column("discarded", "discarded_share", ".1%"),
    Column("candidates", "candidates_per_publication", ".2f"),
    Column("matches", "matches_per_publication", ".2f"),
    Column("workers busy, s", "workers_busy_s", ".3f"),
    Column("max/min", "busy_max_over_min", ".2f"),
    Column("max/mean", "busy_max_over_mean", ".2f"),
    Column("projected tuples/s", "projected_tuples_per_s", ",.0f"),
    Column("limit", "limit"),
    Column("by workers alone", "worker_tuples_per_s", ",.0f"),
    Column("build, s", "build_s", ".2f"),
]


@dataclass(frozen=True, slots=True)
class Contender:
    """A plan, and what was expected of it."""

    plan: Plan
    expected: Row


def add_options(parser: ArgumentParser) -> None:
    counts = [
        ("--subscriptions", 200_000, "live subscriptions, loaded first"),
        ("--publications", 500_000, "publications, with updates at 5 to 1"),
        ("--sample", 100_000, "publications, and as many subscriptions, that a plan is made from"),
        ("--workers", 8, "workers"),
        ("--dispatchers", 4, "dispatchers"),
        ("--batch-events", Settings().batch_events, "events of a batch"),
        ("--repeat", 3, "turns of each partitioner"),
    ]
    for option, default, meaning in counts:
        parser.add_argument(option, type=int, default=default, metavar="N", help=meaning)
    add_load(parser)
    parser.add_argument("--calibrate", action="store_true", help="plan with costs measured on the sample")


def run(arguments: Namespace) -> list[Row]:
    """Let all partitioners take turns on every stream, so that noise of the machine hits all alike."""
    corpus = corpus_at(arguments.corpus, arguments.corpus_size, arguments.seed)
    sizes = (arguments.subscriptions, arguments.publications)
    rows: list[Row] = []
    for kind in arguments.workloads:
        stream = stream_of(corpus, kind, *sizes, arguments.seed)
        sample = stream.sample(arguments.sample, arguments.seed)
        settings = Settings(
            n_workers=arguments.workers,
            n_dispatchers=arguments.dispatchers,
            stop_words=stream.stop_words,
            batch_events=arguments.batch_events,
        )
        costs = costs_for(sample, arguments.load, calibrated=arguments.calibrate)
        contenders = [contender(name, sample, costs, settings) for name in arguments.partitioners]
        for repetition in range(arguments.repeat):
            for each in contenders:
                measured = measure(each.plan, stream, settings)
                rows.append({"workload": kind, "repetition": repetition, **each.expected, **measured})
    return rows


def contender(name: str, sample: Sample, costs: Costs, settings: Settings) -> Contender:
    """Build a plan, and try it on the sample that it was built from."""
    partitioner = partitioner_named(name, costs)
    partitioner.plan(part_of(sample, _WARM_UP, _WARM_UP), settings.n_workers)  # compiles or loads the kernels
    started = time.perf_counter()
    plan = partitioner.plan(sample, settings.n_workers)
    build_s = time.perf_counter() - started
    trial = try_plan(plan, sample, settings)
    loads = trial.loads(costs)
    expected = {
        "partitioner": name,
        "build_s": build_s,
        **costs_fields(costs),
        "estimated_load_ms": float(loads.sum()) / 1e6,
        "estimated_balance": balance_of(loads.tolist()),
        "sample_publications": sample.n_publications,
        "sample_subscriptions": sample.n_subscriptions,
    }
    return Contender(plan, expected)


def measure(plan: Plan, stream: Stream, settings: Settings) -> Row:
    """Load the subscriptions, then run the mixed part of a stream and return its figures."""
    engine = InlineEngine(plan, settings)
    for batch in stream.loading(settings.batch_events):
        engine.process(batch)
    before = _busy_s(engine.tally)
    with _no_collection():
        started = time.perf_counter()
        for batch in stream.mixed(settings.batch_events):
            engine.process(batch)
        wall_s = time.perf_counter() - started
    workers, dispatchers = (after - first for after, first in zip(_busy_s(engine.tally), before, strict=True))
    busiest = max(workers.max(), dispatchers.max())
    return {
        **_counts(engine),
        "workers_busy_s": float(workers.sum()),
        "dispatchers_busy_s": float(dispatchers.sum()),
        "busiest_worker_s": float(workers.max()),
        "busiest_dispatcher_s": float(dispatchers.max()),
        "busy_max_over_min": balance_of(workers.tolist()),
        "busy_max_over_mean": float(workers.max() / workers.mean()),
        "tuples_per_s": stream.n_mixed / wall_s,
        # What a cluster with a core for every role would do: the busiest one sets the pace.
        "projected_tuples_per_s": stream.n_mixed / float(busiest),
        "worker_tuples_per_s": stream.n_mixed / float(workers.max()),
        "limit": "worker" if workers.max() >= dispatchers.max() else "dispatcher",
    }


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python's garbage collector away: it would charge what all roles left behind to one of them."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _counts(engine: InlineEngine) -> Row:
    tally = engine.tally
    indexes = [worker.index.counts() for worker in engine.workers]
    n_sent = sum(dispatcher.n_sent for dispatcher in tally.dispatchers)
    n_publications = max(tally.n_publications, 1)
    return {
        "n_publications": tally.n_publications,
        "n_matches": tally.n_matches,
        "fan_out": n_sent / max(tally.n_publications - tally.n_discarded, 1),
        "replication": sum(index.n_subscriptions for index in indexes) / max(tally.n_subscriptions, 1),
        "discarded_share": tally.n_discarded / n_publications,
        "candidates_per_publication": sum(index.n_candidates for index in indexes) / n_publications,
        "matches_per_publication": tally.n_matches / n_publications,
    }


def _busy_s(tally: Tally) -> tuple[Float64s, Float64s]:
    """Return the seconds so far of every worker and of every dispatcher."""
    workers = np.array([worker.busy_s for worker in tally.workers])
    return workers, np.array([dispatcher.busy_s for dispatcher in tally.dispatchers])


def check(rows: list[Row]) -> None:
    """Refuse figures of partitioners that do not deliver the same matches."""
    for kind in _distinct(rows, "workload"):
        found = {(row["partitioner"], row["n_matches"]) for row in rows if row["workload"] == kind}
        if len({n_matches for _, n_matches in found}) > 1:
            told = ", ".join(f"{name} {n_matches:,}" for name, n_matches in sorted(found))
            raise SystemExit(f"all partitioners must deliver the same matches of {kind}; got {told}")


def report(rows: list[Row]) -> str:
    """Lay out medians, a line for each workload and partitioner."""
    return table(medians(rows, ("workload", "partitioner")), _COLUMNS)


def _distinct(rows: list[Row], field: str) -> Iterator[str]:
    yield from dict.fromkeys(row[field] for row in rows)
