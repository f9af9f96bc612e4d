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
_ABORTED = (
    "Py4JJavaError: An error occurred while calling z:org.apache.spark.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: "
)
EXECUTORS_KILLED = (
    f"{_ABORTED}Task 3 in stage 17.0 failed 8 times, most recent failure: Lost task 3.7 in stage 17.0 "
    "(TID 61) (10.0.0.11 executor 9): ExecutorLostFailure (executor 9 exited caused by one of the "
    "running tasks) Reason: Command exited with code 137\nDriver stacktrace:\n"
)
PACKETS_LOST = (
    f"{_ABORTED}ResultStage 7 (collect at job.py:1) has failed the maximum allowable number of times: 8. "
    "Most recent failure reason:\norg.apache.spark.shuffle.MetadataFetchFailedException: Missing an output "
    "location for shuffle 6 partition 3"
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
        (EXECUTORS_KILLED, "executors died, one after the other"),
        (PACKETS_LOST, "executors died, one after the other"),
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
