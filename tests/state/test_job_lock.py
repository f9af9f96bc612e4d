"""One job at a time holds a state, until it ends however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from disks import small_disk
from ps2stream.errors import StateError
from ps2stream.state.job_lock import JobLock

_HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


def test_a_state_that_another_process_holds_is_an_error_until_that_ends_however_it_ends(
    tmp_path: Path,
) -> None:
    lock = JobLock(tmp_path / "state" / "lock")
    with lock.held():
        pass
    command = [sys.executable, "-c", _HOLD, str(lock.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match="another job is running on the state in"), lock.held():
            pytest.fail("two jobs on one state")
        holder.send_signal(signal.SIGKILL)
    with lock.held():
        pass


def test_a_job_is_running_while_it_holds_its_state(tmp_path: Path) -> None:
    lock = JobLock(tmp_path / "lock")
    assert not lock.is_held()
    with lock.held():
        assert JobLock(tmp_path / "lock").is_held()
    assert not lock.is_held()
    assert not JobLock(tmp_path / "lock").is_held(), "looking does not hold it"


def test_who_looks_writes_nothing(tmp_path: Path) -> None:
    assert not JobLock(tmp_path / "state" / "lock").is_held()
    assert list(tmp_path.iterdir()) == []


def test_on_a_read_only_disk_one_can_look(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        lock = JobLock(disk / "lock")
        with lock.held():
            pass
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert not lock.is_held()
