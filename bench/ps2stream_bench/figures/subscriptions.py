"""Cost of a publication against the number of live subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream_bench.figure import Case, Context, Figure, Page, Scale, Verdict
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.cost_page import (
    NOT_IN_THE_PAPER,
    Knob,
    cost_drawing,
    cost_table,
    ends,
    grows_slower,
    how,
    kinds,
    memory_table,
    not_measured,
    per_kind,
    summary,
)
from ps2stream_bench.metrics import where
from ps2stream_bench.results import Column, Row
from ps2stream_bench.workloads import Corpus

_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (1_000, 3_000, 10_000),
    "small": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "paper": (10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000),
}
_KNOB = Knob("subscriptions", "live subscriptions", ",.0f")
_RESIDENT = Column("resident bytes a subscription", "resident_bytes_per_subscription", ",.0f")
_STEADY_BYTES = (
    "The index takes no more bytes a subscription when there are more subscriptions "
    "(within a quarter, as tables double)"
)


def cases(scale: Scale) -> list[Case]:
    """Return a case for Q1 and one for Q2; ``n_live`` is the largest number."""
    found = cost.cases(scale)
    sizes = " ".join(map(str, _SIZES[scale]))
    return [Case({**case.settings, "n_live": _SIZES[scale][-1], "sizes": sizes}) for case in found]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load engines of all sizes, the smallest first; the same subscriptions come and go in all of them."""
    corpus = context.corpus(case["country"], case["n_corpus"])
    sizes = sorted(map(int, case["sizes"].split()))
    contenders = {n: _contender(case, corpus, n, sizes) for n in sizes}
    yield from cost.compare(case, context, _KNOB.field, contenders)


def _contender(case: Case, corpus: Corpus, n: int, sizes: Sequence[int]) -> cost.Contender:
    changing = cost.Group(cost.n_changing_of(sizes[0]))
    # Numbers differ from size to size; places and words of what comes and goes do not.
    return cost.Contender(corpus, case["kind"], (cost.Group(n - changing.n),), changing)


def page(rows: Sequence[Row]) -> Page:
    """Say what subscriptions cost."""
    caption = "Left: the cost of a publication. Right: lists looked up, candidates in them, matches."
    return Page(
        paper=f"{NOT_IN_THE_PAPER} Its throughput is that of 5, 10 and 20 million subscriptions.",
        ours=f"{how(_told(rows))}\n\n{_OURS}",
        differs=_WHY,
        tables=[cost_table(rows, _KNOB), memory_table(rows, _KNOB, _RESIDENT)],
        drawings=[cost_drawing(rows, _KNOB, "subscriptions", caption, is_log_cost=True)],
        verdicts=[*grows_slower(rows, _KNOB, "subscriptions"), *_memory_verdicts(rows)],
    )


_OURS = """\
The number of subscriptions is that of the largest engine; the others have fewer. *Loads/s*: subscriptions
that one core parses, registers and inserts in a second; *inserts/s*: the worker's part of that. *Resident
bytes*: by how much the memory of the process grew while loading, with the registrar's and the
dispatcher's indexes; that of few subscriptions gets lost in what the process had lying about."""

_WHY = """\
Among few subscriptions most publications meet nobody: the dispatcher knows from H2 that no live
subscription of their cell has any of their terms and discards them, and what is left is the price of
reading a text. With more subscriptions fewer are discarded and more lists are read, until every term that
anybody asks for is asked for in the cell. Beyond that candidates and matches grow in proportion to the
subscriptions, and in the end the cost does, because every match has to be written. An index can only keep
the slope small; the part that it is free to save are the candidates that do not match.

The larger the index, the less of it is in the caches of the processor: each candidate that is looked at
costs a miss. That raises the time for a candidate from the smallest to the largest index."""


def _told(rows: Sequence[Row]) -> list[Row]:
    """Let the words about the measurement name all sizes, not one."""
    sizes = ends(rows, _KNOB)
    return list(rows) if sizes is None else [{**rows[0], "n_live": sizes[1]}, *rows[1:]]


def _memory_verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Compare the two largest sizes: in small ones the counters of cells, of a fixed size, prevail."""
    found = {}
    for kind in kinds(rows):
        sizes = where(summary(rows, _KNOB), kind=kind)[-2:]
        known = [row["bytes_per_subscription"] for row in sizes if row["bytes_per_subscription"]]
        if len(known) == 2:
            found[kind] = known[1] / known[0]
    if not found or set(found) != set(kinds(rows)):
        return [not_measured(_STEADY_BYTES)]
    told = per_kind(rows, lambda kind: f"{found[kind]:.2f} times")
    ours = f"from the second largest to the largest number: {told}"
    return [Verdict(_STEADY_BYTES, "", ours, all(each <= 1.25 for each in found.values()))]


FIGURE = Figure(
    name="subscriptions",
    title="Cost against the number of subscriptions",
    about="What a publication costs when more and more subscriptions are live.",
    cases=cases,
    measure=measure,
    page=page,
)
