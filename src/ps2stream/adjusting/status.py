"""The status of a running job: loads of workers and their busiest cells, and the plans in use."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ps2stream.adjusting.controller import LoadController
from ps2stream.balance.loads import CellTable
from ps2stream.model.space import Grid
from ps2stream.partitioning.plan import balance_of
from ps2stream.roles.registrar import Registrar

#: This many of the busiest cells of every worker are shown.
_N_CELLS = 5


def status_of(controller: LoadController, registrar: Registrar, batch_id: int) -> dict[str, Any]:
    """Return the status as plain values."""
    window, grid = controller.window, registrar.plan.grid
    totals, busy_s = window.totals(), window.busy_s()
    ratio = balance_of(totals.tolist())
    return {
        "at": time.time(),
        "batch_id": batch_id,
        "plans": list(registrar.plan_numbers.parts),
        "subscriptions": registrar.registry.n_live,
        "older_subscriptions": registrar.n_older(),
        "window_publications": window.n_publications,
        "window_is_full": window.is_full,
        "load": controller.settings.load,
        "sigma": controller.settings.adjustment.sigma,
        "margin": controller.settings.adjustment.margin,
        "imbalance": ratio if np.isfinite(ratio) else None,
        "workers": [
            {
                "worker": worker,
                "load": float(totals[worker]),
                "busy_s": float(busy_s[worker]),
                "cells": _busiest(window.table(worker), grid, float(busy_s[worker])),
            }
            for worker in range(len(totals))
        ],
    }


def _busiest(table: CellTable, grid: Grid, busy_s: float) -> list[dict[str, Any]]:
    total = max(float(table.loads.sum()), 1e-9)
    return [
        {
            "cell": int(table.cells[row]),
            "bounds": [round(each, 4) for each in grid.bounds_of(int(table.cells[row]))],
            "load": float(table.loads[row]),
            # Nobody can time single cells; their share of the load is their share of the time.
            "busy_s": busy_s * float(table.loads[row]) / total,
            "publications": int(table.publications[row]),
            "subscriptions": float(table.subscriptions[row]),
            "candidates": int(table.candidates[row]),
            "matches": int(table.matches[row]),
            "bytes": int(table.sizes[row]),
        }
        for row in np.argsort(-table.loads, kind="stable")[:_N_CELLS]
    ]
