"""The board of a job as lines of text: the job as a whole, then a table of its roles."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ps2stream.cli.render.board_figures import BoardFigures, Quantiles, RoleFigures
from ps2stream.cli.render.output import display_width, safe
from ps2stream.cli.render.printable import counted, milliseconds, share

#: A role that says nothing for so long is shown with its age: roles tell their figures every second or two.
_SILENT_S = 6.0
_NAME_WIDTH = 13
_HEADERS = (
    "role",
    "rate",
    "busy",
    "subscriptions",
    "lag",
    "restarts",
    "position",
    "horizon",
    "heard",
    "host",
)
#: Columns of words; the others are numbers, which stand on the right.
_LEFT = {"role", "host"}


def board_lines(figures: BoardFigures) -> list[str]:
    """Return what there is to know, a line each; all rates are those of the last seconds."""
    return [*_head(figures), "", *_table([_cells(role) for role in figures.roles])]


def _head(figures: BoardFigures) -> list[str]:
    publications, discarded = figures.rate("publications"), figures.rate("discarded_publications")
    throughput = [
        f"{publications:,.0f} publications/s",
        f"{figures.rate('updates'):,.0f} updates/s",
        f"{figures.rate('delivered_matches'):,.0f} matches/s",
        f"{share(discarded, publications)} discarded",
    ]
    if publications:
        throughput.append(f"{figures.rate('candidates') / publications:,.1f} candidates a publication")
    totals = [
        counted(figures.count("publications"), "publication"),
        counted(figures.count("updates"), "update"),
        counted(figures.count("delivered_matches"), "match", "matches"),
        f"{figures.count('rejected_records'):,} rejected",
        counted(figures.count("restarts"), "restart"),
    ]
    lags = [f"{lag:,} in {safe(topic)}" for topic, lag in sorted(figures.lags.items())]
    return [
        _line("throughput", throughput),
        _line("latency", _quantiles(figures.latency)),
        _line("batches", _quantiles(figures.batch)),
        _line("commits", _quantiles(figures.commit)),
        _line("lag", lags or ["-"]),
        _line("subscriptions", [f"{figures.n_subscriptions:,}"]),
        _line("since start", totals),
    ]


def _line(name: str, values: Sequence[str]) -> str:
    return f"{name:<{_NAME_WIDTH}}  {', '.join(values)}"


def _quantiles(quantiles: Quantiles) -> list[str]:
    names = (("p50", quantiles.p50_s), ("p90", quantiles.p90_s), ("p99", quantiles.p99_s))
    if quantiles.p50_s is None:
        return ["-"]
    return [f"{name} {_duration(value)}" for name, value in names]


def _duration(value_s: float | None) -> str:
    if value_s is None:
        return "-"
    return f"{value_s * 1000:.1f} ms" if value_s < 0.01 else milliseconds(value_s * 1000)


def _cells(role: RoleFigures) -> tuple[str, ...]:
    return (
        f"{safe(role.role)} {role.number}",
        f"{_rate(role.per_s)} {role.work}/s",
        f"{role.busy:.0%}",
        _number(role.n_subscriptions),
        _number(role.lag),
        _number(role.n_restarts),
        _number(role.position),
        _number(role.horizon),
        "" if role.age_s < _SILENT_S else f"{role.age_s:,.0f} s ago",
        safe(role.host),
    )


def _rate(per_s: float) -> str:
    return f"{per_s:,.1f}" if 0 < per_s < 10 else f"{per_s:,.0f}"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay cells out in columns; one that is empty in all rows is left out."""
    shown = [column for column in range(len(_HEADERS)) if any(row[column] for row in rows)]
    table = [[row[column] for column in shown] for row in (_HEADERS, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    names = table[0]
    return [
        "  ".join(
            _padded(cell, width, left=name in _LEFT)
            for cell, width, name in zip(row, widths, names, strict=True)
        ).rstrip()
        for row in table
    ]


def _padded(cell: str, width: int, *, left: bool) -> str:
    space = " " * (width - display_width(cell))
    return cell + space if left else space + cell


def up_for(seconds: float) -> str:
    """Write how long a job has been running."""
    minutes = math.floor(seconds / 60)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {math.floor(seconds % 60)} s"
