"""Reports as Spark writes them, shortened; each became pages on a user's terminal before."""

from __future__ import annotations

import pytest

from ps2stream.engines.spark.failures import death_of, failure_line

_PLAN = "\n=== Streaming Query ===\nLogical Plan:\n~WriteToMicroBatchDataSourceV1 ForeachBatchSink\n"
_HEAD = "[STREAM_FAILED] Query [id = 88b4] terminated with exception: "

READER_KILLED = (
    f"{_HEAD} SQLSTATE: XXKST (no cause message){_PLAN}\njava.io.EOFException\n"
    "\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:397)\n"
    "\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset(P.scala:1)"
)
READER_LATE = (
    f"{_HEAD}Python worker failed to connect back.{_PLAN}\norg.apache.spark.SparkException: Python worker "
    "failed to connect back.\nCaused by: java.net.SocketTimeoutException: Timed out while waiting for the "
    "Python worker to connect back"
)
TASKS_KILLED = (
    f"{_HEAD}An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last)\n"
    '  File "job.py", line 1, in process\n'
    "py4j.protocol.Py4JJavaError: An error occurred while calling z:collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 failed 4 times\n"
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n"
    "Caused by: java.io.EOFException"
)
DAEMON_KILLED = (
    "Py4JJavaError: An error occurred while calling z:org.apache.spark.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: EOFException occurred while reading the port number from "
    "ps2stream.engines.spark.daemon's stdout.\n"
    "\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(S.scala:55)\n"
    "\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:382)"
)
OF_JAVA = (
    "Py4JJavaError: An error occurred while calling z:org.apache.spark.PythonRDD.collectAndServe.\n"
    ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat S.scala:1\n"
)
OWN = (
    f"{_HEAD}Traceback (most recent call last):\n"
    "ps2stream.errors.StateError: subscription log /h/state/log is damaged\n"
    "java.io.EOFException\n\tat PythonStreamingSourceRunner"
)
BUG = (
    f"{_HEAD}Job aborted due to stage failure: org.apache.spark.api.python.PythonException: Traceback\n"
    '  File "worker.py", line 1, in main\nKeyError: 7\n'
    "Python worker exited unexpectedly"
)
FULL = f"{_HEAD}No space left on device{_PLAN}"


@pytest.mark.parametrize(
    ("report", "death"),
    [
        (READER_KILLED, "the process that reads the source died"),
        (READER_LATE, "a Python process did not start in time"),
        (TASKS_KILLED, "a process that runs tasks died"),
        (DAEMON_KILLED, "a process that runs tasks died"),
        (OF_JAVA, ""),
        (OWN, ""),
        (BUG, ""),
        (FULL, ""),
    ],
)
def test_a_death_is_told_from_an_error_that_would_come_again(report: str, death: str) -> None:
    assert death_of(report) == death


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (OWN, "subscription log /h/state/log is damaged"),
        (BUG, "the stream failed: KeyError: 7"),
        (OF_JAVA, "the stream failed: java.lang.IllegalStateException: Cannot call methods on a stopped"),
        (FULL, "no space left on a disk that Spark writes to"),
        ("", "the stream failed: Spark does not say why"),
        (f"something else{_PLAN}", "the stream failed: something else"),
        ("x" * 10_000, f"the stream failed: {'x' * 300}..."),
    ],
)
def test_a_failure_is_one_line_without_plans_and_traces(report: str, words: str) -> None:
    said = failure_line(report)
    assert said.startswith(words)
    assert "\n" not in said
    assert "Logical Plan" not in said
