"""Cost of a publication against the size of regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream_bench.figure import Case, Context, Figure, Page, Verdict
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.cost_page import (
    NOT_IN_THE_PAPER,
    Knob,
    cost_drawing,
    cost_table,
    ends,
    growth,
    how,
    kinds,
    memory_table,
    not_measured,
    per_kind,
)
from ps2stream_bench.results import Column, Row
from ps2stream_bench.workloads import Shape

_SIDES_KM = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0)
_KNOB = Knob("side_km", "side of a region, km", "g")
_PER_MATCH = Column("worker, us a match", "worker_us_per_match", ".2f")


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load engines whose regions have sides of 1 to 500 km."""
    corpus = context.corpus(case["country"], case["n_corpus"])
    contenders = {side: cost.contender(case, corpus, Shape(side_km=(side, side))) for side in _SIDES_KM}
    for row in cost.compare(case, context, _KNOB.field, contenders):
        if row.get("matches_per_publication"):
            row["worker_us_per_match"] = row["worker_us"] / row["matches_per_publication"]
        yield row


def page(rows: Sequence[Row]) -> Page:
    """Say what large regions cost."""
    caption = "Left: the cost of a publication. Right: lists looked up, candidates in them, matches."
    return Page(
        paper=f"{NOT_IN_THE_PAPER} Its regions have sides of 1 to 50 km (Q1) and of 1 to 100 km (Q2).",
        ours=f"{how(rows)}\n\nAll regions of an engine have the same side; they are centred on publications.",
        differs=_WHY,
        tables=[cost_table(rows, _KNOB, _PER_MATCH), memory_table(rows, _KNOB)],
        drawings=[cost_drawing(rows, _KNOB, "region-size", caption, is_log_cost=True)],
        verdicts=_verdicts(rows),
    )


_WHY = """\
A region smaller than a cell of GI2 (1.4 by 0.7 degrees at the default granularity) is posted in one to
four cells, and a candidate wherever a publication falls into one of them, inside the region or not. What
is outside is rejected by the bounds that a posting carries, without a look at the subscription; that
is why small regions, with few matches among their candidates, are cheap all the same. As regions grow to
the size of a cell and beyond, candidates become matches. A region that would touch more than 16 cells is
posted on a coarser level of the grid, so that the postings of a subscription stop growing; each level in
use costs one more look-up for each term.

What does go on growing is the registrar's part: H2 counts for every cell of the routing grid which terms
are asked for there, and the cells that a region touches grow with its area. So large regions are paid for
when subscriptions come and go, in the one cell that has no coarser level. Whoever has many of them should
route on a coarser grid."""


def _verdicts(rows: Sequence[Row]) -> list[Verdict]:
    claim = "The cost of a publication grows slower with the size of regions than its matches do"
    if ends(rows, _KNOB) is None:
        return [not_measured(claim)]
    cost_grown = {kind: growth(rows, _KNOB, kind) for kind in kinds(rows)}
    found_grown = {kind: growth(rows, _KNOB, kind, "matches_per_publication") for kind in kinds(rows)}
    if not all(each.n for each in found_grown.values()):
        return [not_measured(claim, "the smallest regions match nothing")]
    return [
        Verdict(
            claim=claim,
            paper="",
            ours=per_kind(
                rows, lambda kind: f"cost {cost_grown[kind]:.1f}-fold, matches {found_grown[kind]:.1f}-fold"
            ),
            holds=all(cost_grown[kind].median < found_grown[kind].median for kind in kinds(rows)),
        )
    ]


FIGURE = Figure(
    name="region-size",
    title="Cost against the size of regions",
    about="What a publication costs when regions have sides of 1 to 500 km.",
    cases=cost.cases,
    measure=measure,
    page=page,
)
