"""How far matching is from what memory allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ps2stream.config import Settings
from ps2stream.matching.index import GI2
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale
from ps2stream_bench.metrics import medians, middles
from ps2stream_bench.micro.gi2 import Contender, probe_costs
from ps2stream_bench.micro.memory_access import memory_costs
from ps2stream_bench.plots import bars, short
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import draw_arrays

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (2_000,),
    "small": (100_000, 1_000_000),
    "paper": (100_000, 1_000_000, 5_000_000),
}
_N_PROBES: dict[Scale, int] = {"tiny": 500, "small": 20_000, "paper": 20_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 200_000, "paper": 200_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 2, "small": 5, "paper": 5}
_N_ACCESSES: dict[Scale, int] = {"tiny": 10_000, "small": 2_000_000, "paper": 2_000_000}
_LINE = 64

_COLUMNS = [
    Column("workload", "kind"),
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("index, MB", "index_mb", ",.0f"),
    Column("line, waited for, ns", "waited_ns", ".0f"),
    Column("line, prefetched, ns", "prefetched_ns", ".1f"),
    Column("line, in a row, ns", "in_a_row_ns", ".1f"),
    Column("look-ups", "lookups_per_publication", ".1f"),
    Column("candidates", "candidates_per_publication", ".1f"),
    Column("matches", "matches_per_publication", ".1f"),
    Column("lines", "lines_per_publication", ".1f"),
    Column("if all were waited for, us", "waiting_us", ".2f"),
    Column("bound, us", "bound_us", ".2f"),
    Column("measured, us", "measured_us", ".2f"),
    Column("measured / bound", "over_bound", ".1f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each kind and number of subscriptions."""
    fixed = {
        "publications": _N_PROBES[scale],
        "corpus": _N_CORPUS[scale],
        "repetitions": _N_REPETITIONS[scale],
        "accesses": _N_ACCESSES[scale],
    }
    return [Case({"kind": kind, "subscriptions": n, **fixed}) for kind in ("q1", "q2") for n in _SIZES[scale]]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Match, then read an array of the index's size, in turns."""
    corpus = context.corpus("us", case["corpus"])
    sizes = (case["subscriptions"], case["publications"])
    arrays = draw_arrays(corpus, case["kind"], *sizes, context.seed)
    settings = Settings()
    index = Contender("GI2", settings.grid_bits, settings.max_cells).fill(arrays.subscriptions)
    assert isinstance(index, GI2)
    n_bytes = index.counts().n_bytes
    for repetition in range(case["repetitions"]):
        costs = probe_costs(index, arrays.probes)
        memory = memory_costs(n_bytes, case["accesses"], context.seed)
        # The least that has to be read: a line of the table a look-up, postings in a row, a record a match.
        n_record_bytes = index.record_bytes()
        n_random = costs.lookups + costs.matches * (1 + (n_record_bytes - 8) / _LINE)
        n_in_a_row = costs.candidates * 8 / _LINE
        bound_us = (n_random * memory.prefetched_ns + n_in_a_row * memory.in_a_row_ns) / 1000
        yield {
            "repetition": repetition,
            "index_mb": n_bytes / 1e6,
            **memory._asdict(),
            "lookups_per_publication": costs.lookups,
            "candidates_per_publication": costs.candidates,
            "matches_per_publication": costs.matches,
            "lines_per_publication": n_random + n_in_a_row,
            "waiting_us": (n_random + n_in_a_row) * memory.waited_ns / 1000,
            "bound_us": bound_us,
            "measured_us": costs.seconds * 1e6,
            "over_bound": costs.seconds * 1e6 / bound_us,
        }


def page(rows: Sequence[Row]) -> Page:
    """Set what a publication costs beside what its memory costs."""
    lines = sorted(
        medians(rows, ["kind", "subscriptions"]), key=lambda row: (row["kind"], row["subscriptions"])
    )
    return Page(
        paper="",
        ours="One thread matches publications with GI2 and, in turns, reads single cache lines of an array "
        "as large as the index: at random addresses, each waited for before the next is known; the same with "
        "each line prefetched; and all lines in a row. *Lines* is the least that a publication has "
        "to read: a line of the table for each look-up, the postings of its lists, the record of each "
        "match. *Bound* is what these lines cost if all are prefetched in time and nothing else takes any "
        "time.",
        differs="In a large index the waiting alone, without prefetching, would take longer than all of "
        "matching does. What is left above the bound is work: hashing and comparing for each look-up, some "
        "ten instructions a candidate, and for each match its region, its seqs and its terms. An index that "
        "fits into the cache has a low bound and is limited by this work, a large one comes closer to what "
        "memory allows.",
        tables=[table(lines, _COLUMNS)],
        drawings=[
            Drawing(
                "bound", "A publication, measured and by memory alone.", lambda canvas: _draw(canvas, rows)
            )
        ],
        verdicts=[],
    )


_BARS = {"waiting_us": "lines waited for", "measured_us": "measured", "bound_us": "lines prefetched"}


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    told = [
        {"group": f"{row['kind'].upper()}, {short(row['subscriptions'])}", "what": name, "us": row[field]}
        for row in rows
        for field, name in _BARS.items()
    ]
    found = middles(told, ["group", "what"], "us")
    axes = canvas.subplots()
    bars(axes, sorted({group for group, _ in found}), list(_BARS.values()), found)
    axes.set_ylabel("microseconds a publication")
    axes.set_yscale("log")
    axes.legend()


FIGURE = Figure(
    name="limits",
    title="How far matching is from what memory allows",
    about="What a publication costs, and what the cache lines that it needs would cost alone.",
    cases=cases,
    measure=measure,
    page=page,
)
