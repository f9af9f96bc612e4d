"""What the steps of a loop begin on Spark is cancelled when the loop is stopped."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from ps2stream.engines.spark.query import spark_loop
from waiting import HANG_S


def test_a_job_of_spark_that_does_not_end_is_cancelled_when_the_loop_is_stopped(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ps2stream.engines.batch_loop._PATIENCE_S", 0.0)
    has_begun = threading.Event()

    def sleep_in_a_task(numbers: object) -> list[int]:
        time.sleep(2 * HANG_S)
        return []

    def step() -> bool:
        has_begun.set()
        spark.sparkContext.parallelize([1], 1).mapPartitions(sleep_in_a_task).collect()
        return True

    loop = spark_loop(spark.sparkContext, step)
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
    monkeypatch.setattr("ps2stream.engines.batch_loop._PATIENCE_S", 0.0)
    context: Any = Context()

    def step() -> bool:
        context.is_used.set()
        assert context.was_cancelled.wait(HANG_S)  # in code of ours, where nothing can be cancelled
        job = threading.Event()
        context.job = job
        assert job.wait(HANG_S), "nobody cancelled it"
        return True

    loop = spark_loop(context, step)
    assert context.is_used.wait(HANG_S)
    loop.stop()
    assert not loop.is_active
    assert context.n_cancelled >= 2
    assert loop._failure is None


def test_stopping_waits_for_the_step_even_if_the_jvm_has_gone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ps2stream.engines.batch_loop._PATIENCE_S", 0.0)
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
    loop = spark_loop(context, step)
    assert context.is_used.wait(HANG_S)
    loop.stop()
    assert not loop.is_active
    assert loop._failure is None
