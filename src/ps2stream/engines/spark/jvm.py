"""The JVM that Spark runs in: a child of this process, in a process group of its own.

A shell signals a whole group: Ctrl-C, ``kill %1`` and ``timeout`` would end the JVM before we have said a
word to it. It hears from us alone, through its stdin: when that closes, because we are done or were killed,
it ends by itself and takes along the Python processes that it started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from ps2stream.errors import EngineError

#: A JVM that removes its temporary files takes a second or two.
_PATIENCE_S = 10.0


def launch_jvm(settings: Mapping[str, str], log: Path | None) -> None:
    """Start the JVM of this process with Spark's settings, unless it has one.

    What it and the processes that it starts write to stderr goes to ``log`` if one is given.
    """
    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with _appended(log) as stderr:
        try:
            options = {"process_group": 0, "stderr": stderr}
            gateway: Any = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            where = f"; what it wrote is in {log}" if log else ""
            raise EngineError(f"the JVM that Spark runs in ended while it started{where}") from error
    SparkContext._ensure_initialized(gateway=gateway)


def tell_its_end_in_one_line(context: SparkContext) -> None:
    """Keep PySpark from printing a traceback when the JVM ends, whose accumulators it waits for."""
    server: Any = context._accumulatorServer
    handle_error = server.handle_error

    def handle_other_errors(request: object, address: object) -> None:
        if not isinstance(sys.exception(), EOFError | OSError):
            handle_error(request, address)

    server.handle_error = handle_other_errors


def jvm_ended(patience_s: float = 1.0) -> str:
    """Say how the JVM ended; nothing while it runs, or where it is not ours.

    ``patience_s``: its connections break a moment before it is gone.
    """
    process = _process()
    if process is None:
        return ""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    if process.returncode is None:
        return ""
    if process.returncode < 0:
        how = f"was killed by {signal.Signals(-process.returncode).name}"
    else:
        how = f"ended with exit code {process.returncode}"
    return f"the JVM that Spark runs in {how}"


def end_jvm() -> None:
    """End the JVM without a word to it, and wait until it is gone."""
    process = _process()
    if process is None:
        return
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _appended(path: Path | None) -> Iterator[IO[bytes] | None]:
    if path is None:
        yield None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        yield file


def _process() -> subprocess.Popen[bytes] | None:
    gateway: Any = SparkContext._gateway
    return gateway.proc if gateway is not None else None
