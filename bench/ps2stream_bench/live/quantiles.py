"""Quantiles of latencies as rows have them."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream_bench.results import Row

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}


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
