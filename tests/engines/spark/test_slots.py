"""Nobody is placed before the slots of a cluster are there, and nobody waits for those that do not come."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ps2stream.engines.spark import slots
from ps2stream.engines.spark.slots import n_slots, telling_of_no_slots, wait_for_slots
from waiting import HANG_S


class Work:
    """An RDD that nobody looks into."""

    def __init__(self, done: list[int], n_tasks: int) -> None:
        self._done, self._n_tasks = done, n_tasks

    def count(self) -> int:
        self._done.append(self._n_tasks)
        return self._n_tasks


class Growing:
    """A context whose executors come while somebody looks: it says how many slots there are, look by look."""

    def __init__(self, *found: int) -> None:
        self.found: Iterator[int] = iter(found)
        self.done: list[int] = []

    def parallelize(self, numbers: range, n_tasks: int) -> Work:
        return Work(self.done, n_tasks)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass with every look, and none otherwise."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += 1.0

    monkeypatch.setattr("ps2stream.engines.spark.slots.time.sleep", sleep)
    monkeypatch.setattr("ps2stream.engines.spark.slots.time.monotonic", lambda: now)


def waited(context: Any, n_needed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(slots, "n_slots", lambda context: next(context.found))
    return wait_for_slots(context, n_needed, patience_s=3.0)


def test_slots_that_come_one_after_the_other_are_waited_for_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = Growing(2, 2, 2, 4, 4, 4, 6, 8)
    with caplog.at_level(logging.WARNING):
        assert waited(context, 6, monkeypatch) == 6
    assert list(context.found) == [8]
    assert context.done == [6], "executors that come only for work were asked for"
    assert not caplog.records


def test_slots_that_do_not_come_are_given_up_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = Growing(2, 4, 4, 4, 4, 6)
    with caplog.at_level(logging.WARNING):
        assert waited(context, 6, monkeypatch) == 4
    assert list(context.found) == [6]
    words = "6 workers share 4 slots of the cluster: they will wait for each other"
    assert [record.getMessage() for record in caplog.records] == [words]


class Empty:
    """A context of a cluster without a slot for us; ``looked``: somebody has asked for them."""

    master = "spark://host:7077"

    def __init__(self) -> None:
        self.looked = threading.Event()


def test_who_waits_for_a_first_slot_is_told_why_nothing_happens(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context: Any = Empty()

    def none(context: Empty) -> int:
        context.looked.set()
        return 0

    monkeypatch.setattr(slots, "n_slots", none)
    with caplog.at_level(logging.WARNING), telling_of_no_slots(context, after_s=0.0):
        assert context.looked.wait(HANG_S)
    (record,) = caplog.records
    assert "no executor has come from spark://host:7077 for 0 s" in record.getMessage()
    assert "a driver that is paused" in record.getMessage()


@pytest.mark.parametrize("found", [2, Py4JError("gone")])
def test_nobody_is_told_of_slots_that_are_there_or_of_a_jvm_that_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, found: int | Exception
) -> None:
    context: Any = Empty()

    def look(context: Empty) -> int:
        context.looked.set()
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(slots, "n_slots", look)
    with caplog.at_level(logging.WARNING), telling_of_no_slots(context, after_s=0.0):
        assert context.looked.wait(HANG_S)
    with telling_of_no_slots(context, after_s=HANG_S):
        pass
    assert not caplog.records


def test_spark_says_how_many_slots_there_are(spark: SparkSession) -> None:
    assert n_slots(spark.sparkContext) == spark.sparkContext.defaultParallelism
