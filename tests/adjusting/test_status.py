"""The status of a job is what its controller and its registrar know, as plain values."""

from __future__ import annotations

import json
import random
import time

import pyarrow as pa
import pytest

from engines.deployments import N_WORKERS, Deployment, random_plan
from engines.streams import events_of, subscribe
from ps2stream.adjusting.controller import LoadController, Observed
from ps2stream.adjusting.status import status_of
from ps2stream.balance.loads import WORK_COSTS
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.roles.packets import CELL_LOADS

SETTINGS = Settings(n_workers=N_WORKERS, adjustment=AdjustmentSettings(window=100, sigma=1.7))


def _report(**cells: int) -> pa.RecordBatch:
    rows = [
        {
            "cell": int(name.removeprefix("c")),
            "publications": n,
            "lookups": 0,
            "candidates": 2 * n,
            "matches": n // 2,
            "subscriptions": 7,
            "bytes": 700,
        }
        for name, n in cells.items()
    ]
    return pa.RecordBatch.from_pylist(rows, CELL_LOADS)


@pytest.fixture
def deployment() -> Deployment:
    deployed = Deployment(random_plan(random.Random(1)))
    deployed.process(events_of(*(subscribe(seq, f"s{seq}") for seq in range(1, 6))))
    return deployed


def test_before_the_first_report_all_loads_are_nothing(deployment: Deployment) -> None:
    before = time.time()
    status = status_of(LoadController(SETTINGS), deployment.registrar, -1)
    assert before <= status.pop("at") <= time.time()
    expected = {
        "batch_id": -1,
        "plans": [1],
        "subscriptions": 5,
        "older_subscriptions": 0,
        "window_publications": 0,
        "window_is_full": False,
        "load": "candidates",
        "sigma": 1.7,
        "imbalance": 1.0,
        "workers": [
            {"worker": worker, "load": 0.0, "busy_s": 0.0, "cells": []} for worker in range(N_WORKERS)
        ],
    }
    assert {name: status[name] for name in expected} == expected


def test_workers_come_with_their_loads_and_their_busiest_cells(deployment: Deployment) -> None:
    controller = LoadController(SETTINGS)
    reports = {0: _report(c3=10, c9=60, c1=20, c12=1, c40=5, c41=6, c42=7), 2: _report(c9=4)}
    controller.observe(Observed(113, 0, reports, {0: 0.5, 2: 0.25}, []))
    status = json.loads(json.dumps(status_of(controller, deployment.registrar, 8), allow_nan=False))
    assert (status["batch_id"], status["window_publications"], status["window_is_full"]) == (8, 113, True)
    assert status["imbalance"] is None, "two workers have nothing to do"
    first, idle, third, _ = status["workers"]
    each = WORK_COSTS.publication + 2 * WORK_COSTS.candidate + WORK_COSTS.match / 2
    assert first["load"] == pytest.approx(109 * each, rel=0.02)
    assert (first["busy_s"], third["busy_s"], idle["busy_s"]) == (0.5, 0.25, 0.0)
    assert [cell["cell"] for cell in first["cells"]] == [9, 1, 3, 42, 41], "the five busiest"
    busiest = first["cells"][0]
    assert (busiest["publications"], busiest["candidates"], busiest["matches"]) == (60, 120, 30)
    assert (busiest["subscriptions"], busiest["bytes"]) == (7.0, 700)
    assert busiest["busy_s"] == pytest.approx(0.5 * busiest["load"] / first["load"])
    bounds = deployment.registrar.plan.grid.bounds_of(9)
    assert busiest["bounds"] == pytest.approx(list(bounds), abs=1e-4)
    assert [cell["cell"] for cell in third["cells"]] == [9]
    assert third["cells"][0]["busy_s"] == pytest.approx(0.25)


def test_the_imbalance_is_the_largest_load_over_the_smallest(deployment: Deployment) -> None:
    controller = LoadController(SETTINGS)
    reports = {worker: _report(c1=n) for worker, n in enumerate((20, 40, 60, 80))}
    controller.observe(Observed(200, 0, reports, {}, []))
    assert status_of(controller, deployment.registrar, 0)["imbalance"] == pytest.approx(4.0)


def test_two_plans_in_use_are_named_with_how_many_depend_on_the_older(deployment: Deployment) -> None:
    deployment.switch(random_plan(random.Random(2)))
    deployment.process(events_of(subscribe(10, "s1"), subscribe(11, "new")))
    status = status_of(LoadController(SETTINGS), deployment.registrar, 2)
    assert (status["plans"], status["subscriptions"], status["older_subscriptions"]) == ([2, 1], 6, 4)
