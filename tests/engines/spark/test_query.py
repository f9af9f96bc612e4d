"""The loop over batches: one after the other, ended by a failure or from outside."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from ps2stream.engines.spark.query import BatchLoop
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


def test_what_is_there_is_processed_and_what_is_added_later_too(spark: SparkSession) -> None:
    steps = Steps(3)
    loop = BatchLoop(spark.sparkContext, steps)
    try:
        for n_done in (3, 5, 6):
            assert loop.process_all_available()
            assert steps.n_done == n_done
            steps.left += 2 if n_done == 3 else 1
    finally:
        loop.stop()
    assert loop.failure() is None
    wait_for_end(loop)


def test_a_step_that_fails_ends_the_loop_and_whoever_waits_for_it(spark: SparkSession) -> None:
    def fail() -> bool:
        raise ValueError("no")

    loop = BatchLoop(spark.sparkContext, fail)
    assert not loop.process_all_available()
    wait_for_end(loop)
    assert isinstance(loop.failure(), ValueError)
    loop.stop()


def test_the_next_batch_waits_for_its_time_and_stopping_does_not(spark: SparkSession) -> None:
    steps = Steps(2)
    loop = BatchLoop(spark.sparkContext, steps, interval_s=10 * HANG_S)
    deadline = time.monotonic() + HANG_S
    while not steps.n_done and time.monotonic() < deadline:
        time.sleep(0.01)
    loop.stop()
    assert (steps.n_done, steps.left) == (1, 1)
    assert not loop.is_active


def test_a_job_of_spark_that_does_not_end_is_cancelled_when_the_loop_is_stopped(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ps2stream.engines.spark.query._PATIENCE_S", 0.0)
    has_begun = threading.Event()

    def sleep_in_a_task(numbers: object) -> list[int]:
        time.sleep(2 * HANG_S)
        return []

    def step() -> bool:
        has_begun.set()
        spark.sparkContext.parallelize([1], 1).mapPartitions(sleep_in_a_task).collect()
        return True

    loop = BatchLoop(spark.sparkContext, step)
    assert has_begun.wait(HANG_S)
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + HANG_S
    while not tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    loop.stop()
    assert not loop.is_active
    assert loop.failure() is None, "it was stopped"


class Context:
    """A context of Spark with one job, which ends when it is cancelled, if it runs by then."""

    def __init__(self) -> None:
        self.job: threading.Event | None = None
        self.n_cancelled = 0
        self.was_cancelled = threading.Event()
        self.is_used = threading.Event()

    def setJobGroup(self, *about: object, **more: object) -> None: ...  # noqa: N802

    def cancelJobGroup(self, name: str) -> None:  # noqa: N802
        self.n_cancelled += 1
        if self.job is not None:
            self.job.set()
        self.was_cancelled.set()


def test_a_job_that_begins_after_the_loop_was_stopped_is_cancelled_too(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ps2stream.engines.spark.query._PATIENCE_S", 0.0)
    context: Any = Context()

    def step() -> bool:
        context.is_used.set()
        assert context.was_cancelled.wait(HANG_S)  # in code of ours, where nothing can be cancelled
        job = threading.Event()
        context.job = job
        assert job.wait(HANG_S), "nobody cancelled it"
        return True

    loop = BatchLoop(context, step)
    assert context.is_used.wait(HANG_S)
    loop.stop()
    assert not loop.is_active
    assert context.n_cancelled >= 2
    assert loop._failure is None


def test_stopping_waits_for_the_step_even_if_the_jvm_has_gone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ps2stream.engines.spark.query._PATIENCE_S", 0.0)
    context: Any = Context()
    may_end = threading.Event()

    def gone(name: str) -> None:
        may_end.set()
        raise Py4JNetworkError("Answer from Java side is empty")

    def step() -> bool:
        context.is_used.set()
        assert may_end.wait(HANG_S)
        return True

    context.cancelJobGroup = gone
    loop = BatchLoop(context, step)
    assert context.is_used.wait(HANG_S)
    loop.stop()
    assert not loop.is_active
    assert loop._failure is None


def test_a_step_may_stop_its_own_loop(spark: SparkSession) -> None:
    context: Any = Context()
    loops: list[BatchLoop] = []
    has_loop = threading.Event()

    def step() -> bool:
        assert has_loop.wait(HANG_S)
        loops[0].stop()
        return True

    loops.append(BatchLoop(context, step))
    has_loop.set()
    wait_for_end(loops[0])
    assert loops[0]._failure is None
    loops[0].stop()
