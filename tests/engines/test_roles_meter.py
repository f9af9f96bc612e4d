"""A meter on resident roles reads rates off their reports."""

from __future__ import annotations

import math

import pytest

from ps2stream.config import Settings
from ps2stream.engines.roles_meter import RolesMeter
from ps2stream.metrics.board import LATENCY, Board
from ps2stream.metrics.recorder import Recorder


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_of_nothing_there_are_no_rates() -> None:
    meter = RolesMeter(Board(), Settings(n_workers=1))
    recent = meter.recent()
    assert (recent.events_per_s, recent.matches_per_s) == (0, 0)
    assert math.isnan(recent.latency_p50_ms)
    assert meter.n_batches == 0


def test_rates_are_those_of_the_last_seconds() -> None:
    clock = Clock()
    board = Board(clock=clock)
    meter = RolesMeter(board, Settings(n_workers=1, n_dispatchers=1))
    roles = [Recorder("registrar", 0, 1), Recorder("dispatcher", 0, 1), Recorder("worker", 0, 1)]
    registrar, dispatcher, worker = roles
    for _ in range(3):
        clock.now += 1.0
        registrar.count("updates", 5)
        dispatcher.count("publications", 10)
        worker.count("delivered_matches", 20)
        worker.count("busy_seconds", 0.5)
        worker.count("batches")
        worker.observe(LATENCY, [0.02], [20])
        board.post(*(each.measures() for each in roles))
    recent = meter.recent()
    assert recent.events_per_s == pytest.approx(15.0)
    assert recent.matches_per_s == pytest.approx(20.0)
    assert 10 < recent.latency_p50_ms <= recent.latency_p99_ms < 40
    assert recent.worker_busy == pytest.approx((0.5,))
    assert meter.n_batches == 3
    assert meter.tally.n_matches == 60
