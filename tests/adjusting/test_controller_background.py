"""New plans that are made in the background: the stream goes on, and nothing is adjusted meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from adjusting.controlled_job import EVEN, UNEVEN, Considering, Job, chosen_settings
from ps2stream.adjusting import controller as control
from ps2stream.adjusting.controller import LoadController
from ps2stream.adjusting.repartitioning import Considered
from waiting import HANG_S


class ByHand(Executor):
    """Keep work until a test does it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def finish(self) -> None:
        ((future, work),) = self.waiting
        self.waiting.clear()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)


def test_the_stream_goes_on_while_a_plan_is_made_in_the_background(considering: Considering) -> None:
    background = ByHand()
    job = Job(LoadController(chosen_settings(scope="both", check_every=500), background))
    for _ in range(5):
        job.batch(EVEN)
    for _ in range(9):
        assert job.batch(UNEVEN) is None, "what a new plan may change is not adjusted meanwhile"
    assert not considering.asked
    assert len(background.waiting) == 1, "one at a time"
    background.finish()
    adjusted = job.batch(UNEVEN)
    assert adjusted is not None
    assert adjusted.record.kind == "switch"
    assert not background.waiting


def test_a_plan_of_the_background_that_does_not_gain_lets_local_adjustment_go_on(
    considering: Considering,
) -> None:
    considering.gain = 0.0
    background = ByHand()
    job = Job(LoadController(chosen_settings(scope="both", check_every=500), background))
    for _ in range(8):
        job.batch(EVEN if job.n_batches < 5 else UNEVEN)
    background.finish()
    adjusted = job.batch(UNEVEN)
    assert adjusted is not None
    assert adjusted.record.kind == "local"


@pytest.mark.parametrize("is_in_background", [False, True])
def test_a_plan_that_cannot_be_made_is_reported_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_in_background: bool
) -> None:
    def fail(*_: Any) -> Considered:
        raise ValueError("no plan today")

    monkeypatch.setattr(control, "consider", fail)
    background = ByHand() if is_in_background else None
    job = Job(LoadController(chosen_settings(scope="both", check_every=300), background))
    with caplog.at_level(logging.ERROR):
        for _ in range(4):
            job.batch(EVEN)
        if background:
            background.finish()
        job.batch(EVEN)
    assert "no new plan could be made: no plan today" in caplog.text
    for _ in range(6):
        job.batch(UNEVEN)
        if background and background.waiting:
            background.finish()
    assert set(job.kinds()) == {"local"}, "the stream goes on, and so does what needs no new plan"


def test_a_real_plan_is_made_by_a_real_thread() -> None:
    with ThreadPoolExecutor(1) as background:
        job = Job(LoadController(chosen_settings(scope="global", check_every=100), background))
        considering = None
        while considering is None:  # looked at after every batch: the next one takes a finished plan away
            assert job.batch(EVEN) is None
            considering = job.controller._considering
        considered = considering.result(timeout=HANG_S)
    assert considered.plan.n_workers == 2
    assert considered.plan.number == 2
    assert considered.running.shape == (2,)
