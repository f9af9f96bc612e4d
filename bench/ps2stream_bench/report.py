"""The report: a page for each figure and a summary, made of raw rows and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from ps2stream_bench.figure import SCALES, Figure, Page, Scale, Verdict
from ps2stream_bench.metrics import distinct
from ps2stream_bench.plots import save
from ps2stream_bench.results import Column, Results, Row, table, table_of
from ps2stream_bench.runner import GENERATED, cases_of

_TARGETS = [Column("claim", "claim"), Column("ours", "ours"), Column("holds?", "holds")]
_CLAIMS = [_TARGETS[0], Column("paper", "paper"), *_TARGETS[1:]]
_PAGE = Column("figure", "figure")
_NO_PAGE = Page("", "", "", (), ())

_HOLDS = {True: "yes", False: "**no**", None: "not measured"}

_INTRODUCTION = """\
# The paper's figures, and ours

This report is made by `ps2stream-bench report` from the raw rows in [rows/](rows): every number and every
plot comes from there. Each page shows what the paper states, what we measured, and why they differ where they
do; the sentences that explain are written by hand, the verdicts are computed.

The paper ran on 32 machines of 2 cores each, with 5 to 20 million subscriptions. We have one small machine,
so two rates are given. *Measured* tuples/s are by the clock on the wall, all roles sharing one core.
*Projected* tuples/s are those of a cluster with a core for every role: tuples / processor time of the
busiest worker or dispatcher. The paper's rates correspond to the projected ones. A tuple is a publication or
an update.

A verdict is "yes" when the median says so, even where the interval in brackets (95 %, or from the least to
the greatest of fewer than six repetitions) reaches over to "no": read the interval before you rely on it.
"""


@dataclass(frozen=True, slots=True)
class Reported:
    """A figure with the rows that it is reported from, and the page that they give."""

    figure: Figure
    scale: Scale
    rows: list[Row]
    page: Page
    missing: tuple[str, ...] = ()


def reported(
    figures: Iterable[Figure],
    results: Results,
    scale: Scale | None = None,
    *,
    seed: int = 1,
    source: str = GENERATED,
) -> list[Reported]:
    """Take the rows of every figure at a scale, or at the largest one that was measured completely.

    Rows of another seed, of other publications, or of cases that the figure no longer has, do not count.
    Where no scale is complete, the largest one with any rows is reported, with what is missing.
    """
    found = []
    for figure in figures:
        tried = [
            each
            for one in ([scale] if scale else reversed(SCALES))
            for each in [_taken(figure, one, results, seed, source)]
            if each.rows
        ]
        if tried:
            chosen = next((each for each in tried if not each.missing), tried[0])
            found.append(replace(chosen, page=figure.page(chosen.rows)))
    return found


def _taken(figure: Figure, scale: Scale, results: Results, seed: int, source: str) -> Reported:
    cases = [str(case) for case in cases_of(figure, scale, source)]
    rows = [
        row
        for row in results.read(figure.name, scale)
        if row["seed"] == seed and row["source"] == source and row["case"] in cases
    ]
    measured = {row["case"] for row in rows}
    missing = tuple(case for case in cases if case not in measured)
    return Reported(figure, scale, rows, _NO_PAGE, missing)


def write(pages: Sequence[Reported], out: Path) -> None:
    """Write pages, plots and the rows they were made of; what an earlier report left of a figure goes."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    for each in pages:
        name = each.figure.name
        for old in [*(out / "images").glob(f"{name}-*.png"), *(out / "rows").glob(f"*/{name}.parquet")]:
            old.unlink()
        rows = out / "rows" / each.scale / f"{name}.parquet"
        rows.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table_of(each.rows), rows, compression="zstd")
        for drawing in each.page.drawings:
            save(drawing, out / "images" / f"{name}-{drawing.name}.png")
        (out / f"{name}.md").write_text(page_text(each))
    (out / "README.md").write_text(summary_text(pages))


def page_text(reported: Reported) -> str:
    """Lay out the page of a figure."""
    figure, page, name = reported.figure, reported.page, reported.figure.name
    parts = [f"# {figure.title}", _origin(reported), figure.about]
    if page.paper:
        parts += ["## What the paper shows", page.paper]
    parts += ["## What we measured", page.ours]
    parts += [
        f"![{each.caption}](images/{name}-{each.name}.png)\n\n*{each.caption}*" for each in page.drawings
    ]
    parts += page.tables
    claims, targets = _parted(page.verdicts)
    if claims:
        parts += ["## The paper's claims", table(map(_claim, claims), _CLAIMS)]
    if targets:
        parts += ["## Our targets", table(map(_claim, targets), _TARGETS)]
    if page.differs:
        parts += ["## Why they differ" if page.paper else "## What explains it", page.differs]
    parts += ["## Run it again", _commands(name, reported.scale, reported.rows), _raw(reported)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def summary_text(pages: Sequence[Reported]) -> str:
    """Lay out the summary: every claim with its verdict, and the list of pages."""
    claims, targets = (
        [
            {**_claim(verdict), "figure": f"[{each.figure.name}]({each.figure.name}.md)"}
            for each in pages
            for verdict in _parted(each.page.verdicts)[part]
        ]
        for part in range(2)
    )
    listed = [f"- [{each.figure.title}]({each.figure.name}.md) ({each.scale})" for each in pages]
    parts = [
        _INTRODUCTION,
        _machine([row for each in pages for row in each.rows]),
        "## The paper's claims",
        _held(claims),
        table(claims, [_PAGE, *_CLAIMS]),
        "## Our targets",
        _held(targets),
        table(targets, [_PAGE, *_TARGETS]),
        "## Pages",
        "\n".join(listed),
        "## Run it again",
        _commands("all", "small", pages[0].rows if pages else ()),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _origin(reported: Reported) -> str:
    rows = reported.rows
    days = sorted({str(moment)[:10] for moment in distinct(rows, "measured_at")})
    told = [
        f"Scale {reported.scale}",
        f"measured {_span(days)}",
        f"commit {', '.join(distinct(rows, 'commit'))}",
        f"seed {', '.join(map(str, distinct(rows, 'seed')))}",
        f"publications: {', '.join(distinct(rows, 'source'))}",
    ]
    if reported.missing:
        told.append(f"**not measured: {', '.join(reported.missing)}**")
    return f"*{'; '.join(told)}. [All figures](README.md).*"


def _machine(rows: Sequence[Row]) -> str:
    machines = dict.fromkeys(
        f"{row['processor']}, {row['n_cores']} cores, {row['memory_bytes'] / 2**30:.0f} GiB, "
        f"{row['system']}, Python {row['python']}, numba {row['numba']}, PySpark {row['pyspark']}"
        for row in rows
    )
    days = sorted({str(moment)[:10] for moment in distinct(rows, "measured_at")})
    told = (
        f"Measured {_span(days)} at commit {', '.join(distinct(rows, 'commit'))} on: {'; '.join(machines)}."
    )
    return told if rows else "Nothing was measured."


def _span(days: Sequence[str]) -> str:
    return f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days)


def _claim(verdict: Verdict) -> Row:
    return {
        "claim": verdict.claim,
        "paper": verdict.paper,
        "ours": verdict.ours,
        "holds": _HOLDS[verdict.holds],
    }


def _parted(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Part the paper's claims from our targets."""
    return [each for each in verdicts if each.paper], [each for each in verdicts if not each.paper]


def _held(claims: Sequence[Row]) -> str:
    told = [str(claim["holds"]) for claim in claims]
    n_held, n_unknown = told.count(_HOLDS[True]), told.count(_HOLDS[None])
    unknown = f"; {n_unknown} could not be judged" if n_unknown else ""
    return f"{n_held} of {len(claims)} hold{unknown}."


def _commands(name: str, scale: Scale, rows: Sequence[Row]) -> str:
    seeds = [seed for seed in distinct(rows, "seed") if seed != 1]
    chosen = f" --seed {seeds[0]}" if seeds else ""
    if rows and rows[0]["source"] != GENERATED:
        chosen += " --publications FILE"
    run, report = f"run {name} --scale {scale}{chosen}", f"report --out docs/paper{chosen}"
    return f"```sh\n./dev bench {run}\n./dev bench {report}\n```"


def _raw(reported: Reported) -> str:
    path = f"rows/{reported.scale}/{reported.figure.name}.parquet"
    return f"The {len(reported.rows):,} raw rows are in [{path}]({path})."
