"""Cost of a publication against the keywords of a subscription."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream_bench.figure import Case, Context, Figure, Page
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.cost_page import (
    NOT_IN_THE_PAPER,
    Knob,
    cost_drawing,
    cost_table,
    grows_slower,
    how,
    memory_table,
)
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import Shape

_N_KEYWORDS = range(1, 9)
_KNOB = Knob("keywords", "keywords a subscription", ".0f", is_log=False)


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load engines whose subscriptions have 1 to 8 keywords."""
    corpus = context.corpus(case["country"], case["n_corpus"])
    contenders = {n: cost.contender(case, corpus, Shape(keywords=(n, n))) for n in _N_KEYWORDS}
    yield from cost.compare(case, context, _KNOB.field, contenders)


def page(rows: Sequence[Row]) -> Page:
    """Say what keywords cost."""
    caption = "Left: the cost of a publication. Right: lists looked up, candidates in them, matches."
    return Page(
        paper=f"{NOT_IN_THE_PAPER} Its subscriptions have 1 to 3 keywords.",
        ours=f"{how(rows)}\n\n{_OURS}",
        differs=_WHY,
        tables=[cost_table(rows, _KNOB), memory_table(rows, _KNOB)],
        drawings=[cost_drawing(rows, _KNOB, "keywords", caption)],
        verdicts=grows_slower(rows, _KNOB, "keywords"),
    )


_OURS = """\
All subscriptions of an engine have the same number of keywords; half of them join them by AND, half by
OR."""

_WHY = """\
A subscription is posted under one keyword of each clause, the rarest. One with AND is a single clause:
more keywords only make its rarest one rarer, so it is a candidate less often, and hardly ever a match.
One with OR has as many clauses as keywords and is posted under each: it costs that many times the memory
and the time to insert, and matches that many times as often. So what grows with keywords is the OR half:
its postings, its candidates and its matches.

Q2 has one rare keyword. With a single keyword that is all it has, and next to nothing in a text ever
leads to it: the dispatcher can discard most publications. From the second keyword on, OR brings in
frequent words, and the regions of Q2 are larger than those of Q1."""


FIGURE = Figure(
    name="keywords",
    title="Cost against keywords per subscription",
    about="What a publication costs when subscriptions have 1 to 8 keywords.",
    cases=cost.cases,
    measure=measure,
    page=page,
)
