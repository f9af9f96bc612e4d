"""The JVM's end, with small processes instead of it; none of these tests starts a JVM."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from ps2stream.engines.spark.jvm import end_jvm, jvm_ended, tell_its_end_in_one_line


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when its stdin does, as Spark's JVM."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, process_group=0) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        yield process
        process.kill()


def test_a_jvm_that_runs_has_not_ended(jvm: subprocess.Popen[bytes]) -> None:
    assert jvm_ended(0.0) == ""


def test_a_killed_jvm_is_told_with_its_signal(jvm: subprocess.Popen[bytes]) -> None:
    jvm.send_signal(signal.SIGKILL)
    jvm.wait()
    assert jvm_ended() == "the JVM that Spark runs in was killed by SIGKILL"


def test_the_jvm_ends_when_its_stdin_does(jvm: subprocess.Popen[bytes]) -> None:
    end_jvm()
    assert jvm.returncode == 0
    assert jvm_ended() == "the JVM that Spark runs in ended with exit code 0"


def test_a_jvm_that_is_not_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for gateway in (None, SimpleNamespace(proc=None)):
        monkeypatch.setattr(SparkContext, "_gateway", gateway)
        end_jvm()
        assert jvm_ended() == ""


def test_that_the_jvm_has_gone_is_not_told_by_a_traceback_of_pyspark() -> None:
    printed: list[object] = []
    server = SimpleNamespace(handle_error=lambda request, address: printed.append(request))
    context: Any = SimpleNamespace(_accumulatorServer=server)
    tell_its_end_in_one_line(context)
    for error in (EOFError(), ConnectionResetError(), ValueError("another")):
        try:
            raise error
        except Exception:
            server.handle_error(type(error), None)
    assert printed == [ValueError]
