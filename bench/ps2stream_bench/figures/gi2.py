"""What GI2's care is worth: publications/s against a naive version of the same idea."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ps2stream.config import Settings
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Verdict
from ps2stream_bench.metrics import distinct, medians, middle, middles, ratio, where
from ps2stream_bench.micro.gi2 import Contender, take_turns
from ps2stream_bench.plots import bars, in_thousands, short
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import draw_arrays

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: Times the naive version's rate that GI2 has to reach, its bytes a subscription, inserts/s and deletes/s.
_TARGET = 3.0
_BYTES = 120.0
_UPDATES_PER_S = 300_000.0

_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (2_000,),
    "small": (100_000, 1_000_000),
    "paper": (1_000_000, 5_000_000),
}
#: From this many subscriptions on the targets hold.
_LARGE = 1_000_000
_N_PROBES: dict[Scale, int] = {"tiny": 500, "small": 20_000, "paper": 20_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 200_000, "paper": 200_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 2, "small": 3, "paper": 3}
#: Coarse, the paper's granularity, and the finest that the naive version has the memory for.
_NAIVE_BITS = (6, 8, 10)

_COLUMNS = [
    Column("workload", "kind"),
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("index", "index"),
    Column("inserts/s", "inserts_per_s", ",.0f"),
    Column("ends/s", "ends_per_s", ",.0f"),
    Column("deletes/s", "deletes_per_s", ",.0f"),
    Column("publications/s", "publications_per_s", ",.0f"),
    Column("candidates", "candidates_per_publication", ",.1f"),
    Column("matches", "matches_per_publication", ",.1f"),
    Column("postings a subscription", "postings_per_subscription", ".1f"),
    Column("bytes a subscription", "bytes_per_subscription", ",.0f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each kind and number of subscriptions."""
    fixed = {
        "publications": _N_PROBES[scale],
        "corpus": _N_CORPUS[scale],
        "repetitions": _N_REPETITIONS[scale],
    }
    return [Case({"kind": kind, "subscriptions": n, **fixed}) for kind in ("q1", "q2") for n in _SIZES[scale]]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Let GI2 and the naive version on several grids take turns on the same arrays."""
    corpus = context.corpus("us", case["corpus"])
    sizes = (case["subscriptions"], case["publications"])
    arrays = draw_arrays(corpus, case["kind"], *sizes, context.seed)
    settings = Settings()
    contenders = [Contender("GI2", settings.grid_bits, settings.max_cells)]
    contenders += [Contender("naive", bits, 0) for bits in _NAIVE_BITS]
    turns = take_turns(contenders, arrays, case["repetitions"], context.seed)
    for repetition, contender, measured in turns:
        index = contender.name if contender.max_cells else f"naive, {contender.bits} bits"
        yield {"repetition": repetition, "index": index, **measured._asdict()}


def page(rows: Sequence[Row]) -> Page:
    """Compare GI2 with the best of the naive ones."""
    verdicts = []
    for kind in distinct(rows, "kind"):
        for n in sorted(distinct(where(rows, kind=kind), "subscriptions")):
            # On small indexes there is less to win, and fixed parts weigh more.
            if n < _LARGE and n < max(distinct(where(rows, kind=kind), "subscriptions")):
                continue
            own = where(rows, kind=kind, subscriptions=n)
            naive = [row for row in medians(own, ["index"]) if row["index"] != "GI2"]
            best = max(naive, key=lambda row: float(row["publications_per_s"]))["index"]
            gain = ratio(own, "publications_per_s", {"index": "GI2"}, {"index": best})
            verdicts.append(
                Verdict(
                    f"GI2 matches {_TARGET:g} times the publications/s of a naive index, "
                    f"{kind.upper()}, {n:,} subscriptions",
                    "",
                    f"{gain:.1f} times the best naive one ({best})",
                    gain.median >= _TARGET,
                )
            )
            verdicts += _sizes_and_updates(where(own, index="GI2"), f"{kind.upper()}, {n:,} subscriptions")
    lines = sorted(
        medians(rows, ["kind", "subscriptions", "index"]),
        key=lambda row: (row["kind"], row["subscriptions"], row["index"]),
    )
    return Page(
        paper="",
        ours="One thread fills an index, matches publications, ends a third of the subscriptions and "
        "compacts what is left, all in processor time; *deletes/s* counts the compaction in. The naive "
        "version has one grid, a hash table of (cell, term) and linked lists; it finds the same matches and "
        "is tried on three grids.",
        differs="A candidate costs a random access in both. GI2 decides on most of them by what lies in the "
        "posting itself (bounds within the cell, a fingerprint of the clause's second term), reads "
        "postings of a list one after the other, and posts large regions on coarser levels instead of "
        "in hundreds of cells. Publications are matched a block at a time, and what the next step reads is "
        "fetched ahead, so that the waiting for memory overlaps.",
        tables=[table(lines, _COLUMNS)],
        drawings=[
            Drawing("rate", "Publications/s of one core, by index.", lambda canvas: _draw(canvas, rows))
        ],
        verdicts=verdicts,
    )


def _sizes_and_updates(rows: Sequence[Row], where_: str) -> list[Verdict]:
    targets = [
        (f"GI2 takes at most {_BYTES:g} bytes a subscription, {where_}", "bytes_per_subscription", _BYTES),
        (f"GI2 inserts {_UPDATES_PER_S:,.0f} subscriptions/s, {where_}", "inserts_per_s", _UPDATES_PER_S),
        (f"GI2 deletes as many, compaction included, {where_}", "deletes_per_s", _UPDATES_PER_S),
    ]
    verdicts = []
    for claim, name, target in targets:
        found = middle([row[name] for row in rows])
        holds = found.median <= target if name == "bytes_per_subscription" else found.median >= target
        verdicts.append(Verdict(claim, "", f"{found:,.0f}", holds))
    return verdicts


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    found = middles(
        [{**row, "group": f"{row['kind'].upper()}, {short(row['subscriptions'])}"} for row in rows],
        ["group", "index"],
        "publications_per_s",
    )
    axes = canvas.subplots()
    groups = sorted({group for group, _ in found})
    bars(axes, groups, sorted({index for _, index in found}), found)
    axes.set_ylabel("publications/s")
    in_thousands(axes)
    axes.legend()


FIGURE = Figure(
    name="gi2",
    title="GI2 against a naive index",
    about="How many publications one core matches with GI2, and with a plain version of the same idea.",
    cases=cases,
    measure=measure,
    page=page,
)
