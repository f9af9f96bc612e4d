"""``match_events`` as a batch job on a cluster, beside a join in Spark SQL on the same files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ps2stream_bench.cluster.batch_driver import OURS, SQL
from ps2stream_bench.cluster.bed import Hosts, UnavailableError, rows_of
from ps2stream_bench.engines import check_alike
from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import Middle, distinct, grouped, medians, middles, ratio, where
from ps2stream_bench.peers.boxes_and_clauses import clause_table
from ps2stream_bench.plots import in_thousands, lines, short
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import Corpus, publish_events, subscribe_events

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_N_LIVE: dict[Scale, int] = {"tiny": 5_000, "small": 100_000, "paper": 1_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 100_000, "paper": 200_000}
#: Publications that both ways match, and those that only ours does.
_BOTH: dict[Scale, tuple[int, ...]] = {
    "tiny": (500, 1_000),
    "small": (50_000, 100_000, 200_000),
    "paper": (200_000, 1_000_000, 5_000_000),
}
_OURS_ALONE: dict[Scale, tuple[int, ...]] = {"tiny": (2_000,), "small": (500_000,), "paper": ()}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 1, "small": 1, "paper": 1}
_MEMORY: dict[Scale, str] = {"tiny": "1g", "small": "2g", "paper": "3g"}
_N_HOSTS = 3


def cases(scale: Scale) -> list[Case]:
    """Return one case: all of it runs in one session."""
    fixed: dict[str, Setting] = {
        "kind": "q1",
        "subscriptions": _N_LIVE[scale],
        "corpus": _N_CORPUS[scale],
        "both": _told(_BOTH[scale]),
        "ours_alone": _told(_OURS_ALONE[scale]),
        "hosts": _N_HOSTS,
        "memory": _MEMORY[scale],
        "workers": 6,
        "dispatchers": 6,
        "repetitions": _N_REPETITIONS[scale],
    }
    return [Case(fixed)]


def _told(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Write files that all hosts read, and let both ways match them; they have to find the same pairs."""
    corpus = context.corpus("us", case["corpus"])
    home = context.scratch / "cluster-batch"
    home.mkdir()
    try:
        asked = _asked(case, corpus, context.seed, home)
        rows = rows_of("batch_driver", asked, Hosts(case["hosts"], 2, case["memory"], home))
    except UnavailableError as reason:
        context.say(f"    left out: {reason}")
        return [{"unavailable": str(reason)}]
    finally:
        shutil.rmtree(home)
    for turn in grouped(rows, ["n_publications", "repetition"]).values():
        check_alike(turn, "way")
    return rows


def _asked(case: Case, corpus: Corpus, seed: int, home: Path) -> dict[str, Any]:
    """Write subscriptions, their clauses, and publications; return what the driver is to do with them."""
    n = case["subscriptions"]
    subscribes = subscribe_events(corpus, case["kind"], n, seed)
    files = home / "subscriptions.parquet", home / "clauses.parquet"
    # Reading expressions is nobody's work here: the join gets clauses as rows.
    for path, found in zip(files, (subscribes, clause_table(subscribes, corpus.stop_words)), strict=True):
        pq.write_table(found, path, row_group_size=100_000, compression="zstd")
    both, alone = (list(map(int, case[name].split())) for name in ("both", "ours_alone"))
    at_once = min(both)
    publications = []
    for number in range(max(both + alone) // at_once):
        path = home / f"publications-{number:04}.parquet"
        events = publish_events(corpus, at_once, n + 1 + number * at_once, seed + number)
        pq.write_table(events, path, row_group_size=100_000, compression="zstd")
        publications.append(str(path))
    # A first turn that does not count starts processes, and loads what Java has to load.
    turns = [(min(both), [OURS, SQL], -1)]
    for repetition in range(case["repetitions"]):
        turns += [(each, [OURS, SQL], repetition) for each in both]
        turns += [(each, [OURS], repetition) for each in alone]
    return {
        "subscriptions": str(files[0]),
        "clauses": str(files[1]),
        "stop_words": corpus.stop_words,
        "workers": case["workers"],
        "dispatchers": case["dispatchers"],
        "executor_memory": case["memory"],
        "driver_memory": case["memory"],
        "seed": seed,
        "turns": [
            {
                "n": each,
                "ways": ways,
                "repetition": repetition,
                "publications": publications[: each // at_once],
            }
            for each, ways, repetition in turns
        ],
    }


_COLUMNS = [
    Column("publications", "n_publications", ",.0f"),
    Column("way", "way"),
    Column("seconds", "wall_s", ",.1f"),
    Column("publications/s", "publications_per_s", ",.0f"),
    Column("processor time, s", "cpu_s", ",.1f"),
    Column("matches", "n_matches", ",.0f"),
    Column("to the store, MiB", "store_to_mib", ",.0f"),
    Column("from it, MiB", "store_from_mib", ",.0f"),
    Column("to hosts, MiB", "hosts_to_mib", ",.0f"),
]


def page(rows: Sequence[Row]) -> Page:
    """Compare both ways where both ran, and show how ours grows."""
    counted = [_derived(row) for row in rows if row.get("repetition") is not None and row["repetition"] >= 0]
    lines_ = sorted(
        medians(counted, ["n_publications", "way"]), key=lambda row: (row["n_publications"], row["way"])
    )
    left_out = [f"\n\nLeft out: {reason}." for reason in distinct(rows, "unavailable")]
    return Page(
        paper="",
        ours=_OURS.format(subscriptions=rows[0]["subscriptions"], hosts=rows[0]["hosts"]) + "".join(left_out),
        differs=_DIFFERS if counted else "",
        tables=[table(lines_, _COLUMNS)] if counted else [],
        drawings=[Drawing("seconds", _CAPTION, lambda canvas: _draw(canvas, counted))] if counted else [],
        verdicts=[_faster(counted, n) for n in sorted(distinct(where(counted, way=SQL), "n_publications"))],
    )


_CAPTION = "Seconds of a whole job over the number of publications (both axes logarithmic)."

_OURS = """\
Both ways run in one session on {hosts} hosts of the test bed, in turns, on the same Parquet files, which
all hosts can read: {subscriptions:,} subscriptions of Q1, and publications. The clock runs from the call
until all matches are counted, and everything is on it: *match_events* makes a plan, loads the
subscriptions, writes its matches to the store, an S3 server, and reads them to count them; *Spark SQL*
explodes clauses and publications to (cell, term) and joins them, and writes nothing. Expressions are parsed
for it beforehand. Both count by the same query, which sums a hash of every pair, too: number and sum have
to be the same, or the case fails. A first turn of each way is not shown.

The hosts share the cores of one machine, with the store and the driver; seconds are by the clock on the
wall, processor time is that of all processes of all hosts, the driver and the store. Where a number of
publications has only one line, the join was not run, to keep the run short."""

_DIFFERS = """\
Loading the subscriptions is a fixed cost of both, in other forms: ours are compiled, logged and
indexed; the join explodes, counts and shuffles clauses. A publication then costs *match_events* a look-up
in an index and the writing of its matches; it costs the join a row for each of its terms, which are
shuffled and sorted."""


def _derived(row: Row) -> Row:
    mib = {f"{name}_mib": row[f"{name}_bytes"] / 2**20 for name in ("store_to", "store_from", "hosts_to")}
    return {**row, **mib, "publications_per_s": row["n_publications"] / row["wall_s"]}


def _faster(rows: Sequence[Row], n: int) -> Verdict:
    gain = ratio(where(rows, n_publications=n), "wall_s", {"way": SQL}, {"way": OURS})
    claim = f"match_events is faster than the join in Spark SQL, {short(n)} publications"
    return Verdict(claim, "", f"{gain:.1f} times", gain.median > 1 if gain.n else None)


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    series: dict[str, dict[float, Middle]] = {}
    for (way, n), each in middles(rows, ["way", "n_publications"], "wall_s").items():
        series.setdefault(way, {})[float(n)] = each
    lines(axes, series)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("publications")
    axes.set_ylabel("seconds")
    in_thousands(axes, "x")
    axes.legend()


FIGURE = Figure(
    name="cluster-batch",
    title="A batch job on a cluster",
    about="`match_events` over files, and a join in Spark SQL over the same files, in one session on three "
    "hosts.",
    cases=cases,
    measure=measure,
    page=page,
)
