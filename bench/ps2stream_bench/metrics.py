"""What is made of raw rows: medians with intervals, and ratios of contenders measured side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mode
from typing import Any

import numpy as np
from scipy.stats import binom

from ps2stream_bench.results import Row

Key = tuple[Any, ...]

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Middle:
    """The median of repetitions, and an interval for it.

    The interval lies between two of the values and holds the true median with 95 % confidence, whatever their
    distribution. Fewer than six values cannot give that much; it is then from the least to the greatest.
    """

    median: float
    low: float
    high: float
    n: int

    def __format__(self, style: str) -> str:
        if self.n == 1:
            return f"{self.median:{style}}"
        return f"{self.median:{style}} [{self.low:{style}} to {self.high:{style}}]"


def middle(values: Iterable[float | None]) -> Middle:
    """Return the median of values; those that are not known do not count."""
    ordered = np.sort([value for value in values if value is not None and not math.isnan(value)])
    n = len(ordered)
    if n == 0:
        return Middle(math.nan, math.nan, math.nan, 0)
    # The true median lies below the k-th least value with the chance that fewer than k of n coins show heads.
    k = max(int(binom.ppf((1 - _CONFIDENCE) / 2, n, 0.5)), 1) if n > 5 else 1
    return Middle(float(np.median(ordered)), float(ordered[k - 1]), float(ordered[n - k]), n)


def where(rows: Iterable[Row], **fields: Any) -> list[Row]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in fields.items())]


def distinct(rows: Iterable[Row], field: str) -> list[Any]:
    """Return the values of a field, each once, in the order they come."""
    return list(dict.fromkeys(row[field] for row in rows if row.get(field) is not None))


def grouped(rows: Iterable[Row], by: Sequence[str]) -> dict[Key, list[Row]]:
    """Put rows together that agree in some fields."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
    return groups


def medians(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """Make one row of those that agree in some fields: medians of numbers, the most frequent of all else."""
    return [
        {name: _medial([row.get(name) for row in group]) for name in group[0]}
        for group in grouped(rows, by).values()
    ]


def middles(rows: Iterable[Row], by: Sequence[str], field: str) -> dict[Any, Middle]:
    """Return the middle of a field for each group of rows."""
    return {key: middle(row.get(field) for row in group) for key, group in grouped(rows, by).items()}


def ratio(rows: Iterable[Row], field: str, of: Mapping[str, Any], to: Mapping[str, Any]) -> Middle:
    """Return how one contender's figure compares with another's, turn by turn.

    Two rows are compared when they agree in everything that tells cases and repetitions apart, which is what
    was measured side by side; noise that lasts longer than a turn cancels out.
    """
    found = list(rows)
    base = {_turn(row): row for row in where(found, **to)}
    pairs = [(row, base[_turn(row)]) for row in where(found, **of) if _turn(row) in base]
    known = [(row.get(field), other.get(field)) for row, other in pairs]
    return middle(value / base for value, base in known if value is not None and base)


def _turn(row: Row) -> Key:
    return tuple(row.get(name) for name in ("source", "seed", "case", "repetition", "interval"))


def _medial(values: list[Any]) -> Any:
    known = [value for value in values if value is not None and value == value]
    if not known:
        return None
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    return float(np.median(known)) if are_numbers else mode(known)
