"""A host asks a store once for what never changes, whatever becomes of its copies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from disks import small_disk
from ps2stream.errors import MissingError
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.host_cache import CachedStore, HostCache
from ps2stream.store.memory import MemoryStore
from waiting import HANG_S

FIXED = re.compile(r"fixed-.*")
HEAD_BYTES = 64


class Counting:
    """A store that notes which keys it was asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def under(self, prefix: str) -> Store:
        part = Counting(self._store.under(prefix))
        part.asked = self.asked
        return part  # type: ignore[return-value]

    def get(self, key: str) -> pa.Buffer:
        self.asked.append(key)
        return self._store.get(key)


@pytest.fixture
def counting() -> Counting:
    return Counting(MemoryStore())


def cached(counting: object, directory: Path, limit_bytes: int = 1 << 20) -> CachedStore:
    return CachedStore(counting, HostCache(directory, "state", limit_bytes), FIXED)  # type: ignore[arg-type]


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "files").rglob("*") if path.is_file())


def test_what_never_changes_is_asked_for_once_and_all_else_every_time(
    counting: Counting, tmp_path: Path
) -> None:
    counting.put("fixed-a", b"one")  # type: ignore[operator]
    counting.put("root", b"two")  # type: ignore[operator]
    for _ in range(3):  # each as another process of the host has it
        store = cached(counting, tmp_path)
        assert store.get("fixed-a").to_pybytes() == b"one"
        assert store.get("root").to_pybytes() == b"two"
    assert counting.asked == ["fixed-a", "root", "root", "root"]
    assert files(tmp_path) == ["fixed-a"]


def test_what_this_host_puts_it_never_asks_for(counting: Counting, tmp_path: Path) -> None:
    store = cached(counting, tmp_path)
    assert store.put_if_absent("fixed-a", b"one")
    assert not store.put_if_absent("fixed-a", b"two")
    assert store.get("fixed-a").to_pybytes() == b"one"
    assert counting.asked == []
    store.delete("fixed-a")
    with pytest.raises(MissingError):
        store.get("fixed-a")


def test_blobs_of_one_key_in_different_parts_and_states_are_kept_apart(
    counting: Counting, tmp_path: Path
) -> None:
    store = cached(counting, tmp_path)
    other = replace(cached(Counting(MemoryStore()), tmp_path), cache=HostCache(tmp_path, "other"))
    for number, part in enumerate((store, store.under("log"), store.under("plans"), other)):
        part.put_if_absent("fixed-a", b"%d" % number)
    parts = (store, store.under("log"), store.under("plans"), other)
    assert [part.get("fixed-a").to_pybytes() for part in parts] == [b"0", b"1", b"2", b"3"]
    store.cache.under("log").drop_where(lambda key: key == "fixed-a")
    assert counting.asked == []
    assert [part.get("fixed-a").to_pybytes() for part in parts] == [b"0", b"1", b"2", b"3"]
    assert counting.asked == ["fixed-a"], "of the part where it was dropped"


def torn(data: bytes) -> list[bytes]:
    """Return what may have become of a file: cut short, longer, other bytes in it, nothing at all."""
    flipped = bytearray(data)
    flipped[-1] ^= 1
    return [b"", data[:10], data[:HEAD_BYTES], data[:-1], data + b"\0", bytes(len(data)), bytes(flipped)]


@pytest.mark.parametrize("blob", [b"a", b"a blob of some bytes" * 50])
def test_a_file_that_is_damaged_is_downloaded_again(counting: Counting, tmp_path: Path, blob: bytes) -> None:
    counting.put("fixed-a", blob)  # type: ignore[operator]
    store = cached(counting, tmp_path)
    store.get("fixed-a")
    path = tmp_path / "files" / "state" / "fixed-a"
    whole = path.read_bytes()
    for n_before, left in enumerate(torn(whole), start=1):
        path.write_bytes(left)
        assert store.get("fixed-a").to_pybytes() == blob
        assert counting.asked == ["fixed-a"] * (n_before + 1)
        assert path.read_bytes() == whole, "and is whole again"
    path.unlink()
    assert store.get("fixed-a").to_pybytes() == blob


def test_beyond_the_limit_what_was_not_asked_for_the_longest_goes(counting: Counting, tmp_path: Path) -> None:
    size = 1_000
    store = cached(counting, tmp_path, limit_bytes=3 * (size + HEAD_BYTES))
    for number, name in enumerate("abc"):
        store.put_if_absent(f"fixed-{name}", name.encode() * size)
        os.utime(tmp_path / "files" / "state" / f"fixed-{name}", ns=(number, number))
    held = store.get("fixed-b")
    assert store.get("fixed-a").to_pybytes() == b"a" * size  # the newest use now, though the oldest file
    os.utime(tmp_path / "files" / "state" / "fixed-b", ns=(1, 1))
    store.put_if_absent("fixed-d", b"d" * size)
    assert files(tmp_path) == ["fixed-a", "fixed-c", "fixed-d"]
    assert held.to_pybytes() == b"b" * size, "who has mapped it keeps it"
    assert store.get("fixed-b").to_pybytes() == b"b" * size
    assert counting.asked == ["fixed-b"]


def test_the_limit_holds_for_all_states_of_a_host_and_for_what_killed_writers_left(tmp_path: Path) -> None:
    limit = 10_000
    left = tmp_path / "files" / "gone" / ".fixed-x.999999-0.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(bytes(4_000))
    os.utime(left, ns=(0, 0))
    for number in range(20):
        cache = HostCache(tmp_path, f"state-{number % 3}", limit)
        cache.add(f"fixed-{number}", pa.py_buffer(bytes(1_500)))
        sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
        assert sum(sizes) <= limit
    assert not left.exists()
    cache.add("fixed-large", pa.py_buffer(bytes(2 * limit)))
    assert files(tmp_path) == ["fixed-large"], "never the newest, however large"


def test_of_many_threads_that_miss_a_blob_one_downloads_it(counting: Counting, tmp_path: Path) -> None:
    counting.put("fixed-a", b"one" * 10_000)  # type: ignore[operator]
    together = threading.Barrier(8)

    def read(_: int) -> bytes:
        together.wait(HANG_S)
        return bytes(cached(counting, tmp_path).get("fixed-a"))

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read, range(8))) == {b"one" * 10_000}
    assert counting.asked == ["fixed-a"]


_READER = """
import os, re, sys
from pathlib import Path
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.host_cache import CachedStore, HostCache

class Noting(DirectoryStore):
    def get(self, key):
        os.write(1, f"{key}\\n".encode())
        return super().get(key)

root = Path(sys.argv[1])
cache = HostCache(root / "cache", "state", int(sys.argv[2]))
store = CachedStore(Noting(root / "store"), cache, re.compile(r"fixed-.*"))
sys.stdin.readline()
for turn in range(int(sys.argv[3])):
    for number in range(20):
        assert bytes(store.get(f"fixed-{number}")) == bytes([number]) * 5_000
"""


def read_in_processes(root: Path, limit_bytes: int, n_turns: int) -> list[str]:
    """Let processes read the same blobs at once; return which keys they asked the store for."""
    command = [sys.executable, "-c", _READER, str(root), str(limit_bytes), str(n_turns)]
    readers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for reader in readers:
        assert reader.stdin is not None
        reader.stdin.write("go\n")
        reader.stdin.flush()
    outputs = [reader.communicate(timeout=HANG_S)[0] for reader in readers]
    assert [reader.returncode for reader in readers] == [0] * 4
    return [line for output in outputs for line in output.splitlines()]


def test_of_many_processes_one_downloads_a_blob_and_all_read_it_whole(tmp_path: Path) -> None:
    for number in range(20):
        DirectoryStore(tmp_path / "store").put(f"fixed-{number}", bytes([number]) * 5_000)
    asked = read_in_processes(tmp_path, 1 << 30, 2)
    assert sorted(asked) == sorted(f"fixed-{number}" for number in range(20))


def test_processes_that_remove_each_others_files_all_read_whole_blobs(tmp_path: Path) -> None:
    for number in range(20):
        DirectoryStore(tmp_path / "store").put(f"fixed-{number}", bytes([number]) * 5_000)
    asked = read_in_processes(tmp_path, 30_000, 5)
    assert len(asked) > 20
    sizes = [path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert sum(sizes) <= 2 * 30_000


def test_a_full_disk_costs_downloads_and_nothing_else(counting: Counting, tmp_path: Path) -> None:
    counting.put("fixed-a", b"x" * (1 << 20))  # type: ignore[operator]
    with small_disk(tmp_path / "disk") as disk:
        store = cached(counting, disk)
        for n_asked in (1, 2):
            assert store.get("fixed-a").size == 1 << 20
            assert counting.asked == ["fixed-a"] * n_asked
        assert files(disk) == []


def test_a_directory_that_cannot_be_written_costs_downloads_and_nothing_else(
    counting: Counting, tmp_path: Path
) -> None:
    for name in ("files", "locks"):
        (tmp_path / name).write_text("in the way")
    store = cached(counting, tmp_path)
    assert store.put_if_absent("fixed-a", b"one")
    for n_asked in (1, 2):
        assert store.get("fixed-a").to_pybytes() == b"one"
        assert counting.asked == ["fixed-a"] * n_asked
    store.cache.drop_where(lambda key: True)
    store.delete("fixed-a")
    with pytest.raises(MissingError):
        store.get("fixed-a")
