"""Memory is told apart by process, disk by directory and by topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream_bench.live.sizes import disk_mib, memory_mib, topics_mib

ENGINE, JAVA, ROLE, BROKER = 10, 11, 12, 20


def run(proc: Path, pid: int, parent: int, command: str, mib: int) -> None:
    directory = proc / str(pid)
    directory.mkdir()
    (directory / "cmdline").write_text(command)
    (directory / "stat").write_text(f"{pid} (a name) S {parent} {' '.join(['0'] * 20)}\n")
    (directory / "smaps_rollup").write_text(f"Rss:  {9 * 1024 * mib} kB\nPss:  {1024 * mib} kB\n")


def test_memory_belongs_to_roles_driver_java_and_the_broker(tmp_path: Path) -> None:
    run(tmp_path, ENGINE, 1, "python", 100)
    run(tmp_path, JAVA, ENGINE, "/usr/bin/java\0-cp", 300)
    run(tmp_path, ROLE, JAVA, "python", 30)
    run(tmp_path, ROLE + 1, JAVA, "python", 31)
    run(tmp_path, BROKER, 1, "java", 400)
    found = memory_mib(ENGINE, BROKER, tmp_path)
    assert found == {"driver": 100, "Java": 300, "roles": 61, "broker": 400}


def test_topics_are_as_large_as_all_their_partitions(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for name, n_bytes in {"a.log-0": 1 << 20, "a.routed-0": 1 << 20, "a.routed-1": 2 << 20}.items():
        (logs / name).mkdir(parents=True)
        (logs / name / "0.log").write_bytes(b"x" * n_bytes)
    (logs / "other.log-0").mkdir()
    properties = tmp_path / "kraft.properties"
    properties.write_text(f"node.id=1\nlog.dirs={logs}\n")
    run(tmp_path, BROKER, 1, f"java\0kafka.Kafka\0{properties}", 1)
    assert topics_mib(BROKER, "a", tmp_path) == pytest.approx({"log": 1.0, "routed": 3.0}, abs=0.1)


def test_a_file_that_claims_room_without_using_it_takes_none(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(64 << 20)
    assert disk_mib(tmp_path) < 1.0
