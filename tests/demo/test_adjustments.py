from __future__ import annotations

from dataclasses import replace

import pytest

from ps2stream.balance.adjustments import Adjustment, StepRecord
from ps2stream.demo.adjustments import in_words, made_at

LOCAL = Adjustment(
    kind="local",
    batch_id=4,
    at="1970-01-01T00:01:00.500+00:00",
    reason="of course",
    plan_before=1,
    plan_after=2,
    loads_before=(23.0, 10.0),
    loads_expected=(17.0, 16.0),
    steps=(StepRecord("move", 2, 0, 14, (), 6.0, 800_000),),
    n_bytes=812_345,
    pause_s=0.052,
)


def test_one_step_says_from_whom_to_whom() -> None:
    assert in_words(LOCAL) == "moved 14 cells, 812 kB from worker 2 to 0, balance 2.3 -> ~1.1 in 0.05 s"


def test_what_was_counted_takes_the_place_of_what_was_expected() -> None:
    assert "balance 2.3 -> 1.2 in" in in_words(replace(LOCAL, loads_after=(18.0, 15.0)))
    assert "balance 2.3 -> inf in" in in_words(replace(LOCAL, loads_after=(18.0, 0.0)))


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([("move", 2, 0, 1), ("merge", 2, 1, 3)], "moved 4 cells, 812 kB among 3 workers, "),
        ([("move", 2, 0, 1), ("split", 2, 0, 1)], "moved 1 cell, divided 1, 812 kB from worker 2 to 0, "),
        ([("split", 2, 0, 1)], "divided 1 cell, 812 kB from worker 2 to 0, "),
    ],
)
def test_several_steps_are_summed_up(steps: list[tuple[str, int, int, int]], words: str) -> None:
    records = tuple(StepRecord(*step, (), 1.0, 10) for step in steps)
    assert in_words(replace(LOCAL, steps=records)).startswith(words)


def test_plans_come_and_go() -> None:
    switch = replace(LOCAL, kind="switch", steps=(), n_bytes=0)
    assert in_words(switch) == "plan 2 begins to take over, balance 2.3 -> ~1.1"
    unite = replace(LOCAL, kind="unite", steps=(), n_subscriptions=4_821, loads_before=(), loads_expected=())
    assert in_words(unite) == "plan 1 has gone, moved 4,821 subscriptions, 812 kB in 0.05 s"


def test_the_time_is_read() -> None:
    assert made_at(LOCAL) == 60.5
