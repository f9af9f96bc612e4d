"""A session of our own: what goes wrong while it starts or runs is one line, and it is stopped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from engines.spark.test_failures import BUG, DAEMON_KILLED
from ps2stream.engines.spark import session
from ps2stream.engines.spark.session import own_session
from ps2stream.errors import ConfigError, EngineError

LOG = Path("/h/spark.log")


class OfJava(Py4JJavaError):  # type: ignore[misc]  # noqa: N818
    """An exception of Java whose words are known here; py4j would ask the JVM for them."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __str__(self) -> str:
        return self._words


class Session:
    """Count how often it is stopped."""

    def __init__(self) -> None:
        self.n_stopped = 0

    def stop(self) -> None:
        self.n_stopped += 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in for Spark: it starts, and its JVM runs."""
    found = Session()
    monkeypatch.setattr(session, "require_java", lambda: None)
    monkeypatch.setattr(session, "local_session", lambda *words, **more: found)
    monkeypatch.setattr(session, "warm_up", lambda spark: None)
    monkeypatch.setattr(session, "jvm_ended", lambda patience_s: "")
    return found


def _raising(error: Exception) -> Any:
    def fail(*words: object, **more: object) -> None:
        raise error

    return fail


def test_what_fails_meanwhile_is_raised_and_the_session_is_stopped(spark: Any) -> None:
    with (
        pytest.raises(ConfigError, match="no kernels"),
        own_session("app", log=LOG, meanwhile=_raising(ConfigError("no kernels"))),
    ):
        raise AssertionError("it must not get here")
    assert spark.n_stopped == 1


def test_without_java_nothing_is_done_meanwhile(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "require_java", _raising(ConfigError("no Java")))
    done: list[str] = []
    with (
        pytest.raises(ConfigError, match="no Java"),
        own_session("app", log=LOG, meanwhile=lambda: done.append("work")),
    ):
        raise AssertionError("it must not get here")
    assert done == []


@pytest.mark.parametrize("when", ["local_session", "warm_up"])
def test_a_jvm_that_dies_while_it_starts_is_told_in_one_line(
    spark: Any, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(session, when, _raising(Py4JNetworkError("Answer from Java side is empty")))
    monkeypatch.setattr(session, "jvm_ended", lambda patience_s: "the JVM was killed")
    with (
        pytest.raises(EngineError, match=rf"^the JVM was killed; what it wrote is in {LOG}$"),
        own_session("app", log=LOG),
    ):
        raise AssertionError("it must not get here")


def test_a_python_process_that_dies_while_it_starts_is_left_to_the_stream(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "warm_up", _raising(OfJava(DAEMON_KILLED)))
    with own_session("app", log=LOG) as started:
        assert id(started) == id(spark)
    assert spark.n_stopped == 1


def test_an_error_of_the_first_processes_is_told_in_one_line(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "warm_up", _raising(OfJava(BUG)))
    with pytest.raises(EngineError) as caught, own_session("app", log=LOG):
        raise AssertionError("it must not get here")
    assert str(caught.value) == f"the stream failed: KeyError: 7; what Spark wrote is in {LOG}"


def test_the_session_is_stopped_when_the_work_is_done_or_fails(spark: Any) -> None:
    with own_session("app", log=LOG) as started:
        assert id(started) == id(spark)
    with pytest.raises(ValueError, match="mine"), own_session("app", log=LOG):
        raise ValueError("mine")
    assert spark.n_stopped == 2


class _Stop(Exception):  # noqa: N818
    """End a start once its settings are known."""


_CONF = {"spark.locality.wait": "9s", "spark.executor.memory": "8g", "spark.driver.memory": "5g"}


@pytest.mark.parametrize(
    ("master", "start"),
    [
        ("local[2,4]", lambda: session.local_session("app", cores=2, conf=_CONF)),
        ("spark://h:7077", lambda: session.cluster_session("app", "spark://h:7077", conf=_CONF)),
    ],
)
def test_settings_that_are_given_go_before_ours(
    monkeypatch: pytest.MonkeyPatch, master: str, start: Callable[[], object]
) -> None:
    known: dict[str, str] = {}

    def launch(settings: dict[str, str], log: Path | None) -> None:
        known.update(settings)
        raise _Stop

    monkeypatch.setattr(session, "require_java", lambda: None)
    monkeypatch.setattr(session, "launch_jvm", launch)
    monkeypatch.setattr(os, "environ", dict(os.environ))  # what is set for Spark must not stay
    with pytest.raises(_Stop):
        start()
    assert known["spark.master"] == master
    assert known["spark.ui.enabled"] == "false", "what is not given stays ours"
    assert {name: known[name] for name in _CONF} == _CONF
