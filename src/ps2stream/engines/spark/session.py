"""A Spark session for the embedded use: one machine, nothing else running."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from ps2stream.engines.spark.java import require_java

_SETTINGS = {
    "spark.python.daemon.module": "ps2stream.engines.spark.daemon",
    # Nobody looks at it on an embedded default, and it costs a port and memory a batch.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark remembers a thousand jobs and stages for its user interface: minutes of growth for nobody.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    # Few instructions of a batch are Java's: compiling them a second time, and better, took more of two cores
    # in the first minutes than it gave back.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # A batch is a few small tasks: waiting for a better place only costs time on one machine.
    "spark.locality.wait": "0s",
    # Spark writes two small files a batch. By default each starts several processes to look at and to set
    # permissions, 110 ms in all; so they are written and renamed, as atomically, in a tenth of it.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # The newest offsets are all that recovery needs.
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.log.level": "ERROR",
    # Retried tasks are how a killed Python process is survived (local mode does not retry by itself).
    "spark.task.maxFailures": "4",
    "spark.sql.shuffle.partitions": "2",
}


def local_session(
    app_name: str, *, cores: int | None = None, memory: str = "2g", log: Path | None = None
) -> SparkSession:
    """Return a session on this machine with settings that suit PS2Stream.

    What the JVM and Spark's Python processes write to stderr goes to ``log`` if one is given: a
    screen of ours should show our words only.

    ``local[n, 4]`` lets a task fail three times before the job does: plain ``local[n]`` would end
    the job with the first Python process that is killed.
    """
    require_java()
    # Python processes of Spark must be this very interpreter, with its packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Without an address of its own Spark asks the name service, which on a laptop may hang.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores or '*'},4]").appName(app_name)
    builder = builder.config("spark.driver.memory", memory)
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    with _stderr_to(log):
        return builder.getOrCreate()


@contextlib.contextmanager
def _stderr_to(path: Path | None) -> Iterator[None]:
    """Let processes that are started meanwhile inherit a file as their stderr."""
    if path is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


def warm_up(spark: SparkSession) -> None:
    """Start the Python daemon and as many processes as there are cores, before anybody waits for them."""
    n = spark.sparkContext.defaultParallelism
    spark.range(0, n, 1, n).mapInArrow(_unchanged, "id long").count()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
