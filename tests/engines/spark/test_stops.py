"""Stop a job from outside, or take its disk away; it says what is wrong, and goes on when it may."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import small_disk
from engines.spark.processes import Job, journal_events, publishing, wait_until_gone
from laws.engines import JobHome, sorted_outcome
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

pytestmark = pytest.mark.slow


def assert_as_the_oracle_says(job_home: JobHome) -> None:
    expected = sorted_outcome(oracle.run(journal_events(job_home)))
    assert job_home.outcome([]) == expected
    assert expected.matches


def stderr_of(job_home: JobHome) -> str:
    return (job_home.directory / "stderr").read_text(errors="replace")


def test_ctrl_c_ends_a_job_that_goes_on_later(job_home: JobHome) -> None:
    events = random_events(4_000, seed=81, n_subscription_ids=100)
    with publishing(job_home, events, seed=81):
        for _ in range(2):
            with Job(job_home.directory) as job:
                assert job.wait_for_batches(2)
                job.interrupt()
                assert job.wait() == 130
                assert wait_until_gone(job.pid) == []
    with Job(job_home.directory, batch_events=2_000) as job:
        assert job.wait() == 0
    assert_as_the_oracle_says(job_home)


def test_a_second_job_on_the_same_state_says_so_and_does_no_harm(job_home: JobHome) -> None:
    events = random_events(2_000, seed=82, n_subscription_ids=100)
    with publishing(job_home, events, seed=82), Job(job_home.directory) as first:
        assert first.wait_for_batches(1)
        with Job(job_home.directory) as second:
            assert second.wait() == 1
        assert f"error: another job is running on the state in {job_home.state}" in stderr_of(job_home)
        assert first.wait_for_batches(1)
        (job_home.directory / "published").touch()
        assert first.wait() == 0
    with Job(job_home.directory, batch_events=2_000) as job:
        assert job.wait() == 0
    assert_as_the_oracle_says(job_home)


@pytest.fixture
def disk(job_home: JobHome) -> Iterator[Path]:
    """Put state and output on a file system of a few megabytes."""
    with small_disk(job_home.directory / "disk", "64m") as mounted:
        for directory in (job_home.state, job_home.out):
            (mounted / directory.name).mkdir()
            directory.symlink_to(mounted / directory.name)
        yield mounted


def fill(disk: Path, leave_bytes: int) -> None:
    """Take all space but a rest; the job takes some at the same time, so try until it fits."""
    size = 0
    with (disk / "ballast").open("wb") as ballast:
        while (free := os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - leave_bytes) > 0:
            with contextlib.suppress(OSError):
                os.posix_fallocate(ballast.fileno(), size, free)
                size += free


@pytest.mark.parametrize("leave_bytes", [0, 20_000, 200_000])
def test_a_full_disk_ends_the_job_with_its_reason_and_space_lets_it_go_on(
    job_home: JobHome, disk: Path, leave_bytes: int
) -> None:
    events = random_events(8_000, seed=83, n_subscription_ids=100)
    with publishing(job_home, events, seed=83):
        with Job(job_home.directory) as job:
            assert len(job.wait_for_batches(2)) == 2
            fill(disk, leave_bytes)
            assert job.wait() == 1
            assert wait_until_gone(job.pid) == []
        message = [line for line in stderr_of(job_home).splitlines() if line.startswith("error: ")][-1]
        assert message.startswith("error: no space left")
        # Spark does not say which of its files did not fit; we name where they are.
        assert any(
            where in message for where in (str(job_home.state), str(job_home.out), "that of the state")
        )
        # Nor does it start while the disk is full; what it has is not touched by trying.
        with Job(job_home.directory) as job, contextlib.suppress(subprocess.TimeoutExpired):
            assert job.wait(60) == 1
        (disk / "ballast").unlink()
        with Job(job_home.directory) as job:
            assert job.wait_for_batches(1)
            time.sleep(0.3)
    with Job(job_home.directory, batch_events=2_000) as job:
        assert job.wait() == 0, stderr_of(job_home)[-3_000:]
    assert_as_the_oracle_says(job_home)
