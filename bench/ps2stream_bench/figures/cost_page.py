"""Pages about what a publication costs: the same table, plot and words for every knob."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ps2stream_bench.figure import Drawing, Verdict
from ps2stream_bench.metrics import Middle, distinct, grouped, medians, middle, middles, ratio, where
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

#: What the paper says where a figure is ours alone.
NOT_IN_THE_PAPER = "The paper has no such figure. It is one of ours."

COST = Column("cost, us", "cost", ".2f")
WORK = (
    Column("dispatcher, us", "dispatcher_us", ".2f"),
    Column("worker, us", "worker_us", ".2f"),
    Column("merger, us", "merger_us", ".2f"),
    Column("registrar, us", "registrar_us", ".2f"),
    Column("tuples/s", "tuples_per_s", ",.0f"),
    Column("discarded", "discarded_share", ".0%"),
    Column("lists", "lists_per_publication", ".2f"),
    Column("candidates", "candidates_per_publication", ".2f"),
    Column("matches", "matches_per_publication", ".2f"),
)
MEMORY = (
    Column("postings a subscription", "postings_per_subscription", ".2f"),
    Column("postings a list", "postings_per_list", ".2f"),
    Column("index bytes a subscription", "bytes_per_subscription", ",.0f"),
    Column("dispatcher bytes a subscription", "dispatcher_bytes_per_subscription", ",.0f"),
    Column("inserts/s", "inserts_per_s", ",.0f"),
    Column("loads/s", "loads_per_s", ",.0f"),
)

_READ = {
    "lists_per_publication": "lists",
    "candidates_per_publication": "candidates",
    "matches_per_publication": "matches",
}


@dataclass(frozen=True, slots=True)
class Knob:
    """What is varied: its field in the rows, how its axis is labelled, how its values are written."""

    field: str
    label: str
    style: str = ""
    is_log: bool = True

    @property
    def columns(self) -> tuple[Column, Column]:
        return Column("workload", "kind"), Column(self.label, self.field, self.style)


def how(rows: Sequence[Row]) -> str:
    """Say how the rows were measured."""
    first = rows[0] if rows else {}
    return _HOW.format(
        live=_counted(first, "n_live"),
        published=_counted(first, "n_publications"),
        n=len(distinct(where(rows, phase="run"), "repetition")),
    )


_HOW = """\
One inline engine for each value, with one worker and one dispatcher, so that nothing is divided; all are
loaded with {live} subscriptions like those of the US (Q1, Q2) and then take turns, in another order each
time, on {published} publications a turn and a fifth as many updates. Medians of {n} turns, in brackets
their interval.

*Cost* is CPU time of one core for a publication, with the fifth of an update that comes with it;
*dispatcher*, *worker*, *merger* and *registrar* are the shares of the roles in it (a worker also applies
updates, the registrar does nothing else). *Discarded*: publications that the dispatcher sends to nobody,
because no live subscription of their cell has one of their terms. *Lists* are those of GI2 that are
looked up, *candidates* the postings in them; both for a publication, discarded ones included."""


def summary(rows: Iterable[Row], knob: Knob) -> list[Row]:
    """Make one row of all about a workload and a value: medians of the turns, and the loading."""
    found = list(rows)
    by = ("kind", knob.field)
    loads = {key: group[0] for key, group in grouped(where(found, phase="load"), by).items()}
    runs = where(found, phase="run")
    costs = middles(runs, by, "cost_us")
    joined = []
    for row in medians(runs, by):
        key = (row["kind"], row[knob.field])
        loading = {name: value for name, value in loads.get(key, {}).items() if value is not None}
        known = {name: value for name, value in row.items() if value is not None}
        joined.append(loading | known | _whole(loading) | {"cost": costs[key]})
    return sorted(joined, key=lambda row: (row["kind"], row[knob.field]))


def _whole(loading: Row) -> Row:
    """Return what is told of the loading; turns have some of it too, as it is later on."""
    return {column.field: loading.get(column.field) for column in MEMORY}


def cost_table(rows: Iterable[Row], knob: Knob, *more: Column) -> str:
    """Show what a publication costs and why, for every workload and value."""
    return table(_titled(summary(rows, knob)), [*knob.columns, COST, *WORK, *more])


def memory_table(rows: Iterable[Row], knob: Knob, *more: Column) -> str:
    """Show what the index takes, for every workload and value."""
    return table(_titled(summary(rows, knob)), [*knob.columns, *MEMORY, *more])


def cost_drawing(
    rows: Iterable[Row], knob: Knob, name: str, caption: str, *, is_log_cost: bool = False
) -> Drawing:
    """Draw the cost over the knob, and beside it what GI2 reads and finds."""
    found = where(rows, phase="run")

    def draw(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2)
        lines(left, {kind.upper(): _points(found, kind, knob, "cost_us") for kind in kinds(found)})
        _label(left, knob, "us of one core a publication")
        if is_log_cost:
            left.set_yscale("log")
        else:
            left.set_ylim(bottom=0)
        series = {
            f"{told}, {kind.upper()}": _points(found, kind, knob, field)
            for kind in kinds(found)
            for field, told in _READ.items()
        }
        lines(right, series, marker=".")
        if any(each.median > 0 for points in series.values() for each in points.values()):
            right.set_yscale("log")
        _label(right, knob, "a publication")

    return Drawing(name, caption, draw, size=(9.0, 3.4))


def kinds(rows: Iterable[Row]) -> list[str]:
    """Return the workloads that were measured, in a fixed order."""
    return sorted(distinct(rows, "kind"))


def ends(rows: Iterable[Row], knob: Knob) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of the knob; None where there are not two."""
    values = distinct(where(rows, phase="run"), knob.field)
    return (min(values), max(values)) if len(values) > 1 else None


def growth(rows: Iterable[Row], knob: Knob, kind: str, field: str = "cost_us") -> Middle:
    """Return by what factor a figure grows from the least to the greatest value, turn by turn."""
    found = where(rows, phase="run", kind=kind)
    span = ends(found, knob)
    if span is None:
        return middle([])
    return ratio(found, field, {knob.field: span[1]}, {knob.field: span[0]})


def per_kind(rows: Sequence[Row], tell: Callable[[str], str]) -> str:
    """Say something of every workload."""
    return "; ".join(f"{kind.upper()} {tell(kind)}" for kind in kinds(rows))


def _points(rows: Iterable[Row], kind: str, knob: Knob, field: str) -> dict[float, Middle]:
    found = middles(where(rows, kind=kind), (knob.field,), field)
    return {float(value): each for (value,), each in found.items() if value is not None and each.n}


def _label(axes: Axes, knob: Knob, ylabel: str) -> None:
    if knob.is_log:
        axes.set_xscale("log")
        in_thousands(axes, "x")
    axes.set_xlabel(knob.label)
    axes.set_ylabel(ylabel)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _titled(rows: Iterable[Row]) -> list[Row]:
    return [row | {"kind": str(row["kind"]).upper()} for row in rows]


def _counted(row: Row, field: str) -> str:
    return f"{row[field]:,.0f}" if row.get(field) is not None else "no"


def grows_slower(rows: Sequence[Row], knob: Knob, what: str) -> list[Verdict]:
    """Judge whether the cost of a publication grows slower than what is varied."""
    claim = f"The cost of a publication grows slower than the number of {what}"
    span = ends(rows, knob)
    grown = {kind: growth(rows, knob, kind) for kind in kinds(rows)}
    if span is None or not all(each.n for each in grown.values()):
        return [not_measured(claim)]
    factor = span[1] / span[0]
    ours = f"{factor:g} times the {what} cost: {per_kind(rows, lambda kind: f'{grown[kind]:.2f} times')}"
    return [Verdict(claim, "", ours, all(each.median < factor for each in grown.values()))]


def not_measured(claim: str, why: str = "not measured") -> Verdict:
    """Leave a target of ours open."""
    return Verdict(claim, "", why, None)
