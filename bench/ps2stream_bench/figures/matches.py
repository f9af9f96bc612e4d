"""Cost of a publication against the matches it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Verdict
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.cost_page import (
    NOT_IN_THE_PAPER,
    Knob,
    cost_table,
    how,
    kinds,
    not_measured,
    per_kind,
    summary,
)
from ps2stream_bench.metrics import where
from ps2stream_bench.plots import lines
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import N_STOP_WORDS, Shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: The share of the live subscriptions that are broad.
_SHARES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5)
#: One keyword out of this many, the most frequent ones that are no stop words, and a wide region around it.
_N_FREQUENT = 50
_SIDE_KM = 100.0
_BROAD = Shape(keywords=(1, 1), side_km=(_SIDE_KM, _SIDE_KM), rare=False)
_KNOB = Knob("broad_share", "broad subscriptions", ".0%", is_log=False)
#: What the line leaves unexplained of how costs differ.
_TOLERATED = 0.05


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load engines with more and more subscriptions that match often."""
    corpus = context.corpus(case["country"], case["n_corpus"])
    contenders = {share: _contender(case, cost.contender(case, corpus), share) for share in _SHARES}
    yield from cost.compare(case, context, _KNOB.field, contenders)


def _contender(case: Case, plain: cost.Contender, share: float) -> cost.Contender:
    n_broad, n_words = round(share * case["n_live"]), N_STOP_WORDS + _N_FREQUENT
    corpus = replace(plain.corpus, words=plain.corpus.words[:n_words], counts=plain.corpus.counts[:n_words])
    staying = (cost.Group(n_broad, _BROAD, corpus), cost.Group(plain.n_staying - n_broad))
    return cost.Contender(plain.corpus, plain.kind, staying, plain.changing)


class Fit(NamedTuple):
    """cost = fixed + per match, by least squares; ``unexplained`` is the share of the variance it misses."""

    fixed_us: float
    per_match_us: float
    unexplained: float

    def __str__(self) -> str:
        per_match_ns = 1000 * self.per_match_us
        return f"{self.fixed_us:.1f} us and {per_match_ns:.0f} ns a match, {self.unexplained:.1%} unexplained"


def fit_of(rows: Sequence[Row], kind: str) -> Fit | None:
    """Fit a line to the medians of a workload; None where they do not tell one."""
    found = where(summary(rows, _KNOB), kind=kind)
    xs = np.array([row["matches_per_publication"] for row in found])
    ys = np.array([row["cost_us"] for row in found])
    if len(found) < 3 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return None
    per_match, fixed = np.polyfit(xs, ys, 1)
    missed = ys - (fixed + per_match * xs)
    return Fit(float(fixed), float(per_match), float(missed.var() / ys.var()))


def page(rows: Sequence[Row]) -> Page:
    """Say what a match costs."""
    fits = {kind: fit for kind in kinds(rows) for fit in [fit_of(rows, kind)] if fit is not None}
    fitted = [{"kind": kind.upper(), **fit._asdict()} for kind, fit in fits.items()]
    columns = [
        Column("workload", "kind"),
        Column("fixed, us", "fixed_us", ".2f"),
        Column("per match, us", "per_match_us", ".3f"),
        Column("left unexplained", "unexplained", ".1%"),
    ]
    return Page(
        paper=NOT_IN_THE_PAPER,
        ours=f"{how(rows)}\n\n{_OURS}",
        differs=_WHY,
        tables=[cost_table(rows, _KNOB), *([table(fitted, columns)] if fitted else [])],
        drawings=[_drawing(rows, fits)],
        verdicts=_verdicts(rows, fits),
    )


_OURS = f"""\
The knob is the share of *broad* subscriptions among those live: one keyword, out of the {_N_FREQUENT}
most frequent words that are no stop words, in a square with sides of {_SIDE_KM:g} km. They take the place
of others, so that there are as many as before, and what comes and goes is the same for all."""

_WHY = """\
Beyond what any publication costs, a match costs a posting to read, a record to verify, and a row of
output with both ids. Reading and verifying are sequential in the postings and one cache miss in the
records; the rows are written column by column by the merger. The line through the medians gives both
parts: where it meets the axis, and its slope. With many matches all other work is lost in their number: a
system that delivers hundreds of matches a publication is bound by writing them, whatever its index. That
is why all figures of this suite leave out stop words."""


def _drawing(rows: Sequence[Row], fits: dict[str, Fit]) -> Drawing:
    found = summary(rows, _KNOB)

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        series = {
            kind.upper(): {row["matches_per_publication"]: row["cost"] for row in where(found, kind=kind)}
            for kind in kinds(found)
        }
        lines(axes, series)
        for kind, fit in fits.items():
            ends = np.array([min(series[kind.upper()]), max(series[kind.upper()])])
            axes.plot(ends, fit.fixed_us + fit.per_match_us * ends, color="0.6", linestyle=":", zorder=1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("matches a publication")
        axes.set_ylabel("us of one core a publication")
        if series:
            axes.legend()

    caption = "The cost of a publication over its matches; dotted: the line fitted to it."
    return Drawing("matches", caption, draw, size=(6.0, 3.4))


def _verdicts(rows: Sequence[Row], fits: dict[str, Fit]) -> list[Verdict]:
    claim = (
        "A publication costs a fixed part and the same for every match "
        f"(a line leaves at most {_TOLERATED:.0%} of the variance unexplained)"
    )
    if not fits or set(fits) != set(kinds(rows)):
        return [not_measured(claim)]
    return [
        Verdict(
            claim=claim,
            paper="",
            ours=per_kind(rows, lambda kind: str(fits[kind])),
            holds=all(fit.unexplained <= _TOLERATED for fit in fits.values()),
        )
    ]


FIGURE = Figure(
    name="matches",
    title="Cost against matches per publication",
    about="What a publication costs when more and more subscriptions match it.",
    cases=cost.cases,
    measure=measure,
    page=page,
)
