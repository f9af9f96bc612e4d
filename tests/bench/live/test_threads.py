"""Seconds of threads are told apart by process and by the names that clients of Kafka give to theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ps2stream_bench.live.threads import between, seconds_by_part

TICKS = os.sysconf("SC_CLK_TCK")
ENGINE, JAVA, ROLE, BROKER = 10, 11, 12, 20


def run(proc: Path, pid: int, parent: int, command: str, **threads: float) -> None:
    """Let a process be there with threads, by name and seconds."""
    directory = proc / str(pid)
    (directory / "task").mkdir(parents=True)
    (directory / "cmdline").write_text(command)
    (directory / "stat").write_text(f"{pid} (a name) S {parent} {' '.join(['0'] * 20)}\n")
    for number, (name, seconds) in enumerate(threads.items()):
        task = directory / "task" / str(1000 * pid + number)
        task.mkdir()
        fields = ["S", parent, *[0] * 9, round(seconds * TICKS), 0, *[0] * 8]
        (task / "stat").write_text(f"1 ({name.replace('_', ':')}) {' '.join(map(str, fields))}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    run(tmp_path, ENGINE, 1, "python", python=1.0, rdk_main=0.5)
    run(tmp_path, JAVA, ENGINE, "/usr/bin/java\0-cp", main=2.0)
    run(tmp_path, ROLE, JAVA, "python", python=4.0, rdk_broker1=0.25)
    run(tmp_path, BROKER, 1, "java", main=3.0)
    run(tmp_path, 30, 1, "python", python=9.0)
    run(tmp_path, os.getpid(), 1, "python", python=0.5)
    return tmp_path


def test_seconds_belong_to_roles_their_clients_java_and_the_broker(proc: Path) -> None:
    assert seconds_by_part(ENGINE, BROKER, proc) == {
        "roles": 4.0,
        "roles' Kafka clients": 0.25,
        "driver": 1.5,
        "Java": 2.0,
        "broker": 3.0,
        "senders and observer": 0.5,
    }


def test_a_broker_elsewhere_has_no_seconds_here(proc: Path) -> None:
    assert seconds_by_part(ENGINE, None, proc)["broker"] == 0.0


def test_differences_are_what_counts(proc: Path) -> None:
    before = seconds_by_part(ENGINE, BROKER, proc)
    assert set(between(before, before).values()) == {0.0}
