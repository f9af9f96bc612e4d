"""Cost of a publication against the granularity of the worker's grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream.config import Settings
from ps2stream_bench.figure import Case, Context, Figure, Page, Verdict
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.cost_page import (
    NOT_IN_THE_PAPER,
    Knob,
    cost_drawing,
    cost_table,
    how,
    kinds,
    memory_table,
    not_measured,
    per_kind,
)
from ps2stream_bench.metrics import medians, ratio, where
from ps2stream_bench.results import Row

_BITS = range(4, 13)
_DEFAULT = Settings().grid_bits
#: By so much the default may miss the best granularity of a workload.
_TOLERATED = 1.1
_KNOB = Knob("grid_bits", "bits of a side of the grid", ".0f", is_log=False)


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load engines that differ in the grid of their GI2 alone."""
    corpus = context.corpus(case["country"], case["n_corpus"])
    contenders = {bits: cost.contender(case, corpus, grid_bits=bits) for bits in _BITS}
    yield from cost.compare(case, context, _KNOB.field, contenders, alike=True)


def page(rows: Sequence[Row]) -> Page:
    """Say which granularity suits."""
    caption = "Left: the cost of a publication. Right: lists looked up, candidates in them, matches."
    return Page(
        paper=f"{NOT_IN_THE_PAPER} Its workers have a GI2 of 2^6 by 2^6 cells with all algorithms.",
        ours=f"{how(rows)}\n\n{_OURS}",
        differs=_WHY,
        tables=[cost_table(rows, _KNOB), memory_table(rows, _KNOB)],
        drawings=[cost_drawing(rows, _KNOB, "granularity", caption)],
        verdicts=_verdicts(rows),
    )


_OURS = f"""\
A grid of *b* bits has 2^b columns and rows over the whole world; the default is {_DEFAULT} bits. All
engines process the same events and deliver the same matches."""

_WHY = """\
A finer grid makes lists shorter, and a subscription is posted in more cells. In a GI2 that looks at the
subscription of every candidate, that trade decides. In ours a posting carries the bounds of its region
within the cell: a candidate whose region does not hold the publication costs a few comparisons in a row
of memory that is being read anyway. So a coarse grid loses little in time, and a fine one wins little,
while postings, memory and the time to insert grow with every bit until a region touches more than 16
cells: then it goes to a coarser level, and the grid gets no finer for it, only lists are
looked up on one more level.

Our grid covers the world, as we do not ask where the data is before it comes; the paper does not say what
its grid covers. Over the US alone, 6 bits would be cells of about the size that 8 or 9 bits give over the
world."""


def _verdicts(rows: Sequence[Row]) -> list[Verdict]:
    claim = f"The default granularity costs at most {_TOLERATED - 1:.0%} more than the best one"
    runs = where(rows, phase="run")
    to_best = {}
    for kind in kinds(runs):
        found = {row[_KNOB.field]: row["cost_us"] for row in medians(where(runs, kind=kind), [_KNOB.field])}
        if _DEFAULT not in found or len(found) < 2:
            return [not_measured(claim)]
        best = min(found, key=lambda bits: found[bits])
        to_best[kind] = (
            int(best),
            ratio(where(runs, kind=kind), "cost_us", {_KNOB.field: _DEFAULT}, {_KNOB.field: best}),
        )
    if not to_best:
        return [not_measured(claim)]
    return [
        Verdict(
            claim=claim,
            paper="",
            ours=per_kind(
                runs, lambda kind: f"{to_best[kind][1]:.2f} times the cost with {to_best[kind][0]} bits"
            ),
            holds=all(each.median <= _TOLERATED for _, each in to_best.values()),
        )
    ]


FIGURE = Figure(
    name="granularity",
    title="Cost against the granularity of GI2",
    about="What a publication costs with 2^4 to 2^12 columns and rows of the worker's grid.",
    cases=cost.cases,
    measure=measure,
    page=page,
)
