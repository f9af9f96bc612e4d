"""What campaigns of faults have found, by engine: from the lines that they have written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Verdict
from ps2stream_bench.metrics import Middle, distinct, grouped, where
from ps2stream_bench.plots import bars
from ps2stream_bench.results import Column, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: Campaigns take many minutes on a cluster; their lines are part of the documentation.
CAMPAIGNS = Path(__file__).parents[3] / "docs" / "faults.jsonl"


def cases(scale: Scale) -> list[Case]:
    """Return one case: whatever has been written."""
    return [Case({"campaigns": "docs/faults.jsonl"})]


def measure(case: Case, context: Context, path: Path = CAMPAIGNS) -> Iterator[Row]:
    """Give a row for each fault of each campaign."""
    if not path.exists():
        yield {"unavailable": f"{case['campaigns']} is not here: an installed package has no documentation"}
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        campaign = json.loads(line)
        about = {
            "engine": campaign.get("engine", "microbatch"),
            "may_repeat": campaign.get("delivery") == "at-least-once",
            "feed": campaign.get("source") or _feed(campaign),
            "line": number,  # a seed may have been run again
            "campaign": campaign["seed"],
            "mended": campaign.get("mended", ""),
            **{name: campaign[name] for name in ("n_events", "n_matches", "n_lost", "n_doubled", "n_wrong")},
        }
        for fault in campaign["faults"]:
            yield {**about, "fault": fault["kind"], "to_go_on_s": float(fault["to_go_on_s"])}


def _feed(campaign: dict[str, Any]) -> str:
    words = ["topics", f"{campaign['order']} order", campaign["where"], campaign.get("delivery", "")]
    return ", ".join(filter(None, words))


_KINDS = [
    Column("engine", "engine"),
    Column("fault", "fault"),
    Column("times", "n", ".0f"),
    Column("seconds to go on: median", "median_s", ".1f"),
    Column("worst", "worst_s", ".1f"),
]
_RUNS = [
    Column("engine", "engine"),
    Column("feed", "feed"),
    Column("campaigns", "n_campaigns", ".0f"),
    Column("events", "n_events", ",.0f"),
    Column("matches", "n_matches", ",.0f"),
    Column("lost", "n_lost", ".0f"),
    Column("doubled", "n_doubled", ".0f"),
    Column("wrong", "n_wrong", ".0f"),
]

_OURS = """\
A campaign runs a stream on one host, or on three of the [test bed](../testing.md#a-cluster-on-one-machine),
makes one fault after the other, and compares all that was delivered with the oracle. *To go on* is from the
fault until something was delivered that came after it; of what is cut off or away for a while that time is
part of it. All hosts share the cores of one machine. The rows are those of
[docs/faults.jsonl](../faults.jsonl). A campaign that found an error stays among them, with a word on how it
was mended; what is judged are the others. With `--delivery at-least-once` a match may come again: that is
counted, and nothing wrong."""


def page(rows: Sequence[Row]) -> Page:
    """Show how often each kind of fault was made, and how long going on took."""
    found = [row for row in rows if row.get("fault")]
    left_out = [f"\n\nLeft out: {reason}." for reason in distinct(rows, "unavailable")]
    drawings = [Drawing("to-go-on", _CAPTION, lambda canvas: _draw(canvas, found))] if found else []
    tables = [table(_by_kind(found), _KINDS), table(_by_engine(found), _RUNS)] if found else []
    return Page(
        paper="",
        ours=_OURS + "".join(left_out),
        differs="",
        tables=tables,
        drawings=drawings,
        verdicts=list(_verdicts(found)),
    )


_CAPTION = "Seconds until a stream goes on after a fault: the median, and from the least to the worst."


def _seconds(rows: Sequence[Row]) -> Middle:
    ordered = sorted(row["to_go_on_s"] for row in rows)
    half = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return Middle(half, ordered[0], ordered[-1], len(ordered))


def _by_kind(rows: Sequence[Row]) -> Iterator[Row]:
    for (engine, fault), group in sorted(grouped(rows, ["engine", "fault"]).items()):
        each = _seconds(group)
        yield {"engine": engine, "fault": fault, "n": each.n, "median_s": each.median, "worst_s": each.high}


def _campaigns(rows: Sequence[Row]) -> list[Row]:
    return [group[0] for group in grouped(rows, ["engine", "feed", "line", "campaign"]).values()]


def _by_engine(rows: Sequence[Row]) -> Iterator[Row]:
    counts = ("n_events", "n_matches", "n_lost", "n_doubled", "n_wrong")
    for (engine, feed), group in sorted(grouped(_campaigns(rows), ["engine", "feed"]).items()):
        totals = {name: sum(row[name] for row in group) for name in counts}
        yield {"engine": engine, "feed": feed, "n_campaigns": len(group), **totals}


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    for engine in distinct(rows, "engine"):
        own = where(rows, engine=engine)
        judged = [row for row in own if not row.get("mended")]
        campaigns = _campaigns(judged)
        n_bad = _n_bad(campaigns)
        claim = f"{engine}: whatever is killed, cut off or paused, nothing is lost, doubled or wrong"
        told = f"{n_bad} of {sum(row['n_matches'] for row in campaigns):,} matches after {len(judged)} faults"
        if found := _campaigns([row for row in own if row.get("mended")]):
            told += f"; {len(found)} campaigns before found {_n_bad(found)}, mended since"
        yield Verdict(claim, "", told, bool(campaigns) and n_bad == 0)


def _n_bad(campaigns: Sequence[Row]) -> int:
    n_doubled: int = sum(row["n_doubled"] for row in campaigns if not row.get("may_repeat"))
    return n_doubled + sum(int(row["n_lost"] + row["n_wrong"]) for row in campaigns)


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    groups = grouped(rows, ["fault", "engine"])
    bars(
        axes,
        sorted(distinct(rows, "fault")),
        distinct(rows, "engine"),
        {(fault, engine): _seconds(group) for (fault, engine), group in groups.items()},
    )
    axes.set_ylabel("seconds to go on")
    axes.tick_params("x", rotation=30)
    axes.legend()


FIGURE = Figure(
    name="faults",
    title="Faults, and the time to go on",
    about="Kinds of faults that campaigns made, how often, and how long going on took, by engine.",
    cases=cases,
    measure=measure,
    page=page,
)
