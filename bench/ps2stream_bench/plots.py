"""How figures are drawn: bars and lines of medians with their intervals, alike on every page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ps2stream_bench.figure import Drawing
from ps2stream_bench.metrics import Middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A contender has the same colour wherever it comes up.
_COLOURS = {
    "hybrid": "#c1272d",
    "kd-tree": "#1f5fa8",
    "grid": "#5b9bd5",
    "r-tree": "#9dc3e6",
    "metric": "#3a7d44",
    "frequency": "#7fb069",
    "hypergraph": "#b8d8a6",
    "gr": "#c1272d",
    "dp": "#444444",
    "si": "#d98e04",
    "ra": "#8f63b8",
    "PS2Stream inline": "#c1272d",
    "PS2Stream microbatch": "#e57373",
    "Spark SQL": "#d98e04",
    "numpy scan": "#777777",
    "shapely STRtree": "#1f5fa8",
    "PostgreSQL + PostGIS": "#3a7d44",
}
_OTHERS = ("#1f5fa8", "#c1272d", "#3a7d44", "#d98e04", "#8f63b8", "#444444", "#5b9bd5", "#7fb069")

_RESOLUTION = 110


def colour_of(name: str, index: int = 0) -> str:
    """Return the colour of a contender; of one without a colour of its own, by its index."""
    return _COLOURS.get(name, _OTHERS[index % len(_OTHERS)])


def bars(
    axes: Axes, groups: Sequence[str], series: Sequence[str], values: Mapping[tuple[str, str], Middle]
) -> None:
    """Draw a bar for every (group, series) that there is a value for, with its interval."""
    width = 0.8 / max(len(series), 1)
    for index, name in enumerate(series):
        there = [i for i, group in enumerate(groups) if (group, name) in values]
        found = [values[groups[i], name] for i in there]
        positions = [i - 0.4 + width * (index + 0.5) for i in there]
        axes.bar(
            positions,
            [each.median for each in found],
            width * 0.92,
            yerr=_errors(found),
            label=name,
            color=colour_of(name, index),
            error_kw={"elinewidth": 0.9, "ecolor": "0.25"},
        )
    axes.set_xticks(range(len(groups)), groups)
    _plain(axes)


def stacked(axes: Axes, groups: Sequence[str], parts: Mapping[str, Sequence[float]]) -> None:
    """Draw a bar for each group, of the parts that it is made of, one upon the other."""
    below = [0.0] * len(groups)
    for index, (name, values) in enumerate(parts.items()):
        axes.bar(range(len(groups)), values, 0.6, below, label=name, color=colour_of(name, index))
        below = [low + value for low, value in zip(below, values, strict=True)]
    axes.set_xticks(range(len(groups)), groups)
    _plain(axes)


def lines(axes: Axes, series: Mapping[str, Mapping[float, Middle]], *, marker: str = "o") -> None:
    """Draw a line for every series over its numbers, with intervals."""
    for index, (name, points) in enumerate(series.items()):
        xs = sorted(points)
        found = [points[x] for x in xs]
        axes.errorbar(
            xs,
            [each.median for each in found],
            yerr=_errors(found),
            label=name,
            color=colour_of(name, index),
            marker=marker,
            markersize=4,
            linewidth=1.4,
            elinewidth=0.9,
        )
    _plain(axes)


def in_thousands(axes: Axes, axis: str = "y") -> None:
    """Write 250,000 as 250K and 2,000,000 as 2M along an axis."""
    from matplotlib.ticker import FuncFormatter

    chosen: Any = axes.yaxis if axis == "y" else axes.xaxis
    chosen.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def short(value: float) -> str:
    """Write a number with K or M."""
    for limit, letter in ((1e6, "M"), (1e3, "K")):
        if abs(value) >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def save(drawing: Drawing, path: Path) -> None:
    """Draw into a PNG file, without a display and without a date, so that equal rows give equal files."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8}):
        canvas = Canvas(figsize=drawing.size, layout="constrained")
        FigureCanvasAgg(canvas)
        drawing.draw(canvas)
        canvas.savefig(path, dpi=_RESOLUTION, metadata={"Software": None})


def _errors(found: Iterable[Middle]) -> list[list[float]]:
    known = list(found)
    below = [max(each.median - each.low, 0.0) for each in known]
    return [below, [max(each.high - each.median, 0.0) for each in known]]


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
