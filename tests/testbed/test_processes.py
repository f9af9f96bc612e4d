from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import processes
from testbed.errors import BedError
from waiting import HANG_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a bed needs Linux")
# No bed has this name: what tests start must not be taken for the process of one.
_BED = f"ps2b0-{os.getpid()}"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "log"
    processes.kill_all(lambda: processes.marked(_BED))


def spawned(script: str, log: Path) -> int:
    return processes.spawn(["/bin/sh", "-c", script], {**os.environ, processes.MARK: _BED}, log)


def test_processes_are_found_by_their_mark_and_so_are_those_they_started(log: Path) -> None:
    pid = spawned("sleep 1000 & echo ready; wait", log)
    processes.wait_until(
        lambda: "ready" in read(log), "the shell", lambda: processes.is_alive(pid), log, HANG_S
    )
    assert pid in processes.marked(_BED)
    assert len(processes.marked(_BED)) == 2
    processes.kill_all(lambda: processes.marked(_BED))
    assert processes.marked(_BED) == set()
    assert not processes.is_alive(pid)


def test_a_process_that_ends_while_it_should_start_is_told_with_its_last_words(log: Path) -> None:
    pid = spawned("echo no such disk; exit 1", log)
    with pytest.raises(BedError, match=r"the shell ended while it started(.|\n)*no such disk"):
        processes.wait_until(lambda: False, "the shell", lambda: processes.is_alive(pid), log, HANG_S)


def test_a_process_that_does_nothing_is_not_waited_for_without_end(log: Path) -> None:
    pid = spawned("exec sleep 1000", log)
    with pytest.raises(BedError, match="the shell is not ready"):
        processes.wait_until(lambda: False, "the shell", lambda: processes.is_alive(pid), log, 0.0)


def test_a_process_keeps_nothing_open_that_was_handed_down_to_whoever_starts_it(
    log: Path, tmp_path: Path
) -> None:
    """A lock that a command was started under (`flock lock ./dev kafka up`) must be free when that ended."""
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(descriptor, True)
    try:
        pid = spawned("echo ready; exec sleep 1000", log)
        processes.wait_until(
            lambda: "ready" in read(log), "the shell", lambda: processes.is_alive(pid), log, HANG_S
        )
        assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
    finally:
        os.close(descriptor)


def read(log: Path) -> str:
    return log.read_text() if log.exists() else ""
