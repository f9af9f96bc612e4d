"""The paper's comparison of hybrid partitioning with the best baselines: throughput, latency and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ps2stream_bench.contest import (
    COLUMNS,
    N_DISPATCHERS,
    N_WORKERS,
    NOISE_TOLD,
    RATE,
    WORKERS_RATE,
    alone_told,
    compared,
    entered,
    limits_told,
    ranges_of,
    stream_for,
    work_told,
    workload_of,
)
from ps2stream_bench.engines import Meter
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting
from ps2stream_bench.figures.hybrid_claims import LATENCY, PAPERS_LIVE, verdicts
from ps2stream_bench.latency import inline_latency, projected_latency
from ps2stream_bench.metrics import distinct, grouped, medians, middle, middles, where
from ps2stream_bench.plots import bars, in_thousands
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import COUNTRIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

CONTENDERS = ("hybrid", "metric", "kd-tree")
CLOCKS = ("projected", "measured")

#: The share of what the slowest contender sustains that is offered to all of them.
_MODERATE = 0.5

_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"corpus": 5_000, "tuples": 1_200, "repetitions": 2, "batch": 1_200},
    "small": {"corpus": 200_000, "tuples": 50_000, "repetitions": 5, "batch": 25_000},
    "paper": {"corpus": 1_000_000, "tuples": 500_000, "repetitions": 7, "batch": 100_000},
}
#: Latency is taken of this many tuples, or of those that are offered in this many seconds if these are fewer.
_LATENCY: dict[Scale, dict[str, Setting]] = {
    "tiny": {"latency_tuples": 300, "latency_s": 0.05, "latency_repetitions": 1},
    "small": {"latency_tuples": 40_000, "latency_s": 1.0, "latency_repetitions": 3},
    "paper": {"latency_tuples": 1_000_000, "latency_s": 10.0, "latency_repetitions": 3},
}
_LIVE: dict[Scale, dict[str, int]] = {
    "tiny": {"q1": 800, "q2": 800, "q3": 800},
    "small": {"q1": 1_000_000, "q2": 1_000_000, "q3": 1_000_000},
    "paper": PAPERS_LIVE,
}

_RATES = [
    *COLUMNS,
    Column("dispatcher, MB", "dispatcher_mb", ",.1f"),
    Column("worker, MB", "worker_mb", ",.1f"),
]
_LATENCIES = [
    Column("workload", "workload"),
    Column("clock", "clock"),
    Column("offered tuples/s", "offered_tuples_per_s", ",.0f"),
    Column("partitioner", "partitioner"),
    Column("mean, ms", LATENCY, ".2f"),
    Column("p50", "latency_p50_ms", ".2f"),
    Column("p90", "latency_p90_ms", ".2f"),
    Column("p99", "latency_p99_ms", ".2f"),
    Column("p99.9", "latency_p99_9_ms", ".2f"),
    Column("kept up", "kept_up_told"),
]

_PAPER = """\
4 dispatchers and 8 workers; 5M subscriptions of Q1, 10M of Q2 and of Q3. Hybrid partitioning has the best
throughput overall: 30 % above metric and kd-tree on Q3, slightly above kd-tree on US-Q1 where both are far
above metric, and together with metric above kd-tree on Q2.

Latency is the mean time of a tuple in the system at a moderate input speed. Hybrid's is small everywhere;
kd-tree's is larger than both others' on Q2 (25 ms versus 15 ms), metric's is like hybrid's but for UK-Q1,
where it is 407 ms.

Dispatchers need less than 1000 MB, least with kd-tree; those of hybrid need most on Q2, as more cells have
text information. Workers need least memory with hybrid in most cases, since fewer subscriptions are stored
at several workers; no method needs much.
"""

_DIFFERS = """\
**Throughput.** In the paper a copy of a publication costs a worker much, so the fan-out of text
partitioning sets it back on Q1, and hybrid wins by avoiding both fan-out and replication. Here a worker
reads only the lists of the terms that it owns, so a copy need not cost much; where plans make the same work
in all, what is left to gain is balance and less replication. {work} A lead of 30 % over another plan would
need its busiest worker, or dispatcher, to be that much busier. Here {limits}; where it is, plans with the
same fan-out differ little, and *by workers alone* tells more.

**Latency.** The paper's milliseconds hold Storm's queues and a network. Ours, projected, are the processor
time of one batch in every role, one role after the other, plus the wait for the batch before it; measured
ones hold all roles on one core. A batch takes what is due (projected: {batch:,.0f} tuples, the median over
lines), so at a moderate load batches are small, and the smaller they are, the more their fixed costs weigh,
which all plans share. The rate is the same for all contenders of a workload and is set by the slowest. The
paper's 407 ms look like a queue that grows. Here contenders kept up with what they were offered in {kept_up}
of {lines} lines; where all do, such a figure cannot show up.

**Dispatcher memory.** What a dispatcher holds is the plan (a table of cells, or of terms) and, mostly, H2:
which (cell, term) pairs have a live subscription. H2 is on a coarse grid of its own, the same for all
plans; the size of its table doubles when it is full. Where H2 is most of it, memory goes by subscriptions
and their regions, and hardly by partitioner. It is counted once: dispatchers of one machine map the same
file. The paper's number of subscriptions is reached in proportion, not measured. That says too much where a
part of the memory is fixed, or where subscriptions come to share (cell, term) pairs; it may say too little
by up to a factor of two where the table is about to double.

**Worker memory.** Index bytes follow replication, which is told above. A kd-tree with one piece for each
worker cuts regions at few borders; where these are few, there is little for hybrid to save. Text plans store
OR expressions at several workers whatever their regions.
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for both countries and the three kinds; the smallest scale has one country."""
    cluster = {"workers": N_WORKERS, "dispatchers": N_DISPATCHERS}
    found = [
        Case({"country": country, "kind": kind, "live": live, **_SIZES[scale], **cluster, **_LATENCY[scale]})
        for country in COUNTRIES
        for kind, live in _LIVE[scale].items()
    ]
    return found[: len(_LIVE[scale])] if scale == "tiny" else found


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Compare rates on the first part of a stream, latencies on the rest of it."""
    n_latencies = len(CLOCKS) * case["latency_tuples"] * case["latency_repetitions"]
    stream = stream_for(case, context, case["tuples"] * case["repetitions"] + n_latencies)
    meters = entered(stream, CONTENDERS, case)
    n_rates = stream.mixed.num_rows - n_latencies
    ranges = ranges_of(stream.mixed.slice(0, n_rates), case["repetitions"])
    about = {"workload": workload_of(case, context)}
    rates: list[Row] = []
    for row in compared(meters, ranges, case["batch"], context.seed):
        in_mb = {"dispatcher_mb": row["dispatcher_bytes"] / 1e6, "worker_mb": row["worker_bytes"] / 1e6}
        rates.append({**about, "part": "rates", **row, **in_mb})
    yield from rates
    for row in _latencies(meters, stream.mixed.slice(n_rates), sustained(rates), case, context):
        yield {**about, "part": "latency", **row}


def sustained(rates: Sequence[Row]) -> dict[str, float]:
    """Return the tuples/s that even the slowest contender does, by either clock.

    A projected batch passes through its roles one after the other, as latency is projected.
    """
    found: dict[str, list[float]] = {clock: [] for clock in CLOCKS}
    for rows in grouped(rates, ("partitioner",)).values():
        found["measured"].append(middle(row["tuples_per_s"] for row in rows).median)
        found["projected"].append(middle(row["n_events"] / _through_s(row) for row in rows).median)
    return {clock: min(each) for clock, each in found.items()}


def _through_s(row: Row) -> float:
    roles = ("registrar_busy_s", "busiest_dispatcher_s", "busiest_worker_s", "merger_busy_s")
    return max(sum(float(row[role]) for role in roles), 1e-9)


def _latencies(
    meters: Mapping[str, Meter],
    events: pa.RecordBatch,
    most: Mapping[str, float],
    case: Case,
    context: Context,
) -> Iterator[Row]:
    """Offer the same tuples at the same rate to all contenders, which take turns."""
    rng = np.random.default_rng([context.seed, 9])
    start = 0
    for repetition in range(case["latency_repetitions"]):
        for clock in CLOCKS:
            rate = _MODERATE * most[clock]
            n_tuples = max(min(case["latency_tuples"], int(rate * case["latency_s"])), 1)
            range_of_events, start = events.slice(start, n_tuples), start + n_tuples
            for name in rng.permutation(list(meters)).tolist():
                engine, seed = meters[name].engine, context.seed + repetition
                with tempfile.TemporaryDirectory(dir=context.scratch) as sink:
                    if clock == "projected":
                        found = projected_latency(engine, range_of_events, rate, seed=seed)
                    else:
                        found = inline_latency(engine, range_of_events, rate, Path(sink), seed=seed)
                yield {"partitioner": name, "clock": clock, "repetition": repetition, **found.row()}


def page(rows: Sequence[Row]) -> Page:
    """Show rates, latencies and memory, and judge what the paper says of them."""
    rates, latencies, size = where(rows, part="rates"), where(rows, part="latency"), rows[0]
    lives = " and ".join(f"{n:,}" for n in distinct(rows, "live"))
    ours = (
        f"{size['dispatchers']} dispatchers and {size['workers']} workers; {lives} live subscriptions, "
        f"loaded first. Rates: {size['repetitions']} ranges of {size['tuples']:,} tuples, on which three "
        "engines take turns batch by batch; they deliver the same matches, which is checked. Memory: bytes "
        "of the indexes, for one dispatcher and for the mean worker.\n\n"
        "Latency: tuples arrive by chance (Poisson) at a rate that does not wait for the engine; a latency "
        "is from when a tuple is due until its batch is done, by the clock on the wall also in the sink. All "
        "contenders are offered the same: "
        f"{100 * _MODERATE:.0f} % of what the slowest of them sustains, by two clocks. *Projected* "
        "has a core for every role and lets a batch pass registrar, busiest dispatcher, busiest worker and "
        "merger one after the other; *measured* is the clock on the wall with all roles on one core. "
        f"Ranges of up to {size['latency_tuples']:,} tuples, {size['latency_repetitions']} by each clock."
        f"\n\n{NOISE_TOLD}\n\n"
        f"{alone_told(rates, ('workload', 'partitioner'))}"
    )
    lines = _latency_lines(latencies)
    tables = [table(medians(rates, ("workload", "partitioner")), _RATES), table(lines, _LATENCIES)]
    differs = _differs(rates, lines)
    return Page(_PAPER, ours, differs, tables, _drawings(rates, latencies), verdicts(rates, latencies))


def _differs(rates: Sequence[Row], lines: Sequence[Row]) -> str:
    """Explain with what the rows say of work, limits, batches and queues."""
    return _DIFFERS.format(
        work=work_told(rates),
        limits=limits_told(rates, ("workload", "partitioner")),
        batch=middle(line["mean_batch_events"] for line in where(lines, clock="projected")).median,
        kept_up=len(where(lines, kept_up_told="yes")),
        lines=len(lines),
    )


def _latency_lines(latencies: Sequence[Row]) -> list[Row]:
    by = ("workload", "clock", "partitioner")
    kept_up = {key: all(row["kept_up"] for row in group) for key, group in grouped(latencies, by).items()}
    ordered = sorted(
        latencies, key=lambda row: (CLOCKS.index(row["clock"]), CONTENDERS.index(row["partitioner"]))
    )
    return [
        {**line, "kept_up_told": "yes" if kept_up[tuple(line[name] for name in by)] else "no"}
        for workload in distinct(latencies, "workload")
        for line in medians(where(ordered, workload=workload), by)
    ]


def _drawings(rates: Sequence[Row], latencies: Sequence[Row]) -> list[Drawing]:
    throughput = {
        "projected: a core for every role": (rates, RATE, "tuples/s"),
        "by workers alone: dispatchers to spare": (rates, WORKERS_RATE, "tuples/s"),
        "measured: all roles on one core": (rates, "tuples_per_s", "tuples/s"),
    }
    latency = {
        f"{clock}, {title}": (where(latencies, clock=clock), field, "ms")
        for title, field in (("mean", LATENCY), ("p99", "latency_p99_ms"))
        for clock in CLOCKS
    }
    memory = {
        "one dispatcher": (rates, "dispatcher_mb", "MB"),
        "mean worker": (rates, "worker_mb", "MB"),
    }
    return [
        Drawing("throughput", "Tuples/s of hybrid, metric and kd-tree", _panels(throughput, 1), (8.5, 7.5)),
        Drawing("latency", "Latency of tuples at a moderate load", _panels(latency, 2), (10.0, 5.6)),
        Drawing("memory", "Memory of dispatchers and workers", _panels(memory, 2), (10.0, 3.2)),
    ]


def _panels(panels: Mapping[str, tuple[Sequence[Row], str, str]], n_columns: int) -> Callable[[Canvas], None]:
    """Draw a panel of bars for every title: a group for each workload, a bar for each contender."""

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(len(panels) // n_columns, n_columns, squeeze=False).ravel()
        for axes, (title, (rows, field, unit)) in zip(grid, panels.items(), strict=True):
            values = {
                (str(workload), str(name)): found
                for (workload, name), found in middles(rows, ("workload", "partitioner"), field).items()
            }
            bars(axes, distinct(rows, "workload"), CONTENDERS, values)
            axes.set_title(title)
            axes.set_ylabel(unit)
            in_thousands(axes)
        grid[0].legend(ncols=len(CONTENDERS), loc="lower left", bbox_to_anchor=(0.0, 1.1))

    return draw


FIGURE = Figure(
    "hybrid",
    "Hybrid partitioning against metric and kd-tree",
    "Throughput, latency, dispatcher memory and worker memory on Q1, Q2 and Q3 of both countries.",
    cases,
    measure,
    page,
)
