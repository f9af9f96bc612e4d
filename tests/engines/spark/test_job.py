"""Batches of DataFrames without seq: any division of the work, a rerun, a retry all give one order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from engines.spark.dataframes import in_partitions, numbered_as_they_come
from laws.engines import JobHome, one_batch, sorted_outcome
from ps2stream.config import Settings
from ps2stream.engines.spark.job import MicroBatchJob, SparkTasks
from ps2stream.planning.first_plan import first_plan
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=3, n_dispatchers=2)


class _CrashError(Exception):
    """The driver dies here."""


def frames_of(spark: SparkSession, seed: int, partitions: tuple[int, ...]) -> list[DataFrame]:
    """Make a batch for each number of partitions, of ids that come, go and come again."""
    size = 250
    events = random_events(size * len(partitions), seed, invalid_share=0.1, n_subscription_ids=60)
    return [in_partitions(spark, events.slice(n * size, size), parts) for n, parts in enumerate(partitions)]


def started(spark: SparkSession, home: JobHome, settings: Settings = SETTINGS) -> MicroBatchJob:
    """Start a job, again if it has a state."""
    state = State.at(home.state)
    if not state.job_file.exists():
        state.create(first_plan(one_batch(random_events(300, 1)), settings), settings, numbers_events=True)
    job = MicroBatchJob(
        spark,
        state.open(settings, numbers_events=True),
        settings,
        ParquetSink.at(home.out),
        snapshot_every=100,
    )
    job.start()
    return job


def assert_as_the_oracle_says(home: JobHome, frames: list[DataFrame]) -> None:
    ParquetSink.at(home.out).finish()
    expected = sorted_outcome(oracle.run(numbered_as_they_come([frame.toArrow() for frame in frames])))
    assert home.outcome([]) == expected
    assert len(expected.matches) > 50 * len(frames)
    assert len(expected.rejected) > 5 * len(frames)


def files_of(home: JobHome) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.out.rglob("*.parquet")}


@pytest.mark.parametrize(
    ("n_workers", "n_dispatchers", "partitions"),
    [
        pytest.param(1, 1, (1, 3), marks=pytest.mark.slow),
        (2, 3, (5, 1, 2)),
        pytest.param(8, 1, (2, 4), marks=pytest.mark.slow),
        (3, 4, (3, 3)),
    ],
)
def test_the_order_of_events_without_seq_is_the_same_however_the_work_is_divided(
    spark: SparkSession, tmp_path: Path, n_workers: int, n_dispatchers: int, partitions: tuple[int, ...]
) -> None:
    home, frames = JobHome(tmp_path), frames_of(spark, 70 + n_workers, partitions)
    job = started(spark, home, replace(SETTINGS, n_workers=n_workers, n_dispatchers=n_dispatchers))
    for batch_id, frame in enumerate(frames):
        job.process_events(frame, batch_id)
    assert_as_the_oracle_says(home, frames)


@pytest.mark.parametrize(
    ("owner", "step"), [(MicroBatchJob, "_update"), (SparkTasks, "match"), (MicroBatchJob, "_observe")]
)
def test_a_batch_without_seq_that_runs_again_gets_the_same_seqs(
    spark: SparkSession, tmp_path: Path, owner: type, step: str
) -> None:
    """Between spool and decision, between decision and matches, and when all is done but noted by Spark."""
    home, frames = JobHome(tmp_path), frames_of(spark, 81, (2, 3, 2))
    job = started(spark, home)
    job.process_events(frames[0], 0)

    def die(*_: Any, **more: Any) -> None:
        raise _CrashError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, step, die)
        with pytest.raises(_CrashError):
            job.process_events(frames[1], 1)
    written = files_of(home)
    job = started(spark, home)
    job.process_events(frames[1], 1)
    assert written.items() <= files_of(home).items(), "what was there is there, byte for byte"
    job.process_events(frames[2], 2)
    assert_as_the_oracle_says(home, frames)


def test_a_task_that_is_tried_again_leaves_nothing_among_what_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    # In here: processes of Spark do not find the modules of tests.
    def failing_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Hand on rows; the first attempt of a task of the second partition fails half way."""
        task = TaskContext.get()
        assert task is not None
        for batch in batches:
            if (task.partitionId(), task.attemptNumber()) == (1, 0):
                yield batch.slice(0, batch.num_rows // 2)
                raise RuntimeError("half way")
            yield batch

    home, frames = JobHome(tmp_path), frames_of(spark, 91, (3, 3))
    job = started(spark, home)
    for batch_id, frame in enumerate(frames):
        job.process_events(frame.mapInArrow(failing_once, frame.schema), batch_id)
    assert_as_the_oracle_says(home, frames)
    assert not list(home.state.glob("spool/*"))
