"""Roles rest after a commit for as long as it took, within a limit."""

from __future__ import annotations

import pytest

from ps2stream.resident.pace import Pace


class Clock:
    """Time that passes when somebody sleeps, or is told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def pace(self, share: float = 1.0, most_s: float = 0.01) -> Pace:
        return Pace(share, most_s, lambda: self.now, self.sleep)


def test_a_role_rests_as_long_as_its_commit_took() -> None:
    clock = Clock()
    pace = clock.pace()
    pace.committed(0.004)
    pace.rest()
    assert clock.slept == [pytest.approx(0.004)]


def test_a_rest_has_a_limit() -> None:
    clock = Clock()
    pace = clock.pace(share=3.0, most_s=0.03)
    pace.committed(5.0)
    pace.rest()
    assert clock.slept == [pytest.approx(0.03)]


def test_a_rest_begins_when_the_commit_ended() -> None:
    clock = Clock()
    pace = clock.pace()
    pace.committed(0.004, ago_s=0.003)
    pace.rest()
    assert clock.slept == [pytest.approx(0.001)]


def test_who_comes_first_after_a_while_is_served_at_once() -> None:
    clock = Clock()
    pace = clock.pace()
    pace.rest()
    pace.committed(0.004)
    clock.now += 1.0
    pace.rest()
    assert clock.slept == []
