"""Files: named once and for all, and whole or not there (written aside, synced, then given their name)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ps2stream.errors import StateError

#: How a user may name a file or a directory.
AnyPath = str | Path

_numbers = itertools.count()


def absolute(path: AnyPath) -> Path:
    """Fix what a path means where it comes in: a later change of directory must not change it."""
    return Path(path).absolute()


@contextlib.contextmanager
def whole_file(path: AnyPath, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` when the block ends well.

    On return it is on disk under its name. After a crash there is the old file or the new one;
    a full disk or a block that fails leaves the old one. Without ``durable`` that holds for the death
    of processes, not for a power cut.
    """
    with _staged(path) as staged:
        with open(staged, "wb") as file:
            yield file
            if durable:
                _sync(file)
        os.replace(staged, path)
        if durable:
            sync_directory(os.path.dirname(path) or os.curdir)


def new_file(path: AnyPath, data: bytes) -> bool:
    """Write a file unless there is one of that name; return whether this call gave the name to its own.

    Of several processes that try it at once, one succeeds; on return of that one the file is on disk.
    """
    with _staged(path) as staged:
        with open(staged, "wb") as file:
            file.write(data)
            _sync(file)
        try:
            os.link(staged, path)  # unlike a rename, it fails where the name is taken
        except FileExistsError:
            return False
        sync_directory(os.path.dirname(path) or os.curdir)
    return True


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Be the only process of this host in a directory, which is made if need be; wait for others."""
    path = os.path.join(directory, "lock")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_directory(directory: AnyPath) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_own(staged: Path) -> bool:
    """Say whether a file that is being written is written by this process."""
    return f".{os.getpid()}-" in staged.name


@contextlib.contextmanager
def _staged(path: AnyPath) -> Iterator[str]:
    """Name a file to write aside; nothing is left of it in the end, and errors say what was to be written."""
    # Process and number keep apart those that write the same file, such as a task and its retry. Plain
    # strings: a batch of a few events would spend a tenth of its time on objects for paths.
    directory, name = os.path.split(path)
    staged = os.path.join(directory, f".{name}.{os.getpid()}-{next(_numbers)}.tmp")
    try:
        yield staged
    except OSError as error:
        space = "no space left for" if error.errno == errno.ENOSPC else "cannot write"
        raise StateError(f"{space} {path}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(staged)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
