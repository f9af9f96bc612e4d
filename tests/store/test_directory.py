"""A directory as a store: what its files say after kills, races of processes and full disks."""

from __future__ import annotations

import os
import pickle
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from disks import small_disk
from ps2stream.errors import MissingError, StateError
from ps2stream.store.directory import DirectoryStore

_RACE = """
import sys
from pathlib import Path
from ps2stream.store.directory import DirectoryStore
store, mine = DirectoryStore(Path(sys.argv[1])), sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
print(sum(store.put_if_absent(f"race/{n}", mine) for n in range(50)), flush=True)
"""


def test_among_processes_one_keeps_its_blob(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACE, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    n_kept = [int(racer.communicate()[0]) for racer in racers]
    found = [int(store.get(key).to_pybytes()) for key in store.list("race")]
    assert len(found) == sum(n_kept) == 50
    assert [found.count(number) for number in range(4)] == n_kept
    assert sorted(os.listdir(tmp_path / "race")) == sorted(key.split("/")[1] for key in store.list())


_KILLED = """
import os, signal, sys
from pathlib import Path
from ps2stream.store.directory import DirectoryStore
with DirectoryStore(Path(sys.argv[1])).writer("log/a") as file:
    file.write(b"half of")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_not_listed_and_is_swept(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put("log/a", b"old")
    store.put("b", b"another")
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
        assert killed.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path / "log")) == 3
    assert store.list() == ["b", "log/a"]
    assert store.get("log/a").to_pybytes() == b"old"
    store.sweep()
    assert len(os.listdir(tmp_path / "log")) == 3, "only keys of one part, and these have two"
    store.under("log").sweep()
    assert os.listdir(tmp_path / "log") == ["a"]
    assert store.list() == ["b", "log/a"]


def test_a_file_and_its_name_are_synced_before_a_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append("name" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        assert (tmp_path / "a").exists() == (synced[-1] == "name"), "no name before its file is on disk"
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    store = DirectoryStore(tmp_path)
    for put in (store.put, store.put_if_absent):
        put("a", b"one")
        assert synced == ["file", "name"]
        synced.clear()
        store.delete("a")


def test_the_files_are_where_their_keys_say(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    store.put("log/a.arrow", b"one")
    assert (tmp_path / "store" / "log" / "a.arrow").read_bytes() == b"one"
    assert store.location() == str(tmp_path / "store")
    assert store.location("log/a.arrow") == str(tmp_path / "store" / "log" / "a.arrow")
    assert store.under("log").location() == str(tmp_path / "store" / "log")


def test_a_store_that_is_sent_to_another_process_is_the_same_store(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    pickle.loads(pickle.dumps(store)).under("a").put("b", b"one")
    assert store.get("a/b").to_pybytes() == b"one"


def test_a_large_blob_is_mapped_and_not_copied(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put("a", b"x" * 1_000_000)
    held = store.get("a")
    with (tmp_path / "a").open("r+b") as file:
        file.write(b"y")
    assert held.slice(0, 2).to_pybytes() == b"yx"


def test_a_full_disk_is_reported_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = DirectoryStore(disk)
        store.put("log/a", b"old")
        large = bytes(1_000_000)
        with pytest.raises(StateError, match=r"no space left for .*log/a: "):
            store.put("log/a", large)
        with pytest.raises(StateError, match=r"no space left for .*log/b: "):
            store.put_if_absent("log/b", large)
        with pytest.raises(StateError, match=r"no space left for .*log/c: "), store.writer("log/c") as file:
            file.write(large)
        assert os.listdir(disk / "log") == ["a"]
        assert store.get("log/a").to_pybytes() == b"old"
        assert store.put_if_absent("log/b", b"small")


def test_a_file_where_a_directory_is_needed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("in the way")
    store = DirectoryStore(tmp_path)
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StateError, match=r"cannot write .*log/a"):
            write("log/a", b"")
    with pytest.raises(StateError, match=r"log/a cannot be read"):
        store.get("log/a")
    assert store.list("log") == []
    store.delete("log/a")


def test_a_directory_where_a_blob_should_be_is_reported(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put("log/a", b"one")
    with pytest.raises(StateError, match="log cannot be read"):
        store.get("log")
    with pytest.raises(StateError, match="cannot write"):
        store.put("log", b"")
    with pytest.raises(MissingError):
        store.get("log/b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_must_not_be_read_is_reported(tmp_path: Path) -> None:
    tmp_path.joinpath("log").mkdir(mode=0)
    with pytest.raises(StateError, match="log cannot be read"):
        DirectoryStore(tmp_path).list("log")
