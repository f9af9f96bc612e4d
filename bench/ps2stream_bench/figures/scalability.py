"""The paper's Fig. "Scalability": tuples/s against the number of workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ps2stream_bench.contest import (
    ALONE_RATE,
    N_DISPATCHERS,
    NOISE_TOLD,
    RATE,
    WORKERS_RATE,
    alone_told,
    compared,
    entered,
    limits_told,
    ranges_of,
    stream_for,
    workload_of,
)
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.leads import NOT_MEASURED, wins
from ps2stream_bench.metrics import Middle, distinct, medians, middles, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

CONTENDERS = ("hybrid", "metric", "kd-tree")

_WORKLOADS = ("UK-Q1", "UK-Q2", "UK-Q3")

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
**What is the limit.** The paper's rates rise with the number of workers, so its 4 dispatchers can feed them.
Here {limits}; where it is, more workers do not raise the projected rate, and who is ahead is a matter of
what a plan costs a dispatcher. The claims are about 4 dispatchers, so they are judged by the projected rate.
The rate by workers alone, which is what a cluster with dispatchers to spare would do, is told beside it, and
the table says how many dispatchers that would take. {work}

**What keeps workers from scaling.** Three things can grow with their number. *Fixed costs*: a worker pays for
every batch, however few of its tuples are in it, and the fewer subscriptions there are, the more that
weighs. *Replication and fan-out*: space plans cut regions more often, text plans send publications to more
workers; both let the sum of all workers' busy time grow. *Balance*: the smaller the pieces, the harder a
dense place or a frequent term is to divide; kd-tree cannot cut a single place, a text plan cannot cut a
term, and hybrid can do the one where the other fails. With the paper's many millions of subscriptions fixed
costs weigh far less.
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
    """Compare three engines with this many workers; a range is one batch, so that fixed costs count least."""
    stream = stream_for(case, context, case["tuples"] * case["repetitions"])
    meters = entered(stream, CONTENDERS, case)
    ranges = ranges_of(stream.mixed, case["repetitions"])
    for row in compared(meters, ranges, case["tuples"], context.seed):
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
        f"{size['repetitions']} ranges of {size['tuples']:,} tuples, on which three engines take turns; "
        f"they deliver the same matches, which is checked. {NOISE_TOLD}\n\n{alone_told(rows, by)}"
    )
    differs = _DIFFERS.format(limits=limits_told(rows, by), work=_growth_told(rows))
    ordered = sorted(medians(rows, by), key=_place)
    return Page(_PAPER, ours, differs, [table(ordered, _COLUMNS)], [_drawing(rows)], list(_verdicts(rows)))


def _growth_told(rows: Sequence[Row]) -> str:
    """Say how the work of all workers together grows with their number."""
    found = middles(rows, ("workload", "partitioner", "workers"), "workers_busy_s")
    told = []
    for name in CONTENDERS:
        growths = [
            found[workload, name, _TO].median / max(found[workload, name, _FROM].median, 1e-9)
            for workload in distinct(rows, "workload")
            if {(workload, name, _FROM), (workload, name, _TO)} <= found.keys()
        ]
        if growths:
            told.append(f"{min(growths):.2f} to {max(growths):.2f} times with {name}")
    if not told:
        return ""
    return (
        f"From {_FROM} to {_TO} workers the busy time of all workers together becomes, over the workloads, "
        f"{', '.join(told)}."
    )


def _place(row: Row) -> tuple[str, int, float]:
    return row["workload"], CONTENDERS.index(row["partitioner"]), row["workers"]


def _drawing(rows: Sequence[Row]) -> Drawing:
    workloads = sorted(distinct(rows, "workload"))

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, len(workloads), squeeze=False, sharex=True)
        for index, workload in enumerate(workloads):
            for axes, field in zip(panels[:, index], (WORKERS_RATE, RATE), strict=True):
                found = middles(where(rows, workload=workload), ("partitioner", "workers"), field)
                lines(axes, {name: _line(found, name) for name in CONTENDERS})
                axes.set_xscale("log", base=2)
                axes.set_xticks(sorted(distinct(rows, "workers")), sorted(distinct(rows, "workers")))
                axes.set_ylim(bottom=0)
                in_thousands(axes)
            panels[0, index].set_title(workload)
            panels[1, index].set_xlabel("workers")
        panels[0, 0].set_ylabel("tuples/s\nby workers alone")
        panels[1, 0].set_ylabel(f"tuples/s\nprojected, {rows[0]['dispatchers']} dispatchers")
        panels[0, 0].legend()

    return Drawing("workers", "Tuples/s over the number of workers", draw, (9.5, 5.4))


def _line(found: dict[tuple[str, int], Middle], name: str) -> dict[float, Middle]:
    return {float(n): each for (partitioner, n), each in found.items() if partitioner == name}


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    yield _best(rows)
    for workload in _WORKLOADS:
        found, alone = (_speed_up(rows, workload, "hybrid", field) for field in (RATE, WORKERS_RATE))
        ideal = _TO / _FROM
        yield Verdict(
            f"{workload}: hybrid scales well from {_FROM} to {_TO} workers "
            f"({100 * _WELL:.0f} % of the ideal speed-up or more)",
            "scales well",
            f"{found:.2f} times as fast projected, {alone:.2f} by workers alone, where {ideal:.0f} is ideal"
            if found and alone
            else NOT_MEASURED,
            found.median >= _WELL * ideal if found else None,
        )
    yield _worst(rows, "UK-Q1", "metric")
    yield _worst(rows, "UK-Q2", "kd-tree")


def _best(rows: Sequence[Row]) -> Verdict:
    """Judge in how many cases hybrid is the fastest; a tie is nobody's."""
    by, rivals = ("workload", "workers"), CONTENDERS[1:]
    projected, alone = (wins(rows, "hybrid", rivals, field, by) for field in (RATE, WORKERS_RATE))
    return Verdict(
        "hybrid is the fastest in most cases",
        "best in most cases",
        f"in {sum(projected.values())} of {len(projected)} cases projected, in {sum(alone.values())} "
        "by workers alone"
        if projected
        else NOT_MEASURED,
        2 * sum(projected.values()) > len(projected) if projected else None,
    )


def _speed_up(rows: Sequence[Row], workload: str, name: str, field: str) -> Middle | None:
    """Return how much faster more workers are.

    These are cases of their own, not turns of one: the interval is that of the ends of both intervals.
    """
    found = middles(where(rows, workload=workload, partitioner=name), ("workers",), field)
    if not {(_FROM,), (_TO,)} <= found.keys():
        return None
    few, many = found[_FROM,], found[_TO,]
    return Middle(many.median / few.median, many.low / few.high, many.high / few.low, min(few.n, many.n))


def _worst(rows: Sequence[Row], workload: str, name: str) -> Verdict:
    """Judge whether one alone is the slowest with the most workers."""
    of_it = where(rows, workload=workload)
    most = max(distinct(of_it, "workers"), default=_TO)
    found, alone = (
        {each: rate for (each,), rate in middles(where(of_it, workers=most), ("partitioner",), field).items()}
        for field in (RATE, WORKERS_RATE)
    )
    is_known = set(CONTENDERS) <= found.keys()
    told = "; ".join(
        f"{each} {found[each]:,.0f} tuples/s{_speed_up_told(rows, workload, each)}, "
        f"{alone[each].median:,.0f} by workers alone"
        for each in CONTENDERS
        if is_known
    )
    return Verdict(
        f"{workload}: {name} has the worst scalability (slowest with {most} workers)",
        "the worst",
        f"projected: {told}" if is_known else NOT_MEASURED,
        all(found[name].median < found[each].median for each in CONTENDERS if each != name)
        if is_known
        else None,
    )


def _speed_up_told(rows: Sequence[Row], workload: str, name: str) -> str:
    found = _speed_up(rows, workload, name, RATE)
    return f" (speed-up {found.median:.2f})" if found else ""


FIGURE = Figure(
    "scalability",
    "Scalability with workers",
    "Tuples/s of hybrid, metric and kd-tree against the number of workers, Q1, Q2 and Q3 of the UK.",
    cases,
    measure,
    page,
)
