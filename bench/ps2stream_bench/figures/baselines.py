"""The paper's Fig. "Throughput Comparison (Baselines)": three text and three space partitioners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.leads import (
    NOT_MEASURED,
    all_hold,
    lead,
    lead_told,
    on_all,
    overall,
    overall_told,
    wins,
    wins_told,
)
from ps2stream_bench.metrics import distinct, medians, middle, middles, where
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
    "small": {"q1": 1_000_000, "q2": 1_000_000},
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
**What a copy of a publication is.** The paper explains text partitioning's loss on Q1 by its fan-out:
every copy is a tuple of Storm, which a worker unpacks and matches anew. Here a copy is a row in a
column-wise packet, and it names the terms that this worker owns. The lists of all terms are read once,
whoever reads them, so fan-out need not add to the work of workers as it does in the paper. What it does
cost is the writing of copies, which is the dispatchers' work. {families}

**Replication differs by plan.** A subscription of a large region is stored, and later deleted, at every
worker whose area it touches. Grid deals its cells one by one, so neighbours belong to different workers;
R-tree deals a few leaves to each worker; kd-tree gives each worker one piece. Text partitioning replicates
only OR expressions whose keywords lie with different workers, whatever the region. Where regions are large,
space plans have the more to store, as the paper says, and should have so the more they scatter neighbours.

**Balance decides among equals.** Where total work is alike, the plan with the least busy busiest worker
wins. Frequency and R-tree balance the very load that is measured over many small units; kd-tree has one
piece for each worker and cannot cut a single place; metric counts publications. {work}

**Dispatchers may be the limit.** Here {limits}. To a dispatcher every space plan is a table of cells, so
where it is the limit these plans should be alike. The column *by workers alone* tells plans apart as a
cluster with dispatchers to spare would.

**Routing a subscription costs by cells.** The registrar visits every cell of a plan's grid that a region
touches, and looks its terms up again where the owners change from one cell to the next: never under text
partitioning. The grid has the same number of cells for a small country as for a large one, so a region of
Q2 touches many more of them in the UK.
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
    ranges = ranges_of(stream.mixed, case["repetitions"])
    for row in compared(meters, ranges, case["batch"], context.seed):
        family = "text" if row["partitioner"] in TEXT else "space"
        yield {"workload": workload_of(case, context), "family": family, **row}


def page(rows: Sequence[Row]) -> Page:
    """Show the rates of all six, and judge what the paper says of them."""
    size, by = rows[0], ("workload", "partitioner")
    lives = " and ".join(f"{n:,}" for n in distinct(rows, "live"))
    ours = (
        f"{size['dispatchers']} dispatchers and {size['workers']} workers; {lives} live subscriptions, "
        f"loaded first; then {size['repetitions']} ranges of {size['tuples']:,} tuples. Six engines run "
        f"in one process and take turns batch by batch ({size['batch']:,} events), in another order each "
        f"time; they deliver the same matches, which is checked. Medians over the ranges. {NOISE_TOLD}\n\n"
        f"{alone_told(rows, by)}"
    )
    differs = _DIFFERS.format(
        families=_families_told(rows), work=work_told(rows), limits=limits_told(rows, by)
    )
    lines = medians(rows, by)
    return Page(_PAPER, ours, differs, [table(lines, COLUMNS)], _drawings(rows), list(_verdicts(rows)))


def _families_told(rows: Sequence[Row]) -> str:
    """Say how much more workers have to do in all under text plans than under space plans on Q1."""
    told = []
    for workload in distinct(rows, "workload"):
        busy_s = [
            middle(
                row["workers_busy_s"] for row in where(rows, workload=workload) if row["partitioner"] in each
            )
            for each in (TEXT, SPACE)
        ]
        if workload.endswith("Q1") and all(each.n for each in busy_s):
            told.append(f"{busy_s[0].median / max(busy_s[1].median, 1e-9):.2f} on {workload}")
    if not told:
        return ""
    return (
        "In these rows the ratio of the busy time of all workers under text plans to that under space plans "
        f"(medians of three plans each) is {', '.join(told)}."
    )


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
    for country in COUNTRIES:
        name = country.upper()
        yield _all_beat_all(rows, f"{name}-Q1", ("space", SPACE), ("text", TEXT), us_q1)
        yield _all_beat_all(rows, f"{name}-Q2", ("text", TEXT), ("space", SPACE), us_q2)
    yield _beats(rows, "US-Q1", ("grid", "frequency"), 160_659 / 76_921)
    yield _beats(rows, "US-Q2", ("metric", "r-tree"), 267_415 / 181_542)
    yield _best_of(rows, "metric", TEXT, "text")
    yield _best_of(rows, "kd-tree", SPACE, "space")


def _all_beat_all(
    rows: Sequence[Row],
    workload: str,
    first: tuple[str, Sequence[str]],
    second: tuple[str, Sequence[str]],
    paper: str,
) -> Verdict:
    """Judge whether every one of a family is faster than every one of the other; tell the closest pair."""
    of_it = where(rows, workload=workload)
    (winners, wins_all), (losers, loses_all) = first, second
    leads = {(one, other): lead(of_it, one, other) for one in wins_all for other in loses_all}
    known = {pair: each.median for pair, each in leads.items() if each.n}
    closest = min(known, key=known.__getitem__, default=None)
    won = sum(each > 1 for each in known.values())
    return Verdict(
        f"{workload}: {winners} partitioning is faster than {losers} partitioning",
        paper,
        f"in {won} of {len(known)} pairs; least: {lead_told(of_it, *closest)}" if closest else NOT_MEASURED,
        all_hold(known[pair] > 1 if pair in known else None for pair in leads),
    )


def _beats(rows: Sequence[Row], workload: str, pair: tuple[str, str], stated: float) -> Verdict:
    """Judge the pair that the paper gives as its example."""
    name, other = pair
    claim = f"{workload}: {name} is faster than {other}"
    return Verdict(
        claim, f"{stated:.2f} times {other}", *on_all(rows, {workload: [pair]}, lambda each: each > 1)
    )


def _best_of(rows: Sequence[Row], name: str, family: Sequence[str], title: str) -> Verdict:
    """Judge whether one is faster than the rest of its family: a mean in which workloads count the same."""
    rivals = [each for each in family if each != name]
    leads = [overall(rows, name, rival) for rival in rivals]
    pairs = {each: [(name, rival) for rival in rivals] for each in distinct(rows, "workload")}
    each_told, _ = on_all(rows, pairs, lambda each: each > 1)
    told = f"{overall_told(rows, name, rivals)}; fastest {wins_told(wins(rows, name, rivals))}; {each_told}"
    return Verdict(
        f"{name} is the best {title} partitioner overall",
        "chosen for further evaluation as such",
        NOT_MEASURED if set(leads) == {None} else told,
        all_hold(None if each is None else each > 1 for each in leads),
    )


FIGURE = Figure(
    "baselines",
    "Throughput of the baselines",
    "Tuples/s of three text partitioners and three space partitioners on Q1 and Q2 of both countries.",
    cases,
    measure,
    page,
)
