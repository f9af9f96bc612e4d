"""Partitioners against each other: an engine for each, and all of them take turns on one stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from ps2stream.partitioning.sample import Sample
from ps2stream.planning.first_plan import sample_from
from ps2stream_bench.engines import Meter, Stream, batches_of, check_alike, in_turns, loaded, stream_of
from ps2stream_bench.figure import Case, Context
from ps2stream_bench.metrics import distinct, medians, where
from ps2stream_bench.results import Column, Row

#: The paper's cluster for all figures but the one of scalability.
N_WORKERS, N_DISPATCHERS = 8, 4

#: What the paper's tuples/s are compared with, and what they would be with dispatchers to spare.
RATE, WORKERS_RATE = "projected_tuples_per_s", "worker_tuples_per_s"
#: What the roles that exist only once would allow.
ALONE_RATE = "registrar_or_merger_tuples_per_s"

COLUMNS = (
    Column("workload", "workload"),
    Column("partitioner", "partitioner"),
    Column("projected tuples/s", RATE, ",.0f"),
    Column("limit", "limit"),
    Column("by workers alone", WORKERS_RATE, ",.0f"),
    Column("measured tuples/s", "tuples_per_s", ",.0f"),
    Column("registrar or merger", ALONE_RATE, ",.0f"),
    Column("fan-out", "fan_out", ".2f"),
    Column("replication", "replication", ".2f"),
    Column("busiest worker / mean", "busy_max_over_mean", ".2f"),
    Column("candidates", "candidates_per_publication", ".1f"),
    Column("matches", "matches_per_publication", ".2f"),
)

#: What repetitions of a contest are, and so what its intervals are about.
NOISE_TOLD = (
    "The repetitions are consecutive ranges of one stream, and each partitioner has one plan for all of "
    "them: intervals show the noise of the clock, not that of the draw of the stream or of the plan."
)

#: Six tuples are five publications and an update.
_PUBLICATIONS_PER_TUPLE = 5 / 6


def stream_for(case: Case, context: Context, n_tuples: int) -> Stream:
    """Make the stream that a case names, with about this many tuples after its subscriptions are loaded."""
    corpus = context.corpus(case["country"], case["corpus"])
    n_publications = int(n_tuples * _PUBLICATIONS_PER_TUPLE)
    return stream_of(corpus, case["kind"], case["live"], n_publications, context.seed)


def sample_of_stream(stream: Stream, n: int, seed: int) -> Sample:
    """Draw ``n`` publications and ``n`` subscriptions, or as many as there are."""
    n_events = max(stream.events.num_rows, 1)
    settings = stream.settings(sample_events=2 * n, sample_prefix_events=n_events, sample_seed=seed)
    return sample_from([stream.events], settings)


def workload_of(case: Case, context: Context) -> str:
    """Name a workload as the paper does, without its STS."""
    country = "file" if context.publications else case["country"]
    return f"{country}-{case['kind']}".upper()


def entered(stream: Stream, partitioners: Sequence[str], case: Case) -> dict[str, Meter]:
    """Plan with every partitioner for the workers of a case, and load all subscriptions."""
    usual = stream.settings(n_workers=case["workers"], n_dispatchers=case["dispatchers"])
    meters = {}
    for name in partitioners:
        settings = replace(usual, partitioner=name)
        meters[name] = Meter(loaded(stream.plan(settings), settings, stream.loading))
    return meters


def compared(
    meters: Mapping[str, Meter], ranges: Sequence[pa.RecordBatch], batch_events: int, seed: int
) -> Iterator[Row]:
    """Let contenders take turns, batch by batch; yield a row for each of them and every range of events."""
    for repetition, part in enumerate(ranges):
        in_turns(meters, batches_of(part, batch_events), seed + 1000 * repetition)
        rows = [{"partitioner": name, "repetition": repetition, **_read(meters[name])} for name in meters]
        check_alike(rows, "partitioner")
        yield from rows


def ranges_of(events: pa.RecordBatch, n: int) -> list[pa.RecordBatch]:
    """Cut events into ``n`` ranges of equal length; what is left over is left out."""
    size = events.num_rows // n
    return [events.slice(number * size, size) for number in range(n)]


def alone_told(rows: Sequence[Row], by: Sequence[str]) -> str:
    """Say how often the registrar or the merger would hold a cluster up below the projected rate."""
    lines = medians(rows, by)
    slower = [line for line in lines if line[ALONE_RATE] < line[RATE]]
    return (
        "The projection is about workers and dispatchers, whose number can be chosen. The registrar, which "
        "routes subscriptions (in the paper the dispatchers do), and the merger exist once; in "
        f"{len(slower)} of {len(lines)} lines one of them would allow fewer tuples/s than projected (column "
        "*registrar or merger*)."
    )


def limits_told(rows: Sequence[Row], by: Sequence[str]) -> str:
    """Say how often dispatchers, not workers, are the limit of the projected rate."""
    lines = medians(rows, by)
    n = sum(line["limit"] == "dispatcher" for line in lines)
    return f"in {n} of {len(lines)} lines the busiest dispatcher, not a worker, is the limit (column *limit*)"


def work_told(rows: Sequence[Row]) -> str:
    """Say how plans differ in what is behind their rates: work in all, balance and replication."""
    lines = medians(rows, ("workload", "partitioner"))
    spread = {
        workload: [line["workers_busy_s"] for line in where(lines, workload=workload)]
        for workload in distinct(lines, "workload")
    }
    widest = max(spread, key=lambda workload: max(spread[workload]) / max(min(spread[workload]), 1e-9))
    most, least = max(spread[widest]), max(min(spread[widest]), 1e-9)
    balance, replication = (
        ", ".join(
            f"{name} {_range_told(line[field] for line in where(lines, partitioner=name))}"
            for name in distinct(lines, "partitioner")
        )
        for field in ("busy_max_over_mean", "replication")
    )
    return (
        "In these rows the workers of the plan with the most work are together busy for up to "
        f"{most / least:.2f} times as long as those of the plan with the least ({widest}). Over the "
        f"workloads, busiest worker to mean: {balance}; replication: {replication}."
    )


def _range_told(values: Iterable[float]) -> str:
    found = sorted(values)
    low, high = f"{found[0]:.2f}", f"{found[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def _read(meter: Meter) -> Row:
    row = meter.read()
    alone_s = max(row["registrar_busy_s"], row["merger_busy_s"], 1e-9)
    return {**row, ALONE_RATE: row["n_events"] / alone_s}
