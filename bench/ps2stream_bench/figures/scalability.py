"""The paper's Fig. "Scalability": tuples/s against the number of workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ps2stream_bench.contest import (
    ALONE_RATE,
    N_DISPATCHERS,
    RATE,
    WORKERS_RATE,
    alone_told,
    compared,
    entered,
    stream_for,
    stretches_of,
    workload_of,
)
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import Middle, distinct, medians, middles, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

CONTENDERS = ("hybrid", "metric", "kd-tree")

#: Where speed-up is judged; the paper's axis is not given in its text.
_FROM, _TO = 8, 32
#: The share of the ideal speed-up that counts as scaling well; the paper does not say.
_WELL = 0.5

_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"corpus": 5_000, "tuples": 1_200, "repetitions": 2},
    "small": {"corpus": 200_000, "tuples": 45_000, "repetitions": 3},
    "paper": {"corpus": 1_000_000, "tuples": 500_000, "repetitions": 5},
}
_LIVE: dict[Scale, dict[str, int]] = {
    "tiny": {"q1": 600, "q2": 600},
    "small": {"q1": 20_000, "q2": 20_000, "q3": 20_000},
    "paper": {"q1": 10_000_000, "q2": 20_000_000, "q3": 20_000_000},
}
_WORKERS: dict[Scale, tuple[int, ...]] = {
    "tiny": (8, 32),
    "small": (4, 8, 16, 32, 64),
    "paper": (4, 8, 16, 32, 64),
}

_COLUMNS = [
    Column("workload", "workload"),
    Column("partitioner", "partitioner"),
    Column("workers", "workers", ",.0f"),
    Column("by workers alone, tuples/s", WORKERS_RATE, ",.0f"),
    Column("projected tuples/s", RATE, ",.0f"),
    Column("limit", "limit"),
    Column("dispatchers to keep up with workers", "dispatchers_needed", ",.0f"),
    Column("registrar or merger", ALONE_RATE, ",.0f"),
    Column("all workers busy, s", "workers_busy_s", ".3f"),
    Column("busiest worker / mean", "busy_max_over_mean", ".2f"),
    Column("fan-out", "fan_out", ".2f"),
    Column("replication", "replication", ".2f"),
]

_PAPER = """\
4 dispatchers and a growing number of workers; 10M subscriptions of UK-Q1, 20M of UK-Q2 and UK-Q3. Hybrid
partitioning is the fastest in most cases and scales well with the number of workers. Metric scales worst on
Q1, where frequent keywords make more work for the workers; kd-tree scales worst on Q2.
"""

_DIFFERS = """\
**What is the limit.** The paper's workers are slow enough for 4 dispatchers to feed them all. Ours are not:
with more workers the dispatchers soon set the projected rate, and it no longer rises. The claims are
therefore judged by workers alone, which is what a cluster with dispatchers to spare would do; the table
says how many dispatchers that would take.

**What keeps workers from scaling.** Three things grow with their number. *Fixed costs*: a worker pays for
every batch, however few of its tuples are in it, and the fewer subscriptions there are, the more that
weighs. *Replication and fan-out*: space plans cut regions more often, text plans send publications to more
workers; both let the sum of all workers' busy time grow. *Balance*: the smaller the pieces, the harder a
dense place or a frequent term is to divide; kd-tree cannot cut a single place, a text plan cannot cut a
term, and hybrid can do the one where the other fails. With the paper's many millions of subscriptions fixed
costs vanish.
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for every kind and number of workers, all of the UK."""
    return [
        Case(
            {
                "country": "uk",
                "kind": kind,
                "workers": n_workers,
                "dispatchers": N_DISPATCHERS,
                "live": live,
                **_SIZES[scale],
            }
        )
        for kind, live in _LIVE[scale].items()
        for n_workers in _WORKERS[scale]
    ]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Compare three engines with so many workers; a stretch is one batch, so that fixed costs count least."""
    stream = stream_for(case, context, case["tuples"] * case["repetitions"])
    meters = entered(stream, CONTENDERS, case)
    stretches = stretches_of(stream.mixed, case["repetitions"])
    for row in compared(meters, stretches, case["tuples"], context.seed):
        needed = math.ceil(
            case["dispatchers"] * row["busiest_dispatcher_s"] / max(row["busiest_worker_s"], 1e-9)
        )
        yield {"workload": workload_of(case, context), "dispatchers_needed": needed, **row}


def page(rows: Sequence[Row]) -> Page:
    """Show the rates over the number of workers, and judge what the paper says of them."""
    size = rows[0]
    by = ("workload", "partitioner", "workers")
    lives = " and ".join(f"{n:,}" for n in distinct(rows, "live"))
    numbers = ", ".join(str(n) for n in sorted(distinct(rows, "workers")))
    ours = (
        f"{size['dispatchers']} dispatchers and {numbers} workers; {lives} live subscriptions; medians of "
        f"{size['repetitions']} stretches of {size['tuples']:,} tuples, on which three engines take turns; "
        f"they deliver the same matches, which is checked.\n\n{alone_told(rows, by)}"
    )
    ordered = sorted(medians(rows, by), key=_place)
    return Page(_PAPER, ours, _DIFFERS, [table(ordered, _COLUMNS)], [_drawing(rows)], list(_verdicts(rows)))


def _place(row: Row) -> tuple[str, int, float]:
    return row["workload"], CONTENDERS.index(row["partitioner"]), row["workers"]


def _drawing(rows: Sequence[Row]) -> Drawing:
    workloads = sorted(distinct(rows, "workload"))

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, len(workloads), squeeze=False, sharex=True)
        for place, workload in enumerate(workloads):
            for axes, field in zip(panels[:, place], (WORKERS_RATE, RATE), strict=True):
                found = middles(where(rows, workload=workload), ("partitioner", "workers"), field)
                lines(axes, {name: _line(found, name) for name in CONTENDERS})
                axes.set_xscale("log", base=2)
                axes.set_xticks(sorted(distinct(rows, "workers")), sorted(distinct(rows, "workers")))
                axes.set_ylim(bottom=0)
                in_thousands(axes)
            panels[0, place].set_title(workload)
            panels[1, place].set_xlabel("workers")
        panels[0, 0].set_ylabel("tuples/s\nby workers alone")
        panels[1, 0].set_ylabel(f"tuples/s\nprojected, {rows[0]['dispatchers']} dispatchers")
        panels[0, 0].legend()

    return Drawing("workers", "Tuples/s over the number of workers", draw, (9.5, 5.4))


def _line(found: dict[tuple[str, int], Middle], name: str) -> dict[float, Middle]:
    return {float(n): each for (partitioner, n), each in found.items() if partitioner == name}


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    yield from _best(rows)
    for workload in sorted(distinct(rows, "workload")):
        found = _speed_up(rows, workload, "hybrid")
        if found is not None:
            yield Verdict(
                f"{workload}: hybrid scales well from {_FROM} to {_TO} workers "
                f"({100 * _WELL:.0f} % of the ideal speed-up or more)",
                "scales well",
                f"{found:.2f} times as fast by workers alone, where {_TO / _FROM:.0f} is ideal",
                found >= _WELL * _TO / _FROM,
            )
    yield from _worst(rows, "UK-Q1", "metric")
    yield from _worst(rows, "UK-Q2", "kd-tree")


def _best(rows: Sequence[Row]) -> Iterator[Verdict]:
    """Judge in how many cases hybrid is the fastest."""
    wins = {field: _n_won(rows, field) for field in (WORKERS_RATE, RATE)}
    n = len({(row["workload"], row["workers"]) for row in rows})
    if set(CONTENDERS) <= set(distinct(rows, "partitioner")):
        yield Verdict(
            "hybrid is the fastest in most cases",
            "best in most cases",
            f"in {wins[WORKERS_RATE]} of {n} cases by workers alone, in {wins[RATE]} projected",
            2 * wins[WORKERS_RATE] > n,
        )


def _n_won(rows: Sequence[Row], field: str) -> int:
    found = middles(rows, ("workload", "workers", "partitioner"), field)
    cases = {key[:2] for key in found}
    return sum(
        max(CONTENDERS, key=lambda name: found[*case, name].median if (*case, name) in found else 0.0)
        == "hybrid"
        for case in cases
    )


def _speed_up(rows: Sequence[Row], workload: str, name: str) -> float | None:
    """Return how much faster more workers are; these are cases of their own, not turns of one."""
    found = middles(where(rows, workload=workload, partitioner=name), ("workers",), WORKERS_RATE)
    if not {(_FROM,), (_TO,)} <= found.keys():
        return None
    return found[_TO,].median / found[_FROM,].median


def _worst(rows: Sequence[Row], workload: str, name: str) -> Iterator[Verdict]:
    """Judge whether one is the slowest with the most workers."""
    of_it = where(rows, workload=workload)
    most = max(distinct(of_it, "workers"), default=0)
    found = middles(where(of_it, workers=most), ("partitioner",), WORKERS_RATE)
    if {(each,) for each in CONTENDERS} <= found.keys():
        speed_ups = {each: _speed_up(rows, workload, each) for each in CONTENDERS}
        told = "; ".join(
            f"{each} {found[each,]:,.0f} tuples/s" + (f" (speed-up {up:.2f})" if up is not None else "")
            for each, up in speed_ups.items()
        )
        yield Verdict(
            f"{workload}: {name} has the worst scalability (slowest with {most} workers)",
            "the worst",
            f"by workers alone: {told}",
            min(CONTENDERS, key=lambda each: found[each,].median) == name,
        )


FIGURE = Figure(
    "scalability",
    "Scalability with workers",
    "Tuples/s of hybrid, metric and kd-tree against the number of workers, Q1, Q2 and Q3 of the UK.",
    cases,
    measure,
    page,
)
