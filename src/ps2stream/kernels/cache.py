"""Compiled kernels on disk.

A file holds machine code that will be run: it is looked at only in a directory that nobody else can write to,
and only if its checksum is right. Whatever is wrong with the disk, the kernel is compiled instead.

A package that is sent to many hosts may bring its kernels along (``SHIPPED``): whoever could change them
could change the package. They are of use where the processor is of the kind that they were compiled for, and
are passed over elsewhere: their names say it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import pickle
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ps2stream.kernels.fingerprints import NoFingerprintError, fingerprint

_LOG = logging.getLogger(__name__)
_CHECKSUM_BYTES = hashlib.sha256().digest_size
#: Kernels that came with the package; nothing is ever added to them.
SHIPPED = Path(__file__).parent / "compiled"


class KernelCache(NullCache):  # type: ignore[misc]  # numba has no types
    """The compiled forms of one kernel; numba asks it before it compiles, and gives it what it compiled."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    @property
    def cache_path(self) -> str | None:
        directory = cache_directory()
        return None if directory is None else str(directory)

    def load_overload(self, signature: Any, target: Any) -> Any:
        name = self._name(signature, target.codegen())
        if name is None:
            return None
        target.refresh()  # it may need implementations that were imported after it was made
        loaded = (_load(directory / name, target) for directory in (cache_directory(), SHIPPED) if directory)
        return next((result for result in loaded if result is not None), None)

    def save_overload(self, signature: Any, result: Any) -> None:
        directory, name = cache_directory(), self._name(signature, result.codegen)
        if directory is None or name is None or result.library.has_dynamic_globals:
            return
        payload = dumps(result._reduce())
        with contextlib.suppress(OSError):
            _write(directory / name, hashlib.sha256(payload).digest() + payload)

    def _name(self, signature: Any, codegen: Any) -> str | None:
        try:
            name = fingerprint(self._function, signature, codegen.magic_tuple())
        except (NoFingerprintError, RecursionError):  # a kernel that calls itself has none
            return None
        return f"{self._function.__name__}-{name[:32]}"


def _load(path: Path, target: Any) -> Any:
    try:
        content = path.read_bytes()
        checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if hashlib.sha256(payload).digest() != checksum:
            return None
        return CompileResult._rebuild(target, *pickle.loads(payload))
    except Exception:  # no such file, no access, or anything that a pickle may raise
        return None


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    descriptor, staged = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(staged, path)
    except OSError:
        os.unlink(staged)
        raise


@contextlib.contextmanager
def one_compiler() -> Iterator[None]:
    """Let one process of the host compile while the others wait to load what it compiled."""
    directory = cache_directory()
    with contextlib.ExitStack() as stack:
        if directory is not None:
            # A read-only or full disk, or one that knows no locks: everybody compiles for himself.
            with contextlib.suppress(OSError):
                lock = stack.enter_context((directory / "lock").open("a"))
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def cache_directory() -> Path | None:
    """Return where compiled kernels are kept, made if need be; None where they cannot be."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return _made(Path(given))
    base = _base()
    directory = None if base is None or _made(base) is None else _made(base / "kernels")
    if directory is None:
        return None
    for path in (directory.parent, directory):
        if not _is_ours(path):
            _LOG.warning("compiled kernels are not kept: others can write to %s", path)
            return None
    return directory


def _base() -> Path | None:
    if given := os.environ.get("PS2STREAM_CACHE_DIR"):
        return Path(given).absolute()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(caches):  # the XDG specification: else it is to be ignored
        return Path(caches) / "ps2stream"
    with contextlib.suppress(RuntimeError):  # a user without a home
        return Path.home() / ".cache" / "ps2stream"
    return None


def _made(directory: Path) -> Path | None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return directory


def _is_ours(directory: Path) -> bool:
    """Say whether only this user, or the administrator, can put files into a directory."""
    status = directory.stat()
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
