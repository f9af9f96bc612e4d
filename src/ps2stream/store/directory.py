"""A store in a directory of this host: a file for each key, synced before anybody sees it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ps2stream.errors import MissingError, StateError
from ps2stream.files import is_own, new_file, whole_file
from ps2stream.store.contract import STAGED_END, STAGED_START, Store, checked


@dataclass(frozen=True, slots=True)
class DirectoryStore:
    """Files below a directory, which need not exist yet; a process may send it to another of the host.

    Without ``durable`` what is put survives processes, but no power cut.
    """

    directory: Path
    durable: bool = True

    def put(self, key: str, data: bytes) -> None:
        with self.writer(key) as file:
            file.write(data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        path = self._path_to_write(key)
        if os.path.exists(path):  # spares the writing; who decides is the link
            return False
        return new_file(path, data)

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[BinaryIO]:
        with whole_file(self._path_to_write(key), durable=self.durable) as file:
            yield file

    def get(self, key: str) -> pa.Buffer:
        path = self._path(key)
        try:
            if os.stat(path).st_size == 0:  # nothing to map
                return pa.py_buffer(b"")
            with pa.memory_map(path) as file:
                return file.read_buffer()
        except FileNotFoundError as error:
            raise MissingError(f"{path} is missing") from error
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error}") from error

    def list(self, prefix: str = "") -> list[str]:
        directory = self._path(prefix) if prefix else self.directory
        start = f"{prefix}/" if prefix else ""
        try:
            return sorted(_keys(directory, start))
        except OSError as error:
            raise StateError(f"{directory} cannot be read: {error}") from error

    def delete(self, *keys: str) -> None:
        for path in [self._path(key) for key in keys]:
            try:
                os.unlink(path)
            except (FileNotFoundError, NotADirectoryError):  # a part of the key may be a file
                continue
            except OSError as error:
                raise StateError(f"cannot delete {path}: {error}") from error

    def sweep(self) -> None:
        for path in self.directory.glob(f"{STAGED_START}*{STAGED_END}"):
            if not is_own(path):  # another thread may be at it
                path.unlink(missing_ok=True)

    def under(self, prefix: str) -> Store:
        return DirectoryStore(Path(self._path(prefix)), self.durable)

    def location(self, key: str = "") -> str:
        return self._path(key) if key else str(self.directory)

    def _path(self, key: str) -> str:
        # Strings: a batch of a few events would spend a tenth of its time on objects for paths.
        return os.path.join(self.directory, checked(key))

    def _path_to_write(self, key: str) -> str:
        path = self._path(key)
        try:
            if not os.path.isdir(parent := os.path.dirname(path)):
                os.makedirs(parent, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot write {path}: {error}") from error
        return path


def _keys(directory: Path | str, start: str) -> Iterator[str]:
    """List files and those of directories below, each with what its key starts with."""
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            name = entry.name
            if entry.is_dir():
                yield from _keys(entry.path, f"{start}{name}/")
            elif not (name.startswith(STAGED_START) and name.endswith(STAGED_END)):
                yield start + name
