"""What load adjustment did, in one line each; lines should fit 80 columns."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from ps2stream.balance.adjustments import Adjustment
from ps2stream.cli.render.printable import byte_count, counted
from ps2stream.partitioning.plan import balance_of


def in_words(record: Adjustment) -> str:
    """Say what was done, what it moved and what came of it."""
    if record.kind == "switch":
        return f"plan {record.plan_after} begins to take over, {_balance(record)}"
    moved = byte_count(record.n_bytes)
    if record.kind == "unite":
        n = f"{record.n_subscriptions:,} subscriptions"
        return f"plan {record.plan_before} has gone, moved {n}, {moved} in {record.pause_s:.2f} s"
    return f"{_cells(record)}, {moved} {_way(record)}, {_balance(record)} in {record.pause_s:.2f} s"


def made_at(record: Adjustment) -> float:
    """Return when an adjustment was made, in seconds since the epoch."""
    return datetime.datetime.fromisoformat(record.at).timestamp()


def _cells(record: Adjustment) -> str:
    n_divided = sum(step.n_cells for step in record.steps if step.phase == "split")
    n_moved = sum(step.n_cells for step in record.steps) - n_divided
    words = []
    if n_moved:
        words.append(f"moved {counted(n_moved, 'cell')}")
    if n_divided:
        words.append(f"divided {n_divided:,}" if n_moved else f"divided {counted(n_divided, 'cell')}")
    return ", ".join(words)


def _way(record: Adjustment) -> str:
    pairs = {(step.source, step.destination) for step in record.steps}
    if len(pairs) == 1:
        ((source, destination),) = pairs
        return f"from worker {source} to {destination}"
    return f"among {len({worker for pair in pairs for worker in pair})} workers"


def _balance(record: Adjustment) -> str:
    """Write the loads' ratio before and after; a tilde marks one that is only expected so far."""
    after = _ratio(record.loads_after) if record.loads_after else f"~{_ratio(record.loads_expected)}"
    return f"balance {_ratio(record.loads_before)} -> {after}"


def _ratio(loads: Sequence[float]) -> str:
    return f"{balance_of(loads):.1f}" if loads else "-"
