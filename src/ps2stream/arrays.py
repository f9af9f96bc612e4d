"""Flat arrays: ragged rows, and the memory that indexes live in.

An index is a NamedTuple of flat arrays. Where the bytes are is the business of a
:class:`Storage`: on the heap of one process, or in files that every process of a host
maps, so that any of them can serve any worker at once and nothing is held twice.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ps2stream.errors import StateError

UInt64s = npt.NDArray[np.uint64]
UInt32s = npt.NDArray[np.uint32]
UInt8s = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Float64s = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

_Struct = TypeVar("_Struct", bound=tuple[Any, ...])


class Ragged(NamedTuple):
    """Row ``i`` is ``values[offsets[i]:offsets[i + 1]]``; ``offsets`` has one more entry than rows."""

    values: Array
    offsets: Int64s

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    def row(self, index: int) -> Array:
        return self.values[self.offsets[index] : self.offsets[index + 1]]


def ragged_rows(offsets: Int64s, rows: Int64s) -> Ragged:
    """Return the positions of the values of some ragged rows, one row after the other."""
    lengths = np.diff(offsets)[rows]
    taken = np.concatenate([[0], np.cumsum(lengths)])
    return Ragged(np.arange(taken[-1]) + np.repeat(offsets[rows] - taken[:-1], lengths), taken)


class Storage(Protocol):
    """Give zeroed arrays by name, and replace them by larger ones."""

    def create(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        """Return a zeroed array; one of the same name is forgotten."""
        ...

    def grow(self, name: str, array: Array, size: int) -> Array:
        """Return a longer array that starts with the contents of ``array``; the rest is zero."""
        ...


#: Behind larger arrays on the heap lies as much again, which takes addresses and no memory until it is used.
_WITH_RESERVE_BYTES = 1 << 20


class HeapStorage:
    """Arrays of one process.

    A large one grows into the reserve behind it where it is. To copy it held up a worker with a million
    subscriptions for a tenth of a second, several times a minute.
    """

    def create(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        is_large = size * np.dtype(dtype).itemsize >= _WITH_RESERVE_BYTES
        return np.zeros(2 * size if is_large else size, dtype)[:size]

    def grow(self, name: str, array: Array, size: int) -> Array:
        whole = array.base
        if isinstance(whole, np.ndarray) and len(whole) >= size and _begin_together(whole, array):
            return whole[:size]
        longer = self.create(name, array.dtype, size)
        longer[: len(array)] = array
        return longer


def _begin_together(whole: Array, part: Array) -> bool:
    return bool(whole.dtype == part.dtype and whole.ctypes.data == part.ctypes.data)


class MappedStorage:
    """Arrays in files of one directory, shared by all processes that map them.

    The blocks of a file are reserved before it is mapped: on a full disk the caller gets an
    error it can report, where a sparse file would end the process with SIGBUS.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def create(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        # A new file replaces the old one: who still maps the old one keeps its view.
        staged = self._path(name).with_suffix(".new")
        staged.unlink(missing_ok=True)
        try:
            array = self._map(staged, np.dtype(dtype), size)
        except StateError:
            staged.unlink(missing_ok=True)  # of no use to anybody, and space is what is short
            raise
        staged.replace(self._path(name))
        return array

    def grow(self, name: str, array: Array, size: int) -> Array:
        return self._map(self._path(name), array.dtype, size)

    def open(self, name: str, dtype: npt.DTypeLike, *, shared: bool) -> Array:
        """Map an existing array; with ``shared=False`` writes stay private to this process.

        Readers map privately rather than read-only because numba would compile every kernel
        a second time for read-only arrays.
        """
        path = self._path(name)
        try:
            with path.open("r+b") as file:
                access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
                return np.frombuffer(mmap.mmap(file.fileno(), 0, access=access), dtype)
        except (OSError, ValueError) as error:
            raise StateError(f"index file {path} cannot be mapped: {error}") from error

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.array"

    def _map(self, path: Path, dtype: np.dtype[Any], size: int) -> Array:
        n_bytes = max(size, 1) * dtype.itemsize
        try:
            with path.open("a+b") as file:
                _reserve(file.fileno(), n_bytes)
                return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StateError(
                    f"no space left for index file {path}: {n_bytes:,} bytes were needed"
                ) from error
            raise StateError(f"index file {path} cannot be written: {error}") from error


def _reserve(descriptor: int, n_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
    else:  # macOS: a full disk ends the process there, and the next one rebuilds the index
        os.truncate(descriptor, n_bytes)


def create_struct(
    kind: type[_Struct],
    dtypes: Mapping[str, npt.DTypeLike],
    sizes: Mapping[str, int],
    storage: Storage,
) -> _Struct:
    """Build a NamedTuple of zeroed arrays."""
    return kind(**{name: storage.create(name, dtype, sizes[name]) for name, dtype in dtypes.items()})


def open_struct(
    kind: type[_Struct],
    dtypes: Mapping[str, npt.DTypeLike],
    storage: MappedStorage,
    needed: Callable[[_Struct], Mapping[str, int]],
    *,
    shared: bool,
) -> _Struct:
    """Map a NamedTuple of arrays that :func:`create_struct` made.

    ``needed`` gives the least lengths of arrays by the counts that are kept in the struct: kernels check
    nothing, and one let loose on a file that was cut short would end the process or lose matches.
    """
    struct = kind(**{name: storage.open(name, dtype, shared=shared) for name, dtype in dtypes.items()})
    for name, size in needed(struct).items():
        if len(getattr(struct, name)) < size:
            raise StateError(
                f"index file {storage.directory / name}.array is cut short: "
                f"{size:,} entries were needed; got {len(getattr(struct, name)):,}"
            )
    return struct


def table_size(*columns: Array) -> int:
    """Return the length of each column of a hash table, some of which may be cut short."""
    longest = max(map(len, columns))
    return 1 << (longest - 1).bit_length()


def n_bytes(struct: tuple[Any, ...]) -> int:
    """Count the bytes that the arrays of a struct occupy."""
    return sum(array.nbytes for array in struct if isinstance(array, np.ndarray))


def frozen(array: Array) -> Array:
    """View an array as kernels take their input: aligned, contiguous, read-only.

    numba compiles a kernel anew for every kind of array. Arrow gives read-only ones, numpy
    writeable ones; with one kind for all input each kernel is compiled once, ahead of time.
    """
    # numpy's ``require`` says the same, and takes longer than most kernels for a few publications.
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        if not flags.writeable:
            return array
        view = array.view()
    else:
        view = np.require(array, requirements=["ALIGNED", "C_CONTIGUOUS"]).view()
    view.setflags(write=False)
    return view
