"""The loop over batches: one after the other, ended by a failure or from outside."""

from __future__ import annotations

import threading
import time

from ps2stream.engines.batch_loop import BatchLoop
from waiting import HANG_S


class Steps:
    """A number of batches, and nothing after them."""

    def __init__(self, n_batches: int) -> None:
        self.left, self.n_done = n_batches, 0

    def __call__(self) -> bool:
        if not self.left:
            return False
        self.left -= 1
        self.n_done += 1
        return True


def wait_for_end(loop: BatchLoop) -> None:
    deadline = time.monotonic() + HANG_S
    while loop.is_active and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not loop.is_active


def test_what_is_there_is_processed_and_what_is_added_later_too() -> None:
    steps = Steps(3)
    loop = BatchLoop(steps)
    try:
        for n_done in (3, 5, 6):
            assert loop.process_all_available()
            assert steps.n_done == n_done
            steps.left += 2 if n_done == 3 else 1
    finally:
        loop.stop()
    assert loop.failure() is None
    wait_for_end(loop)


def test_a_step_that_fails_ends_the_loop_and_whoever_waits_for_it() -> None:
    def fail() -> bool:
        raise ValueError("no")

    loop = BatchLoop(fail)
    assert not loop.process_all_available()
    wait_for_end(loop)
    assert isinstance(loop.failure(), ValueError)
    loop.stop()


def test_the_next_batch_waits_for_its_time_and_stopping_does_not() -> None:
    steps = Steps(2)
    loop = BatchLoop(steps, interval_s=10 * HANG_S)
    deadline = time.monotonic() + HANG_S
    while not steps.n_done and time.monotonic() < deadline:
        time.sleep(0.01)
    loop.stop()
    assert (steps.n_done, steps.left) == (1, 1)
    assert not loop.is_active


def test_a_step_may_stop_its_own_loop() -> None:
    loops: list[BatchLoop] = []
    has_loop = threading.Event()

    def step() -> bool:
        assert has_loop.wait(HANG_S)
        loops[0].stop()
        return True

    loops.append(BatchLoop(step))
    has_loop.set()
    wait_for_end(loops[0])
    assert loops[0]._failure is None
    loops[0].stop()
