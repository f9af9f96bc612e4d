from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.disk_view import entrance, outermost


def test_what_lies_in_another_directory_is_visible_with_it(tmp_path: Path) -> None:
    inner, outer, other = tmp_path / "a" / "b", tmp_path / "a", tmp_path / "ab"
    inner.mkdir(parents=True)
    other.mkdir()
    assert outermost([inner, outer, other, tmp_path / "absent", outer]) == [outer, other]


@pytest.fixture
def script(tmp_path: Path) -> str:
    visible = tmp_path / "with a space"
    visible.mkdir()
    return entrance(
        "h1",
        directory=tmp_path / "h1",
        hosts_file=tmp_path / "names",
        home=Path("/home/me"),
        visible=[visible],
    )


def test_the_script_is_one_for_a_shell(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_visible_is_read_only_and_what_is_the_hosts_is_not(script: str, tmp_path: Path) -> None:
    inside = f"'root{tmp_path}/with a space'"
    assert f"mount --rbind '{tmp_path}/with a space' {inside}" in script
    assert f"mount -o remount,bind,ro {inside}" in script
    assert "mount --bind home root/home/me" in script
    assert "ro root/home/me" not in script


def test_the_script_mounts_nothing_in_the_namespace_of_the_machine(script: str, tmp_path: Path) -> None:
    (tmp_path / "h1").mkdir()
    done = subprocess.run(["sh", "-s", "true"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert list((tmp_path / "h1").iterdir()) == []
