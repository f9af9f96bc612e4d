"""The paper's Fig. "Throughput Comparison (Baselines)": three text and three space partitioners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ps2stream_bench.contest import (
    COLUMNS,
    N_DISPATCHERS,
    N_WORKERS,
    RATE,
    WORKERS_RATE,
    alone_told,
    compared,
    entered,
    lead,
    leads_told,
    stream_for,
    stretches_of,
    workload_of,
)
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import distinct, medians, middles, where
from ps2stream_bench.plots import bars, in_thousands
from ps2stream_bench.results import Row, table
from ps2stream_bench.workloads import COUNTRIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

TEXT = ("frequency", "hypergraph", "metric")
SPACE = ("grid", "kd-tree", "r-tree")

_SIZES: dict[Scale, dict[str, Setting]] = {
    "tiny": {"corpus": 5_000, "tuples": 1_800, "repetitions": 2, "batch": 1_800},
    "small": {"corpus": 200_000, "tuples": 50_000, "repetitions": 5, "batch": 25_000},
    "paper": {"corpus": 1_000_000, "tuples": 500_000, "repetitions": 7, "batch": 100_000},
}
_LIVE: dict[Scale, dict[str, int]] = {
    "tiny": {"q1": 1_000, "q2": 1_000},
    "small": {"q1": 100_000, "q2": 100_000},
    "paper": {"q1": 5_000_000, "q2": 10_000_000},
}

_PAPER = """\
4 dispatchers and 8 workers, 5M subscriptions of Q1 and 10M of Q2. On Q1 space partitioning is faster: grid
processes 160,659 tuples/s of STS-US-Q1, frequency 76,921, since text partitioning sends every publication
to several workers when keywords are frequent. On Q2 text partitioning is faster: metric processes 267,415
tuples/s of STS-US-Q2, R-tree 181,542, since regions are larger and keywords rarer. Metric is the best text
partitioner and kd-tree the best space partitioner overall.
"""

_DIFFERS = """\
**A copy of a publication is cheap here.** The paper explains text partitioning's loss on Q1 by its fan-out:
every copy is a tuple of Storm, which a worker unpacks and matches anew. Here a copy is a row in a
column-wise packet, and it names the terms that this worker owns. The lists of all terms are read once,
whoever reads them, so fan-out adds little to the work of workers, and space partitioning has little to gain
on Q1. What fan-out does cost is the writing of copies, which is the dispatchers' work.

**Replication is what differs.** A subscription of a large region is stored, and later deleted, at every
worker whose area it touches. Grid deals its cells one by one, so neighbours belong to different workers and
it replicates most; R-tree deals a few leaves to each worker; kd-tree gives each worker one piece. Text
partitioning replicates only OR expressions whose keywords lie with different workers, whatever the region.
This is why large regions hurt space partitioning, as the paper says, but a kd-tree much less than the other
two.

**Balance decides among equals.** Where total work is alike, the plan with the least busy busiest worker
wins. Frequency and R-tree balance the very load that is measured over many small units; kd-tree cuts the
space into eight pieces and cannot cut a single place; metric counts publications.

**Dispatchers may be the limit.** With 4 of them for 8 workers, and workers that only look at candidates,
the projected rate is often that of the dispatchers (column *limit*), which do the same work under all space
partitioners. The column *by workers alone* tells the plans apart as it would with dispatchers to spare.

**Routing a subscription costs by cells.** The registrar visits every cell of a plan's grid that a region
touches, under text partitioning too, where the terms have the same owners in all of them. The grid has the
same number of cells for a small country as for a large one, so a region of Q2 touches many more of them in
the UK.
"""


def cases(scale: Scale) -> list[Case]:
    """Return a case for both kinds, of one country or of both."""
    countries = COUNTRIES[:1] if scale == "tiny" else COUNTRIES
    cluster = {"workers": N_WORKERS, "dispatchers": N_DISPATCHERS}
    return [
        Case({"country": country, "kind": kind, "live": live, **_SIZES[scale], **cluster})
        for country in countries
        for kind, live in _LIVE[scale].items()
    ]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load six engines with one stream and let them take turns."""
    stream = stream_for(case, context, case["tuples"] * case["repetitions"])
    meters = entered(stream, (*TEXT, *SPACE), case)
    stretches = stretches_of(stream.mixed, case["repetitions"])
    for row in compared(meters, stretches, case["batch"], context.seed):
        family = "text" if row["partitioner"] in TEXT else "space"
        yield {"workload": workload_of(case, context), "family": family, **row}


def page(rows: Sequence[Row]) -> Page:
    """Show the rates of all six, and judge what the paper says of them."""
    size = rows[0]
    lives = " and ".join(f"{n:,}" for n in distinct(rows, "live"))
    ours = (
        f"{size['dispatchers']} dispatchers and {size['workers']} workers; {lives} live subscriptions, "
        f"loaded first; then {size['repetitions']} stretches of {size['tuples']:,} tuples. Six engines run "
        f"in one process and take turns batch by batch ({size['batch']:,} events), in another order each "
        "time; they deliver the same matches, which is checked. Medians over the stretches.\n\n"
        f"{alone_told(rows, ('workload', 'partitioner'))}"
    )
    lines = medians(rows, ("workload", "partitioner"))
    return Page(_PAPER, ours, _DIFFERS, [table(lines, COLUMNS)], _drawings(rows), list(_verdicts(rows)))


def _drawings(rows: Sequence[Row]) -> list[Drawing]:
    titles = {
        RATE: "projected: a core for every role",
        WORKERS_RATE: "by workers alone: dispatchers to spare",
        "tuples_per_s": "measured: all roles on one core",
    }
    names = [name for name in (*TEXT, *SPACE) if name in distinct(rows, "partitioner")]

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(len(titles), 1, squeeze=False)[:, 0]
        for axes, (field, title) in zip(panels, titles.items(), strict=True):
            values = {
                (str(workload), str(name)): rate
                for (workload, name), rate in middles(rows, ("workload", "partitioner"), field).items()
            }
            bars(axes, distinct(rows, "workload"), names, values)
            axes.set_title(title)
            axes.set_ylabel("tuples/s")
            in_thousands(axes)
        panels[0].legend(ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.12))

    caption = "Tuples/s of the six baselines: text partitioners green, space partitioners blue"
    return [Drawing("throughput", caption, draw, (8.5, 7.5))]


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    us_q1, us_q2 = "STS-US-Q1: grid 160,659, frequency 76,921", "STS-US-Q2: metric 267,415, R-tree 181,542"
    for workload in distinct(rows, "workload"):
        of_it = where(rows, workload=workload)
        if workload.endswith("Q1"):
            yield from _all_beat_all(of_it, workload, ("space", SPACE), ("text", TEXT), us_q1)
        else:
            yield from _all_beat_all(of_it, workload, ("text", TEXT), ("space", SPACE), us_q2)
    yield from _beats(where(rows, workload="US-Q1"), "US-Q1", "grid", "frequency", 160_659 / 76_921)
    yield from _beats(where(rows, workload="US-Q2"), "US-Q2", "metric", "r-tree", 267_415 / 181_542)
    yield from _best_of(rows, "metric", TEXT, "text")
    yield from _best_of(rows, "kd-tree", SPACE, "space")


def _all_beat_all(
    rows: Sequence[Row],
    workload: str,
    first: tuple[str, Sequence[str]],
    second: tuple[str, Sequence[str]],
    paper: str,
) -> Iterator[Verdict]:
    """Judge whether even the slowest of one family is faster than the fastest of the other."""
    found = {name: rate.median for (name,), rate in middles(rows, ("partitioner",), RATE).items()}
    (winners, wins), (losers, loses) = first, second
    if not set(wins) | set(loses) <= found.keys():
        return
    slowest, fastest = min(wins, key=found.__getitem__), max(loses, key=found.__getitem__)
    yield Verdict(
        f"{workload}: {winners} partitioning is faster than {losers} partitioning",
        paper,
        f"slowest of {winners} to fastest of {losers}: {slowest} {leads_told(rows, slowest, fastest)}",
        lead(rows, slowest, fastest).median > 1,
    )


def _beats(rows: Sequence[Row], workload: str, name: str, other: str, stated: float) -> Iterator[Verdict]:
    """Judge the pair that the paper gives as its example."""
    found = lead(rows, name, other)
    if found.n:
        yield Verdict(
            f"{workload}: {name} is faster than {other}",
            f"{stated:.2f} times {other}",
            leads_told(rows, name, other),
            found.median > 1,
        )


def _best_of(rows: Sequence[Row], name: str, family: Sequence[str], title: str) -> Iterator[Verdict]:
    """Judge whether one is faster than the rest of its family, over all workloads."""
    leads = {other: lead(rows, name, other) for other in family if other != name}
    if all(found.n for found in leads.values()):
        yield Verdict(
            f"{name} is the best {title} partitioner overall",
            "chosen for further evaluation as such",
            "; ".join(leads_told(rows, name, other) for other in leads),
            all(found.median > 1 for found in leads.values()),
        )


FIGURE = Figure(
    "baselines",
    "Throughput of the baselines",
    "Tuples/s of three text partitioners and three space partitioners on Q1 and Q2 of both countries.",
    cases,
    measure,
    page,
)
