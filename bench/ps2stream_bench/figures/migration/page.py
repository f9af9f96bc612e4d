"""What the page of the figure says and shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ps2stream.balance.selection import SELECTORS
from ps2stream_bench.figure import Drawing, Page
from ps2stream_bench.figures.migration.claims import verdicts
from ps2stream_bench.figures.migration.measurement import MOMENTS, RUSH, SHARES, TIMINGS
from ps2stream_bench.figures.migration.summary import PACE, migration_summary, selection_summary, sizes_of
from ps2stream_bench.metrics import middles, where
from ps2stream_bench.plots import bars, short
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_SELECTION_COLUMNS = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("selector", "selector"),
    Column("choices", "n", ",d"),
    Column("cells", "n_cells", ",.0f"),
    Column("time, ms", "time_ms", ".3f"),
    Column("bytes / DP's", "cost_ratio", ".2f"),
    Column("within 5 % of DP", "within_5_percent", ".0%"),
    Column("peak memory, KB", "peak_kb", ",.0f"),
]
_MIGRATION_COLUMNS = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("selector", "selector"),
    Column("migrations", "n", ",d"),
    Column("moved each, KB", "moved_kb", ",.0f"),
    Column("selected each, KB", "selected_kb", ",.0f"),
    Column("to decide, ms", "selection_ms", ",.0f"),
    Column("whole migration, ms", "migration_ms", ",.0f"),
    Column("moved in all, MB", "total_mb", ",.2f"),
    Column("< 100 ms", "share_below", ".1%"),
    Column("100 ms to 1 s", "share_between", ".1%"),
    Column("> 1 s", "share_above", ".1%"),
    Column("in held-up batches", "share_held_up", ".1%"),
]
_DELAYS = (
    ("< 100 ms", "share_below", "#b8d8a6"),
    ("100 ms to 1 s", "share_between", "#d98e04"),
    ("> 1 s", "share_above", "#c1272d"),
)

_PAPER = """\
Four ways to select the cells that an overloaded worker gives away: DP (dynamic programming), GR (greedy,
by bytes for each load), SI (largest cells first) and RA (random). STS-US-Q1, 4 dispatchers, 8 workers,
1M, 5M and 10M subscriptions; tweets of 60 days are replayed, 4 hours of them in 10 seconds.

- DP takes significantly longer to select than the others and runs out of memory with 5M and 10M
  subscriptions. RA is the fastest, GR and SI are very efficient, too. The time of these three depends on
  the number of cells, not of subscriptions.
- With 1M subscriptions DP and GR move the least, in the least time; DP takes slightly longer than GR. With
  5M and 10M GR is best. With 5M it moves 30 to 40 % less than SI and RA, in nearly half of the time of RA
  and 70 % of that of SI. With 10M migrations are larger and longer than with 5M.
- With GR 80 % of the tuples are delayed by less than 100 ms and 4 % by more than a second. DP leaves 72 %
  alone, and delays more between 100 ms and a second. SI delays 10 % more tuples than GR, RA 20 % more."""

_OURS = f"""\
*Selection*: a Q1 stream runs, and at {MOMENTS} moments the load table of every worker is taken. All four
selectors choose from the same cells, for {", ".join(f"{share:.0%}" for share in SHARES)} of the worker's
load. Each choice is timed {TIMINGS} times and the shortest counts; its memory is seen in a run of its
own.

*Migration*: four engines, one for each selector, start from one plan and take turns on one Q1 stream.
From interval to interval other places get busy: publications of 10 of 100 regions come {RUSH:g} times as
often. That stands for the 60 days of tweets. Local adjustment is on with its default settings but for the
window, which is about a third of an interval. The time of a migration is from the decision until the last
worker is ready for publications. Delays follow from the pauses: if tuples arrived at {PACE:,} a second,
so many of all tuples of the run would come while the stream stands still and wait so long. The engines
run batch by batch, so the last column counts differently: publications of batches that a migration held up
by more than 100 ms, however many more came in the batch than in the pause. It mostly counts how often a
selector migrates, times the size of a batch; no claim is judged by it. Numbers are averages over migrations
as in the paper; bars show medians with intervals. Ratios of averages have a 95 % interval over the
migrations of the one run that there is of each size (bootstrap)."""

_DIFFERS = """\
- *Numbers of subscriptions* are the paper's at the scale `paper` only. A claim is judged at the size that
  is nearest to the one the paper made it for.
- *Time to select.* SI and GR sort as many cells as RA permutes, and RA has to set up a random generator
  first. With as few cells as a worker has, the fixed costs of a call decide among these three.
- *DP's memory.* The paper's table has a column for every byte. Ours counts bytes in units such that there
  are at most 65,536 columns, and keeps one bit for each entry. The memory depends on the number of cells
  and is bounded, whatever the number of subscriptions; the price is an answer that may be some units
  above the best.
- *Bytes.* SI takes the largest cells. They tend to be the busiest ones, too, so it needs few of them; RA
  takes whatever comes, mostly cells with little load, and needs many. What GR saves depends on how
  differently bytes and loads are spread over cells. Cells that the destination stores a part of already
  cost less than they hold.
- *Time of a migration.* Here it does not wait for a network. Of a pause, the time to add up the window
  and to find who stores what is the same for all selectors; only what is copied grows with the bytes. So
  times differ less than bytes do.
- *Delays.* Ours are waits for migrations alone; the queue that has to be worked off after a pause is not
  counted. The paper counts all latencies of a loaded cluster. Either share says how often the load drifts
  as much as how long a migration takes: both streams are compressed in time. Ours are in proportion to the
  pace besides: at half of it, half as many tuples come in a pause. What carries over is which selector
  delays more."""


def page(rows: Sequence[Row]) -> Page:
    """Say what the four selectors cost."""
    chosen, moved = where(rows, part="selection"), where(rows, row="migration")
    intervals = where(rows, row="interval")
    tables = []
    if chosen:
        tables.append(table(selection_summary(chosen), _SELECTION_COLUMNS))
    if intervals:
        tables.append(table(migration_summary(moved, intervals), _MIGRATION_COLUMNS))
    return Page(_PAPER, _OURS, _DIFFERS, tables, drawings(chosen, moved, intervals), verdicts(rows))


def drawings(chosen: Sequence[Row], moved: Sequence[Row], intervals: Sequence[Row]) -> list[Drawing]:
    """Draw the paper's three figures."""
    found = []
    if chosen:
        found.append(
            Drawing("selection", "Time to select cells (logarithmic).", lambda c: _draw_times(c, chosen))
        )
    if moved:
        caption = "What a migration moves (left) and how long it takes (right)."
        found.append(Drawing("migration", caption, lambda c: _draw_costs(c, moved)))
    if intervals:
        caption = "Tuples by how long they wait for migrations."
        found.append(Drawing("delays", caption, lambda c: _draw_delays(c, moved, intervals)))
    return found


def _draw_times(canvas: Canvas, chosen: Sequence[Row]) -> None:
    axes = canvas.subplots()
    _draw_bars(axes, chosen, "select_s", 1e3)
    axes.set_yscale("log")
    axes.set_ylim(top=3 * axes.get_ylim()[1])  # space for the legend
    axes.set_ylabel("time to select, ms")
    axes.legend(ncols=4)


def _draw_costs(canvas: Canvas, moved: Sequence[Row]) -> None:
    left, right = canvas.subplots(1, 2)
    _draw_bars(left, moved, "moved_bytes", 1e-3)
    left.set_ylabel("bytes moved, KB")
    _draw_bars(right, moved, "migration_s", 1e3)
    right.set_ylabel("time of a migration, ms")
    left.legend()


def _draw_bars(axes: Axes, rows: Sequence[Row], field: str, factor: float) -> None:
    scaled = [{**row, "group": short(row["subscriptions"]), "shown": factor * row[field]} for row in rows]
    groups = [short(size) for size in sizes_of(rows)]
    found = middles(scaled, ("group", "selector"), "shown")
    bars(
        axes,
        groups,
        list(SELECTORS),
        {(str(group), str(name)): each for (group, name), each in found.items()},
    )
    axes.set_xlabel("subscriptions")


def _draw_delays(canvas: Canvas, moved: Sequence[Row], intervals: Sequence[Row]) -> None:
    sizes = sizes_of(intervals)
    panels = canvas.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axes, size in zip(panels, sizes, strict=True):
        lines = migration_summary(where(moved, subscriptions=size), where(intervals, subscriptions=size))
        names, bottom = [line["selector"] for line in lines], np.zeros(len(lines))
        for label, field, colour in _DELAYS:
            heights = np.array([100 * line[field] for line in lines])
            axes.bar(names, heights, bottom=bottom, label=label, color=colour)
            bottom += heights
        axes.set_title(f"{short(size)} subscriptions")
    panels[0].set_ylabel("tuples, %")
    panels[0].legend(loc="lower left")
