"""Files: named once and for all, and whole or not there (written aside, synced, then given their name)."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ps2stream.errors import StateError

#: How a user may name a file or a directory.
AnyPath = str | Path


def absolute(path: AnyPath) -> Path:
    """Fix what a path means where it comes in: a later change of directory must not change it."""
    return Path(path).absolute()


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` when the block ends well.

    On return it is on disk under its name. After a crash there is the old file or the new one;
    a full disk or a block that fails leaves the old one.
    """
    # The process id keeps two that write the same file, such as a task and its retry, apart.
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with staged.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        space = "no space left for" if error.errno == errno.ENOSPC else "cannot write"
        raise StateError(f"{space} {path}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
