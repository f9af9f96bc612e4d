"""A store in a dictionary: for tests, and for what need not outlive its process."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from ps2stream.errors import MissingError
from ps2stream.store.contract import Store, checked


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """Blobs of one process; parts of a store share them."""

    _prefix: str = ""
    _blobs: dict[str, pa.Buffer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, key: str, data: bytes) -> None:
        blob = pa.py_buffer(bytes(data))
        with self._lock:
            self._blobs[self._full(key)] = blob

    def put_if_absent(self, key: str, data: bytes) -> bool:
        blob = pa.py_buffer(bytes(data))
        with self._lock:
            return self._blobs.setdefault(self._full(key), blob) is blob

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[BinaryIO]:
        self._full(key)  # a bad one is told before anything is written
        file = io.BytesIO()
        yield file
        self.put(key, file.getvalue())

    def get(self, key: str) -> pa.Buffer:
        try:
            return self._blobs[self._full(key)]
        except KeyError as error:
            raise MissingError(f"{self.location(key)} is missing") from error

    def list(self, prefix: str = "") -> list[str]:
        start = f"{self._full(prefix)}/" if prefix else self._prefix
        with self._lock:
            return sorted(key[len(self._prefix) :] for key in self._blobs if key.startswith(start))

    def delete(self, *keys: str) -> None:
        full = [self._full(key) for key in keys]
        with self._lock:
            for key in full:
                self._blobs.pop(key, None)

    def sweep(self) -> None:
        """Do nothing: what is not whole was never kept."""

    def under(self, prefix: str) -> Store:
        return MemoryStore(f"{self._full(prefix)}/", self._blobs, self._lock)

    def location(self, key: str = "") -> str:
        return f"memory:{self._full(key) if key else self._prefix.removesuffix('/')}"

    def _full(self, key: str) -> str:
        return self._prefix + checked(key)
