"""What becomes of the rows: choices and migrations of each selector at each size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ps2stream.balance.selection import SELECTORS
from ps2stream_bench.metrics import distinct, grouped, middle, where
from ps2stream_bench.results import Row

#: Tuples of the stream that arrive in a second, when it is asked how many come while it stands still.
PACE = 100_000

#: How often migrations are drawn again to see how far their averages can be trusted.
_N_DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class MeanRatio:
    """An average over another one, with a 95 % interval (bootstrap) over what was averaged.

    ``n``: how many the fewer of both averages are made of. One value alone gives no interval.
    """

    value: float
    low: float
    high: float
    n: int

    def __format__(self, style: str) -> str:
        if self.n <= 1:
            return f"{self.value:{style}}"
        return f"{self.value:{style}} [{self.low:{style}} to {self.high:{style}}]"


def mean_ratio(rows: Sequence[Row], others: Sequence[Row], field: str) -> MeanRatio:
    """Return the average of a field over that in other rows; both have some."""
    above, below = (np.array([row[field] for row in each], np.float64) for each in (rows, others))
    n = min(len(above), len(below))
    if not below.any():
        value = math.inf if above.any() else 1.0
        return MeanRatio(value, value, value, n)
    # A fixed seed: the same rows always give the same page.
    rng = np.random.default_rng(15)
    drawn = [rng.choice(each, (_N_DRAWS, len(each))).mean(axis=1) for each in (above, below)]
    is_known = drawn[1] > 0
    low, high = np.quantile(drawn[0][is_known] / drawn[1][is_known], [0.025, 0.975])
    return MeanRatio(float(above.mean() / below.mean()), float(low), float(high), n)


def selection_summary(chosen: Sequence[Row]) -> list[Row]:
    """Make a line for each size and selector of all choices."""
    lines = []
    for (size, name), own in _by_size_and_selector(chosen).items():
        to_dp = _per_choice(where(chosen, subscriptions=size), "n_bytes", name, "dp")
        lines.append(
            {
                "subscriptions": size,
                "selector": name.upper(),
                "n": len(own),
                "n_cells": middle(row["n_cells"] for row in own).median,
                "time_ms": middle(1e3 * row["select_s"] for row in own),
                "cost_ratio": middle(to_dp),
                "within_5_percent": float(np.mean([each <= 1.05 for each in to_dp])) if to_dp else None,
                "peak_kb": max(row["peak_bytes"] for row in own) / 1e3,
            }
        )
    return lines


def migration_summary(moved: Sequence[Row], intervals: Sequence[Row]) -> list[Row]:
    """Make a line for each size and selector: averages over migrations, shares over publications."""
    lines = []
    migrations = _by_size_and_selector(moved)
    for (size, name), own in _by_size_and_selector(intervals).items():
        made = migrations.get((size, name), [])
        over_100_ms, over_1_s = waiting(made, own, 0.1), waiting(made, own, 1.0)
        lines.append(
            {
                "subscriptions": size,
                "selector": name.upper(),
                "n": len(made),
                "moved_kb": mean_of(made, "moved_bytes", 1e-3),
                "selected_kb": mean_of(made, "selected_bytes", 1e-3),
                "selection_ms": mean_of(made, "selection_s", 1e3),
                "migration_ms": mean_of(made, "migration_s", 1e3),
                "total_mb": sum(row["moved_bytes"] for row in made) / 1e6,
                "share_below": 1.0 - over_100_ms,
                "share_between": over_100_ms - over_1_s,
                "share_above": over_1_s,
                "share_held_up": held_up(own),
            }
        )
    return lines


def waiting(made: Sequence[Row], intervals: Sequence[Row], longer_than_s: float) -> float:
    """Return the share of tuples that wait so long for a migration if they arrive at the pace.

    Those that arrive at the beginning of a pause wait for all of it, the last ones hardly at all.
    """
    n_waiting = PACE * sum(max(float(row["pause_s"]) - longer_than_s, 0.0) for row in made)
    return min(n_waiting / max(sum(int(row["n_events"]) for row in intervals), 1), 1.0)


def held_up(intervals: Sequence[Row]) -> float:
    """Return the share of publications in batches that a migration held up for more than 100 ms."""
    n_publications = sum(int(row["n_publications"]) for row in intervals)
    n_held_up = sum(float(row["share_over_100_ms"]) * int(row["n_publications"]) for row in intervals)
    return n_held_up / max(n_publications, 1)


def _by_size_and_selector(rows: Sequence[Row]) -> dict[tuple[int, str], list[Row]]:
    """Group rows in the order of sizes, and selectors as the paper has them."""
    groups = grouped(rows, ("subscriptions", "selector"))
    order = [(size, name) for size in sizes_of(rows) for name in SELECTORS]
    return {key: groups[key] for key in order if key in groups}


def _per_choice(rows: Sequence[Row], field: str, name: str, other: str) -> list[float]:
    base = {row["repetition"]: row[field] for row in where(rows, selector=other)}
    return [
        row[field] / base[row["repetition"]]
        for row in where(rows, selector=name)
        if base.get(row["repetition"])
    ]


def mean_of(rows: Sequence[Row], field: str, factor: float = 1.0) -> float:
    """Return the average of a field, times a factor."""
    return factor * float(np.mean([row[field] for row in rows])) if rows else math.nan


def sizes_of(rows: Sequence[Row]) -> list[int]:
    """Return the numbers of subscriptions, ascending."""
    return sorted(distinct(rows, "subscriptions"))
