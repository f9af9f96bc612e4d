"""What a role measures: counters, gauges and histograms as plain values."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ps2stream.errors import SchemaError, quoted

#: Upper bounds of the buckets in seconds, closed: half a millisecond to a minute, each about 1.46 times the
#: one before. Fixed, so that histograms of any two roles add up.
BOUNDS_S = tuple(float(f"{bound:.2g}") for bound in np.geomspace(0.0005, 60.0, 32))
_BOUNDS = np.array(BOUNDS_S)


class Histogram:
    """Counts of durations by bucket; the last bucket has what is beyond all bounds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self, counts: npt.ArrayLike | None = None, sum_s: float = 0.0) -> None:
        self.counts = np.zeros(len(BOUNDS_S) + 1, np.int64) if counts is None else np.array(counts, np.int64)
        self.sum_s = float(sum_s)
        if self.counts.shape != (len(BOUNDS_S) + 1,):
            raise SchemaError(f"a histogram has {len(BOUNDS_S) + 1} counts; got {self.counts.size}")

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    def observe(self, values_s: float | npt.ArrayLike, counts: npt.ArrayLike | None = None) -> None:
        """Enter durations in seconds, each once or ``counts`` times.

        Clocks of two hosts may differ: what seems to end before it began took no time.
        """
        if counts is None and isinstance(values_s, float):
            value = max(values_s, 0.0)
            self.counts[bisect.bisect_left(BOUNDS_S, value)] += 1
            self.sum_s += value
            return
        values = np.maximum(np.atleast_1d(np.asarray(values_s, np.float64)), 0.0)
        times = (
            np.ones(len(values), np.int64) if counts is None else np.atleast_1d(np.asarray(counts, np.int64))
        )
        np.add.at(self.counts, np.searchsorted(_BOUNDS, values, side="left"), times)
        self.sum_s += float(values @ times)

    def merge(self, other: Histogram) -> None:
        """Add the counts of another one to these."""
        self.counts += other.counts
        self.sum_s += other.sum_s

    def copy(self) -> Histogram:
        return Histogram(self.counts, self.sum_s)

    def since(self, earlier: Histogram) -> Histogram:
        """Return what came after an earlier state of the same histogram."""
        return Histogram(self.counts - earlier.counts, self.sum_s - earlier.sum_s)

    def quantile(self, q: float) -> float:
        """Return a quantile in seconds, as if values were even in a bucket; NaN where there are none.

        The same estimate as ``histogram_quantile`` of Prometheus: what is beyond all bounds is at the last.
        """
        reached = np.cumsum(self.counts)
        if reached[-1] == 0:
            return math.nan
        rank = q * float(reached[-1])
        bucket = int(np.searchsorted(reached, max(rank, 1e-9)))
        if bucket >= len(BOUNDS_S):
            return BOUNDS_S[-1]
        low = BOUNDS_S[bucket - 1] if bucket else 0.0
        below = float(reached[bucket - 1]) if bucket else 0.0
        return low + (BOUNDS_S[bucket] - low) * (rank - below) / float(self.counts[bucket])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return bool(np.array_equal(self.counts, other.counts)) and self.sum_s == other.sum_s

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Histogram(n={self.n}, sum_s={self.sum_s:g})"


@dataclass(frozen=True, slots=True)
class RoleMeasures:
    """The measures of one role, as it tells them about once a second.

    ``number`` tells workers from workers. ``incarnation`` rises with every start of the role (an epoch, or
    ``time.time_ns()`` of the start): counters and histograms are of this incarnation, from its start to now.
    Keys are names of ``names.METRICS``, with a label where they have one (``names.labelled``).
    """

    role: str
    number: int
    incarnation: int = 0
    host: str = ""
    counters: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)

    def to_json(self) -> str:
        histograms = {
            key: {"counts": each.counts.tolist(), "sum_s": each.sum_s}
            for key, each in self.histograms.items()
        }
        fields = {name: getattr(self, name) for name in ("role", "number", "incarnation", "host")}
        values = {"counters": dict(self.counters), "gauges": dict(self.gauges), "histograms": histograms}
        return json.dumps({**fields, **values}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> RoleMeasures:
        """Read what ``to_json`` wrote; raise SchemaError for anything else."""
        try:
            told: dict[str, Any] = json.loads(text)
            histograms = {key: Histogram(**each) for key, each in told["histograms"].items()}
            return cls(
                str(told["role"]),
                int(told["number"]),
                int(told["incarnation"]),
                str(told["host"]),
                dict(told["counters"]),
                dict(told["gauges"]),
                histograms,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SchemaError(
                f"measures of a role must be JSON as roles write it; got {quoted(text)}"
            ) from error
