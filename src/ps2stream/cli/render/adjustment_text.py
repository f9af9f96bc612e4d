"""An adjustment as people read it, and as an object for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ps2stream.balance.adjustments import Adjustment, StepRecord
from ps2stream.cli.render.output import safe
from ps2stream.cli.render.printable import byte_count, counted
from ps2stream.partitioning.plan import balance_of

_PHASES = {"move": "moved", "merge": "merged", "split": "divided by terms"}


def text_of(record: Adjustment) -> str:
    """Write an adjustment as a headline and what belongs to it, indented."""
    plans = f"plan {record.plan_before} -> {record.plan_after}"
    where = f"before batch {record.batch_id}" if record.position is None else f"at position {record.position}"
    head = f"{record.at}  {record.kind}  {where}, {plans}"
    return "\n  ".join(map(safe, [head, *_lines(record)]))


def object_of(record: Adjustment) -> dict[str, Any]:
    """Return an adjustment as plain values, with the balance that its loads make up."""
    return {**asdict(record), "max_over_min": _balances(record)}


def _lines(record: Adjustment) -> Iterator[str]:
    yield record.reason
    yield "balance " + _balance(record)
    for step in record.steps:
        yield _step(step, record)
    if record.n_subscriptions or record.kind != "switch":
        yield f"{record.n_subscriptions:,} subscriptions moved, {byte_count(record.n_bytes)}"
    decided = f"decided in {_duration(record.selection_s)} ({record.selector}), " if record.selector else ""
    yield (
        f"{decided}stream paused {_duration(record.pause_s)}, workers ready after "
        f"{_duration(record.migration_s)}, {record.n_delayed:,} publications delayed"
    )


def _balance(record: Adjustment) -> str:
    words = [_ratio(record.loads_before)]
    if record.loads_expected:
        words.append(f"{_ratio(record.loads_expected)} expected")
    words.append(f"{_ratio(record.loads_after)} after" if record.loads_after else "not known yet")
    return " -> ".join(words)


def _step(step: StepRecord, record: Adjustment) -> str:
    total = sum(record.loads_before)
    load = f", {step.load / total:.1%} of the load" if total > 0 else ""
    what = f"{counted(step.n_cells, 'cell')} {_PHASES.get(step.phase, step.phase)}"
    return f"worker {step.source} -> {step.destination}: {what}{load}, {byte_count(step.n_bytes)}"


def _balances(record: Adjustment) -> dict[str, float | None]:
    loads = {"before": record.loads_before, "expected": record.loads_expected, "after": record.loads_after}
    ratios = {name: balance_of(each) if each else math.nan for name, each in loads.items()}
    return {name: ratio if math.isfinite(ratio) else None for name, ratio in ratios.items()}


def _ratio(loads: Sequence[float]) -> str:
    if not loads:
        return "-"
    ratio = balance_of(loads)
    return f"{ratio:.2f}" if math.isfinite(ratio) else "a worker idle"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"
