"""Plans side by side: a table on a terminal, plain columns elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ps2stream.cli.render.output import Columns
from ps2stream.cli.render.plan_figures import PlanFigures

_HEADERS = (
    "partitioner",
    "load",
    "max/min",
    "max/avg",
    "stored min",
    "mean",
    "max",
    "replication",
    "fan-out",
    "discarded",
    "build s",
    "sigma",
)

LEGEND = """\
load: ms of worker time for 1,000 publications, of all workers; max, min, avg: of a worker
stored: subscriptions of the sample at a worker; replication: workers that store a subscription
fan-out: workers that a publication goes to; discarded: publications that go to none"""


def print_table(figures: Sequence[PlanFigures]) -> None:
    """Print a row for each plan."""
    rows = [_cells(each) for each in figures]
    if sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb"):
        _print_rich(rows)
    else:
        Columns(*_HEADERS).write(rows)


def _cells(figures: PlanFigures) -> tuple[str, ...]:
    mean = sum(figures.stored) / figures.n_workers
    return (
        figures.partitioner,
        f"{figures.load_ms:,.2f}",
        f"{figures.balance:.2f}",
        f"{figures.peak:.2f}",
        f"{min(figures.stored):,}",
        f"{mean:,.0f}",
        f"{max(figures.stored):,}",
        f"{figures.replication:.2f}",
        f"{figures.fan_out:.2f}",
        f"{figures.discarded:.1%}",
        f"{figures.build_s:.2f}",
        _sigma(figures),
    )


def _sigma(figures: PlanFigures) -> str:
    if figures.sigma is None:
        return "-"
    return f"{figures.sigma:g} {'kept' if figures.keeps_sigma else 'not kept'}"


def _print_rich(rows: Sequence[tuple[str, ...]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(_HEADERS):
        words = number in (0, len(_HEADERS) - 1)
        table.add_column(header, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # A narrow terminal breaks long lines; rich would break or cut every figure instead.
    needed = sum(max(map(len, column)) + 3 for column in zip(_HEADERS, *rows, strict=True))
    Console(width=max(needed, Console().width)).print(table)
