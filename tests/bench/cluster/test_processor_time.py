"""Seconds are counted by place and kind, and none is lost with a process that ends."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ps2stream_bench.cluster.members import Member
from ps2stream_bench.cluster.processor_time import OUTSIDE, ProcessorTimes, Seconds, Watch, since

DRIVER = 10
TICKS = os.sysconf("SC_CLK_TCK")
EXECUTOR = "java\0-cp\0org.apache.spark.executor.CoarseGrainedExecutorBackend\0--cores\0002"


class System:
    """A made-up list of processes."""

    def __init__(self, home: Path) -> None:
        self.proc, self.namespaces = home / "proc", home / "netns"
        self.proc.mkdir()
        self.namespaces.mkdir()
        for name in ("outside", "bed-h1", "bed-h2", "bed-store"):
            (self.namespaces / name).touch()

    def run(
        self,
        pid: int,
        command: str,
        seconds: float,
        *,
        parent: int = 1,
        on: str = "outside",
        ended: float = 0.0,
    ) -> None:
        """Let a process be there, or have come further."""
        directory = self.proc / str(pid)
        (directory / "ns").mkdir(parents=True, exist_ok=True)
        (directory / "cmdline").write_text(command)
        (directory / "ns" / "net").unlink(missing_ok=True)
        (directory / "ns" / "net").hardlink_to(self.namespaces / on)
        ticks = [round(seconds * TICKS), 0, round(ended * TICKS), 0]
        fields = ["S", parent, *[0] * 9, *ticks, *[0] * 4, 1000 + pid]
        (directory / "stat").write_text(f"{pid} (a (strange) name) {' '.join(map(str, fields))} 0\n")

    def end(self, pid: int) -> None:
        shutil.rmtree(self.proc / str(pid))

    def times(self) -> ProcessorTimes:
        members = [
            Member(name, f"bed-{name}", f"bed-{name}", name != "store") for name in ("h1", "h2", "store")
        ]
        return ProcessorTimes(members, DRIVER, self.proc, self.namespaces)


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def used(seconds: Seconds) -> dict[tuple[str, str], float]:
    return {key: round(value, 6) for key, value in seconds.items() if value > 1e-6}


def test_every_process_counts_where_it_is_and_as_what_it_is(system: System) -> None:
    system.run(DRIVER, "python\0-m\0driver", 1.0)
    system.run(11, "/usr/bin/java\0SparkSubmit", 2.0, parent=DRIVER)
    system.run(20, "java\0org.apache.spark.deploy.worker.Worker", 3.0, on="bed-h1")
    system.run(21, EXECUTOR, 4.0, parent=20, on="bed-h1")
    system.run(22, "python\0-m\0daemon", 5.0, parent=21, on="bed-h1")
    system.run(23, "python\0-m\0daemon", 6.0, parent=21, on="bed-h2")
    system.run(30, "python\0serve-store", 7.0, on="bed-store")
    system.run(40, "somebody else's", 99.0)
    assert used(system.times().read()) == {
        (OUTSIDE, "driver"): 1.0,
        (OUTSIDE, "driver's Java"): 2.0,
        ("h1", "Spark's own"): 3.0,
        ("h1", "executor"): 4.0,
        ("h1", "Python"): 5.0,
        ("h2", "Python"): 6.0,
        ("store", "store"): 7.0,
    }


def test_what_ended_processes_used_is_kept_and_their_last_seconds_are_known_by_the_parent(
    system: System,
) -> None:
    system.run(21, EXECUTOR, 1.0, on="bed-h1", ended=10.0)
    system.run(22, "python", 2.0, parent=21, on="bed-h1")
    times = system.times()
    before = times.read()
    # It ran for another second before it ended; another one came and went unseen, and used 3.
    system.end(22)
    system.run(21, EXECUTOR, 1.5, on="bed-h1", ended=16.0)
    found = since(before, times.read())
    assert used(found) == {("h1", "executor"): 0.5, ("h1", "ended unseen"): 4.0}
    system.end(21)
    assert used(since(before, times.read())) == used(found), "the dead use nothing and take nothing back"


def test_a_process_gets_its_kind_when_it_has_become_itself(system: System) -> None:
    times = system.times()
    system.run(21, "java\0org.apache.spark.deploy.worker.Worker", 0.0, on="bed-h1")
    times.look()
    system.run(21, EXECUTOR, 4.0, on="bed-h1")
    times.look()
    system.run(21, "", 5.0, on="bed-h1")  # it is ending
    assert used(times.read()) == {("h1", "executor"): 5.0}


def test_a_number_that_is_used_again_is_another_process(system: System) -> None:
    times = system.times()
    system.run(50, "python", 2.0, on="bed-h1")
    times.look()
    system.run(50, "python", 0.5, on="bed-h1")
    stat = system.proc / "50" / "stat"
    stat.write_text(stat.read_text().replace("1050", "7777"))
    assert used(times.read()) == {("h1", "Python"): 2.5}


def test_a_watch_looks_by_itself_and_ends_with_its_context(system: System) -> None:
    system.run(DRIVER, "python", 1.0)
    times = system.times()
    with Watch(times) as watch:
        assert watch.is_alive()
    assert not watch.is_alive()


def test_the_real_system_can_be_read() -> None:
    times = ProcessorTimes([], os.getpid())
    before = times.read()
    sum(number * number for number in range(2_000_000))
    now = times.read()
    assert now[OUTSIDE, "driver"] > before[OUTSIDE, "driver"]
