"""The status of a job, made up as ``pipeline.status`` makes it."""

from __future__ import annotations

import time
from typing import Any


def cell(number: int, load: float) -> dict[str, Any]:
    return {
        "cell": number,
        "bounds": [11.25, 47.8, 11.6, 48.1],
        "load": load,
        "busy_s": 0.125,
        "publications": 1_234,
        "subscriptions": 56.7,
        "candidates": 8_910,
        "matches": 112,
        "bytes": 13_000,
    }


def status(**others: Any) -> dict[str, Any]:
    """Describe two workers, the first with three times the load of the second."""
    return {
        "at": time.time() - 7.0,
        "batch_id": 41,
        "plans": [3],
        "subscriptions": 100_000,
        "older_subscriptions": 0,
        "window_publications": 204_800,
        "window_is_full": True,
        "load": "candidates",
        "sigma": 1.5,
        "imbalance": 3.0,
        "workers": [
            {"worker": 0, "load": 75.0, "busy_s": 1.5, "cells": [cell(n, 15.0) for n in range(5)]},
            {"worker": 1, "load": 25.0, "busy_s": 0.5, "cells": [cell(9, 25.0)]},
        ],
        **others,
    }
