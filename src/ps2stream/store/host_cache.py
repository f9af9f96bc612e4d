"""Blobs that never change, in files of the host that needs them: a store is asked for each once.

Many processes of a host read the same blobs of a store elsewhere: every worker applies every segment of the
log. What is written once and for all may be kept where it is read. Who wraps a store says which keys those
are; all others pass through.

- *One download.* Processes that miss the same blob at once wait for the first of them. Locks are few, and
  shared by keys: their files need not be tidied up.
- *Whole or not there.* A file is written aside and then given its name. It is not synced; its head has the
  length and a checksum of the rest, which are looked at whenever it is opened. What a power cut or anything
  else has left of it is not trusted, and the store is asked again.
- *Bounded.* All stores of a host share a limit. Beyond it the files go that were not asked for the longest,
  leftovers of killed writers among them, but never the newest, however large. Whoever has mapped a
  file that goes keeps it.
- *Of no consequence.* A full disk, or a file that somebody deletes, costs a download.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.files import locked, whole_file
from ps2stream.store.contract import Store, checked

#: The limit of a host for all its states: a snapshot of ten million subscriptions, and then some.
LIMIT_BYTES = 4 << 30
_HEAD = struct.Struct("<8sQI44x")  # 64 bytes: what is mapped behind it is aligned as Arrow likes it
_MAGIC = b"ps2blob1"
_N_LOCKS = 16


@dataclass(frozen=True, slots=True)
class HostCache:
    """Files below a directory that all caches of the host share; ``part``: where this one's are in it."""

    directory: Path
    part: str
    limit_bytes: int = LIMIT_BYTES

    def get(self, key: str, download: Callable[[], pa.Buffer]) -> pa.Buffer:
        """Return a blob, mapped, and download it if it is not here."""
        found = self._opened(key)
        if found is not None:
            return found
        with self._only_one(key):
            found = self._opened(key)  # another process may have been at it
            if found is not None:
                return found
            blob = download()
            self.add(key, blob)
        found = self._opened(key)  # mapped, it takes no memory of this process
        return blob if found is None else found

    def add(self, key: str, blob: pa.Buffer) -> None:
        """Keep a blob if the disk has space for it."""
        path = self._path(key)
        with contextlib.suppress(StateError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path, durable=False) as file:
                file.write(_HEAD.pack(_MAGIC, blob.size, zlib.crc32(blob)))
                file.write(blob)
            self._shrink(path)

    def drop(self, key: str) -> None:
        """Forget a blob."""
        with contextlib.suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def drop_where(self, is_over: Callable[[str], bool]) -> None:
        """Forget the blobs whose keys say that nobody needs them any more."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self._files / self.part):
                if is_over(name):
                    self.drop(name)

    def under(self, prefix: str) -> HostCache:
        return replace(self, part=f"{self.part}/{checked(prefix)}")

    @property
    def _files(self) -> Path:
        return self.directory / "files"

    def _path(self, key: str) -> Path:
        return self._files / self.part / checked(key)

    @contextlib.contextmanager
    def _only_one(self, key: str) -> Iterator[None]:
        number = zlib.crc32(f"{self.part}/{key}".encode()) % _N_LOCKS
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # a disk without space for a lock: then each downloads
                stack.enter_context(locked(self.directory / "locks" / f"{number:02}"))
            yield

    def _opened(self, key: str) -> pa.Buffer | None:
        """Map a blob; None where there is none that can be trusted."""
        path = self._path(key)
        try:
            with pa.memory_map(str(path)) as file:
                whole = file.read_buffer()
            magic, length, checksum = _HEAD.unpack_from(whole)
            blob = whole.slice(_HEAD.size)
            if (magic, length, checksum) != (_MAGIC, blob.size, zlib.crc32(blob)):
                return None
            os.utime(path)
        except (OSError, ValueError, struct.error, pa.ArrowException):
            return None
        return blob

    def _shrink(self, newest: Path) -> None:
        """Remove the files that were not asked for the longest, until the rest is within the limit."""
        found = sorted(_files_below(self._files))
        n_bytes = sum(size for _, size, _ in found)
        for _, size, path in found:
            if n_bytes <= self.limit_bytes:
                return
            if path != str(newest):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                n_bytes -= size


def _files_below(directory: Path | str) -> Iterator[tuple[int, int, str]]:
    """List files: when each was asked for last, its size and its path."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files_below(entry.path)
            else:
                with contextlib.suppress(FileNotFoundError):  # others remove files, too
                    status = entry.stat()
                    yield status.st_mtime_ns, status.st_size, entry.path


@dataclass(frozen=True, slots=True)
class CachedStore:
    """A store of which this host keeps the blobs that never change.

    ``never_changes``: matches the keys that are put once and for all; they may be deleted. The promise of a
    store that the newest blob is read holds between hosts for all other keys.
    """

    store: Store
    cache: HostCache
    never_changes: re.Pattern[str]

    def put(self, key: str, data: bytes) -> None:
        self.store.put(key, data)
        self.cache.drop(key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        is_kept = self.store.put_if_absent(key, data)
        if is_kept and self._is_fixed(key):
            self.cache.add(key, pa.py_buffer(data))
        return is_kept

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[BinaryIO]:
        with self.store.writer(key) as file:
            yield file
        self.cache.drop(key)

    def get(self, key: str) -> pa.Buffer:
        if self._is_fixed(key):
            return self.cache.get(key, lambda: self.store.get(key))
        return self.store.get(key)

    def list(self, prefix: str = "") -> list[str]:
        return self.store.list(prefix)

    def delete(self, *keys: str) -> None:
        self.store.delete(*keys)
        for key in keys:
            self.cache.drop(key)

    def sweep(self) -> None:
        self.store.sweep()

    def under(self, prefix: str) -> Store:
        return CachedStore(self.store.under(prefix), self.cache.under(prefix), self.never_changes)

    def location(self, key: str = "") -> str:
        return self.store.location(key)

    def _is_fixed(self, key: str) -> bool:
        return self.never_changes.fullmatch(key) is not None
