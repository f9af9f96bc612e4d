"""The loads of a job's workers as text: what holds for all, then workers, then their busiest cells."""

from __future__ import annotations

import sys

from ps2stream.cli.render.charts import bar
from ps2stream.cli.render.load_figures import CellFigures, LoadFigures, WorkerFigures
from ps2stream.cli.render.output import Columns, degrees
from ps2stream.cli.render.printable import byte_count, share

_BAR_WIDTH = 30
_CELL_HEADERS = (
    "worker",
    "cell",
    "load",
    "busy s",
    "publications",
    "subscriptions",
    "candidates",
    "matches",
    "bytes",
    "region",
)


def print_loads(figures: LoadFigures, n_cells: int) -> None:
    """Print all there is to know, with this many cells of a worker."""
    print(_plans(figures))
    print(_balance(figures))
    print()
    Columns("worker", "load", "busy s", "beside the busiest").write(
        [_worker(worker, figures) for worker in figures.workers]
    )
    cells = [_cell(worker, cell) for worker in figures.workers for cell in worker.cells[:n_cells]]
    if cells:
        print()
        Columns(*_CELL_HEADERS).write(cells)


def ago(seconds: float) -> str:
    """Write the time since something."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(seconds, 0.0):.1f} s ago"


def _plans(figures: LoadFigures) -> str:
    newest, *older = figures.plans
    if not older:
        return f"plan {newest} routes {figures.n_subscriptions:,} subscriptions"
    return (
        f"plan {newest} is taking over from plan {older[0]}, which {figures.n_older:,} of "
        f"{figures.n_subscriptions:,} subscriptions are left to"
    )


def _balance(figures: LoadFigures) -> str:
    if figures.imbalance is None:
        ratio = "imbalance: a worker has nothing to do"
    else:
        ratio = f"imbalance {figures.imbalance:.2f}, the busiest worker over the least busy one"
    when = f"adjusted above {figures.sigma:g}"
    if not figures.is_full:
        when += ", when the window is full"
    return f"{ratio}; {when}\nwindow of the newest {figures.n_publications:,} publications"


def _worker(worker: WorkerFigures, figures: LoadFigures) -> tuple[str, ...]:
    most = max(each.load for each in figures.workers)
    drawn = bar(worker.load / most if most > 0 else 0.0, _BAR_WIDTH)
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        drawn = "#" * len(drawn)
    return str(worker.worker), share(worker.load, figures.load), f"{worker.busy_s:.3f}", drawn


def _cell(worker: WorkerFigures, cell: CellFigures) -> tuple[str, ...]:
    return (
        str(worker.worker),
        str(cell.cell),
        share(cell.load, worker.load),
        f"{cell.busy_s:.3f}",
        f"{cell.n_publications:,}",
        f"{cell.n_subscriptions:,.0f}",
        f"{cell.n_candidates:,}",
        f"{cell.n_matches:,}",
        byte_count(cell.n_bytes),
        ",".join(map(degrees, cell.bounds)),
    )
