"""Draw a plan: a map of who owns what, and the load of each worker. The only module that uses matplotlib.

Colours stand for workers, in the map and in the bars below it, which serve as its legend.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context, rcParamsDefault
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ps2stream.arrays import Float64s
from ps2stream.cli.render.plan_figures import PlanFigures
from ps2stream.cli.render.plan_map import Area, area_of, borders_of, picture_of
from ps2stream.cli.render.printable import counted
from ps2stream.files import whole_file
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample

_WIDTH_INCHES = 9.0
_BARS_INCHES = 1.7
_WORDS_INCHES = 1.0
_N_POINTS = 20_000
#: On top of matplotlib's defaults, not of what a user has set: the same plan gives the same picture.
_SETTINGS: dict[Any, Any] = {
    **rcParamsDefault,
    "svg.hashsalt": "ps2stream",  # names of elements are random otherwise
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
}


def draw_plan(plan: Plan, sample: Sample, figures: PlanFigures, path: Path) -> None:
    """Write a drawing as PNG or SVG, by the ending of the file's name."""
    with rc_context(_SETTINGS):
        figure = _figure(plan, sample, figures)
        ending = path.suffix.lower()[1:]
        without_date: dict[str, Any] = {"Date": None} if ending == "svg" else {}
        with whole_file(path) as file:
            figure.savefig(file, format=ending, metadata=without_date)


def colours_of(n_workers: int) -> Float64s:
    """Return a colour for each worker: well apart for a few, still different for many."""
    if n_workers <= 10:
        return np.asarray(colormaps["tab10"](range(n_workers)))[:, :3]
    # Steps of the golden ratio keep neighbours in number far apart in hue; three shades tell near hues apart.
    number = np.arange(n_workers)
    hue = number * (math.sqrt(5) - 1) / 2 % 1
    saturation = np.array([0.75, 0.45, 0.9])[number % 3]
    value = np.array([0.9, 0.95, 0.6])[number % 3]
    return np.asarray(hsv_to_rgb(np.column_stack([hue, saturation, value])))


def _figure(plan: Plan, sample: Sample, figures: PlanFigures) -> Figure:
    area = area_of(sample)
    map_inches = _WIDTH_INCHES * area.shape
    size = (_WIDTH_INCHES, map_inches + _BARS_INCHES + _WORDS_INCHES)
    figure = Figure(size, dpi=130, layout="constrained")
    figure.suptitle(
        f"{plan.partitioner}, {counted(plan.n_workers, 'worker')}", fontsize=12, x=0.01, ha="left"
    )
    figure.legend(handles=_handles(plan), loc="outside upper right", ncols=2, frameon=False)
    above, below = figure.subplots(2, 1, height_ratios=[map_inches, _BARS_INCHES])
    colours = colours_of(plan.n_workers)
    _draw_map(above, plan, sample, area, colours)
    _draw_bars(below, figures, colours)
    return figure


def _handles(plan: Plan) -> list[Artist]:
    point = Line2D([], [], linestyle="none", marker=".", color="black", label="publication")
    if plan.h1.cell_owner.min() >= 0:
        return [point]
    return [point, Patch(facecolor="0.9", edgecolor="0.3", hatch="////", label="divided by terms")]


def _draw_map(axes: Axes, plan: Plan, sample: Sample, area: Area, colours: Float64s) -> None:
    extent = (area.west, area.east, area.south, area.north)
    picture = picture_of(plan, sample, area, colours)
    axes.imshow(picture, origin="lower", extent=extent, aspect=area.aspect)
    axes.add_collection(LineCollection(borders_of(plan), colors="black", linewidths=0.4, alpha=0.6))
    step = max(1, sample.n_publications // _N_POINTS)
    axes.plot(
        sample.lon[::step],
        sample.lat[::step],
        linestyle="none",
        marker=".",
        markersize=1.5,
        markeredgewidth=0,
        color="black",
        alpha=0.35,
        rasterized=True,
    )
    axes.set(xlim=extent[:2], ylim=extent[2:], xlabel="longitude", ylabel="latitude")


def _draw_bars(axes: Axes, figures: PlanFigures, colours: Float64s) -> None:
    n = figures.n_workers
    axes.bar(range(n), figures.loads_ms, color=colours, width=0.8)
    axes.axhline(figures.load_ms / n, color="black", linestyle="--", linewidth=1, label="mean")
    balance = "a worker is idle" if math.isinf(figures.balance) else f"L_max/L_min {figures.balance:.2f}"
    axes.set_title(f"load of each worker: {balance}, L_max/L_avg {figures.peak:.2f}")
    axes.set_xticks(range(0, n, math.ceil(n / (32 if n <= 100 else 16))))
    axes.set(xlabel="worker", ylabel="ms for 1,000\npublications", xlim=(-0.7, n - 0.3))
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.1)
