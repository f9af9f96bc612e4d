"""Latencies as rows have them: quantiles, and whether they grow."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream_bench.results import Row

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
#: By how much of the time that passes, and of its median besides, a latency may grow that is steady.
_SLACK, _SLACK_OF_MEDIAN = 0.05, 0.25


def quantiles_ms(latency_s: Float64s) -> Row:
    """Return quantiles in milliseconds; each is the latency of some publication."""
    if not len(latency_s):
        raise RuntimeError("nothing was delivered")
    found = np.quantile(latency_s, list(_QUANTILES.values()), method="inverted_cdf") * 1000
    return {
        **{f"latency_{name}_ms": float(each) for name, each in zip(_QUANTILES, found, strict=True)},
        "latency_mean_ms": float(latency_s.mean() * 1000),
        "latency_max_ms": float(latency_s.max() * 1000),
        "share_over_100_ms": float((latency_s > 0.1).mean()),
        "share_over_1_s": float((latency_s > 1.0).mean()),
        "n_delivered": len(latency_s),
    }


def kept_up(due_s: Float64s, latency_s: Float64s) -> bool:
    """Say whether latency did not grow with time, but for a little; both in the order of when they were due.

    Who is offered more than it can do falls further behind all the time. A single stall does not count: the
    medians of the second and of the last quarter are compared.
    """
    n = len(due_s)
    second, last = slice(n // 4, max(n // 2, n // 4 + 1)), slice(n * 3 // 4, n)
    growth_s = np.median(latency_s[last]) - np.median(latency_s[second])
    apart_s = np.median(due_s[last]) - np.median(due_s[second])
    return bool(growth_s <= _SLACK * apart_s + _SLACK_OF_MEDIAN * np.median(latency_s))
