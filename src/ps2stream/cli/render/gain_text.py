"""What a new plan would gain: as an object for JSON, and as people read it."""

from __future__ import annotations

import math
from typing import Any

from ps2stream.adjusting.repartitioning import Considered
from ps2stream.arrays import Float64s
from ps2stream.cli.render.output import Columns, note
from ps2stream.partitioning.plan import Plan, balance_of
from ps2stream.partitioning.sample import Sample


def object_of(
    considered: Considered, running: Plan, sample: Sample, margin: float, *, is_switching: bool
) -> dict[str, Any]:
    """Return the comparison as plain values; ``would`` is what the job would do: switch, stay or wait."""
    # Judged by one half of the sample; the new plan was made from the other.
    n_judged = max(sample.n_publications // 2, 1)
    would = "wait" if is_switching else "switch" if considered.gain > margin else "stay"
    return {
        "would": would,
        "gain": considered.gain,
        "margin": margin,
        "running": {"plan": running.number, **_figures(considered.running, n_judged)},
        "renewed": {"plan": considered.plan.number, **_figures(considered.renewed, n_judged)},
        "partitioner": considered.plan.partitioner,
        "sample": {
            "publications": sample.n_publications,
            "subscriptions": sample.n_subscriptions,
            "live": sample.n_live,
            "churn": sample.churn,
        },
    }


def print_gain(shown: dict[str, Any]) -> None:
    """Print both plans, and below them what it means."""
    sample = shown["sample"]
    note(
        f"sample: {sample['publications']:,} publications; {sample['subscriptions']:,} subscriptions "
        f"for {sample['live']:,} live ones"
    )
    Columns("plan", "busiest worker", "all workers", "max/min").write(
        [_row("now", shown["running"]), _row("new", shown["renewed"])]
    )
    gain, margin = f"gain {shown['gain']:.1%}", f"the margin of {shown['margin']:.0%}"
    print(
        {
            "switch": f"{gain}, above {margin}: the job would switch to the new plan",
            "stay": f"{gain}, not above {margin}: the job would stay with its plan",
            "wait": f"{gain}; the job is switching plans already, and considers no other until that is done",
        }[shown["would"]]
    )


def _row(name: str, plan: dict[str, Any]) -> tuple[str, ...]:
    ratio = plan["max_over_min"]
    return (
        f"{plan['plan']}, {name}",
        f"{plan['busiest_ms']:,.2f} ms",
        f"{plan['load_ms']:,.2f} ms",
        "a worker idle" if ratio is None else f"{ratio:.2f}",
    )


def _figures(loads: Float64s, n_publications: int) -> dict[str, Any]:
    loads_ms = (loads * 1e-6 * 1_000 / n_publications).tolist()
    ratio = balance_of(loads_ms)
    return {
        "busiest_ms": max(loads_ms),
        "load_ms": sum(loads_ms),
        "max_over_min": ratio if math.isfinite(ratio) else None,
        "loads_ms": loads_ms,
    }
