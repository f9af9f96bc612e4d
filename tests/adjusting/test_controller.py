"""The controller adjusts what stays unbalanced, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjusting.controlled_job import EVEN, PLAN, UNEVEN, Job, chosen_settings
from ps2stream.adjusting import controller as control
from ps2stream.adjusting.controller import LoadController, controller_of
from ps2stream.balance.selection import SELECTORS
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.partitioning.plan import balance_of


def test_balanced_loads_are_left_alone_however_long_they_last() -> None:
    job = Job(LoadController(chosen_settings()))
    rng = np.random.default_rng(1)
    for _ in range(60):
        noisy = {cell: int(rng.poisson(n)) for cell, n in EVEN.items()}
        assert job.batch(noisy) is None
    assert job.deployment.registrar.plan is PLAN


def test_unbalanced_loads_are_adjusted_once_and_then_left_alone() -> None:
    job = Job(LoadController(chosen_settings()))
    for _ in range(40):
        job.batch(UNEVEN)
    (adjusted,) = job.made
    record = adjusted.record
    assert (record.kind, record.selector, record.batch_id) == ("local", "gr", 3)
    assert (record.plan_before, record.plan_after) == (1, 2)
    assert record.reason == ("the busiest worker had 4.00 times the load of the least busy one, above 1.3")
    assert balance_of(record.loads_before) == pytest.approx(4.0)
    assert balance_of(record.loads_expected) == pytest.approx(1.0)
    assert sum(record.loads_expected) == pytest.approx(sum(record.loads_before))
    assert record.loads_after == (), "not known yet"
    assert record.steps[0].phase == "move"
    assert (record.steps[0].source, record.steps[0].destination) == (0, 1)
    assert record.n_subscriptions == adjusted.migrated.n_subscriptions == 4 * record.steps[0].n_cells
    assert record.n_bytes == adjusted.migrated.n_bytes > 0
    assert 0.0 < record.selection_s <= record.pause_s
    assert record.at
    assert job.deployment.registrar.plan.number == 2
    assert job.deployment.holders() == job.deployment.expected_holders()
    (known,) = job.known
    assert known.batch_id == 3
    assert known.loads_after == pytest.approx(record.loads_expected), "as the stream did not change"
    assert known.migration_s == 0.25, "what the batch added to the record is kept"


@pytest.mark.parametrize("selector", SELECTORS)
def test_every_selector_can_be_at_work(selector: str) -> None:
    job = Job(LoadController(chosen_settings(selector=selector)))
    for _ in range(5):
        job.batch(UNEVEN)
    assert [adjusted.record.selector for adjusted in job.made] == [selector]


def test_nothing_is_decided_before_a_whole_window_has_passed() -> None:
    job = Job(LoadController(chosen_settings(window=1000)))
    for _ in range(10):
        assert job.batch(UNEVEN) is None
    assert job.batch(UNEVEN) is not None
    # What is unbalanced anew has to be so for a whole window, too.
    moved = dict.fromkeys(np.flatnonzero(job.deployment.registrar.plan.h1.cell_owner == 1).tolist(), 10)
    assert len(moved) > 10
    while not job.controller.window.is_full:
        assert job.batch(moved) is None
    assert job.controller.window.n_publications >= 1000
    assert job.batch(moved) is not None


def test_a_peak_that_passes_is_no_reason_to_move() -> None:
    job = Job(LoadController(chosen_settings(window=400)))
    for loads in [UNEVEN] * 2 + [EVEN] * 6 + [UNEVEN] * 1 + [EVEN] * 8:
        assert job.batch(loads) is None


def test_a_peak_that_wanders_from_worker_to_worker_is_no_reason_to_move() -> None:
    west, east = {0: 60, 1: 30, 2: 10}, {2: 60, 3: 30, 0: 10}
    job = Job(LoadController(chosen_settings(window=400)))
    for number in range(24):
        assert job.batch(west if number // 2 % 2 else east) is None
    assert job.controller.window.is_full, "nor to forget what was seen"


def test_loads_that_cannot_be_moved_are_looked_at_again_a_window_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def nothing_helps(*_: Any) -> None:
        looked.append(job.n_batches)

    monkeypatch.setattr(control, "adjust", nothing_helps)
    job = Job(LoadController(chosen_settings()))
    for _ in range(12):
        assert job.batch(UNEVEN) is None
    assert looked == [3, 6, 9]


@pytest.mark.parametrize("scope", ["global", "off"])
def test_cells_are_only_moved_where_that_is_wanted(scope: str) -> None:
    job = Job(LoadController(chosen_settings(scope=scope)))
    for _ in range(10):
        assert job.batch(UNEVEN) is None


@pytest.mark.parametrize(
    ("n_workers", "scope", "is_needed"),
    [(2, "both", True), (2, "local", True), (2, "global", True), (2, "off", False), (1, "both", False)],
)
def test_there_is_a_controller_where_there_is_something_to_adjust(
    n_workers: int, scope: Any, is_needed: bool
) -> None:
    chosen = Settings(n_workers=n_workers, adjustment=AdjustmentSettings(scope=scope))
    assert (controller_of(chosen) is not None) == is_needed
