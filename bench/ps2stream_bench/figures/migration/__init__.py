"""Selecting cells and moving them, by each of the four selectors (Sec. VI, Figs. on migration)."""

from ps2stream_bench.figure import Figure
from ps2stream_bench.figures.migration.measurement import cases, measure
from ps2stream_bench.figures.migration.page import page

FIGURE = Figure(
    name="migration",
    title="Selecting and migrating cells",
    about="Time to select cells, bytes and time of migrations, and delays, for DP, GR, SI and RA.",
    cases=cases,
    measure=measure,
    page=page,
)
