"""The home of a worker on a host: its index in mapped files, a mark and a lock.

Any Python process of the host may serve any worker: Spark does not say which process gets which. Whoever
serves one holds its lock (the task that Spark gave up on may still run), takes the mark away while the files
change, and sets it when they are whole again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from ps2stream.arrays import MappedStorage
from ps2stream.errors import StateError
from ps2stream.files import locked
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.model.space import Grid


class WorkerHome:
    """The directory of one worker's index: arrays, mark and lock."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._arrays = directory / "arrays"
        # Strings: objects for paths would take longer than what is done with them, in every small batch.
        self._mark = str(directory / "clean")
        self._staged_mark = str(directory / "clean.new")

    def locked(self) -> AbstractContextManager[None]:
        return locked(self._directory)

    def open(self, settings: IndexSettings) -> tuple[GI2, int] | None:
        """Return the index and the batch up to which it has the log; None where it cannot be trusted.

        Where the plan has another grid than it had before, the index is counted in that from now on.
        """
        try:
            boot, upto, grid, *_ = self._marked().split()
            if boot != boot_id():
                return None
            counters = _grid_of(grid)
            index = GI2.open(replace(settings, counters=counters), MappedStorage(self._arrays))
            if counters != settings.counters:
                self.mark_dirty()
                index = index.counted_in(settings.counters)
            return index, int(upto)
        except (OSError, ValueError, OverflowError, StateError):
            return None

    def rebuild(self, settings: IndexSettings) -> GI2:
        """Begin with an empty index."""
        self.mark_dirty()
        shutil.rmtree(self._arrays, ignore_errors=True)
        return GI2.create(settings, MappedStorage(self._arrays))

    def replace(self, index: GI2, horizon: int) -> GI2:
        """Compact the index into new files; the caller has marked it dirty."""
        staged = self._directory / "compacted"
        shutil.rmtree(staged, ignore_errors=True)
        compacted = index.compacted(horizon, MappedStorage(staged))
        shutil.rmtree(self._arrays)
        staged.rename(self._arrays)
        return compacted.moved(MappedStorage(self._arrays))

    def is_clean(self) -> bool:
        """Say whether there is an index whose last user left it whole."""
        return os.path.exists(self._mark)

    def mark_dirty(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._mark)

    def mark_clean(self, upto: int, counters: Grid, signature: str = "") -> None:
        """Set the mark; whoever signs it can tell later that nobody else was here since (``is_marked``)."""
        # Not synced: after a crash of the host the boot id differs and the index is not trusted.
        with open(self._staged_mark, "wb", buffering=0) as file:
            file.write(f"{boot_id()} {upto} {_text_of(counters)} {signature}".encode())
        os.replace(self._staged_mark, self._mark)

    def is_marked(self, signature: str) -> bool:
        """Say whether the mark is one that was set with this signature; nobody else has it."""
        try:
            return self._marked().endswith(f" {signature}")
        except OSError:
            return False

    def _marked(self) -> str:
        with open(self._mark, "rb", buffering=0) as file:
            return file.read().decode(errors="replace")


@functools.lru_cache(maxsize=64)
def _text_of(grid: Grid) -> str:
    return ",".join([*(float(each).hex() for each in grid[:-1]), str(grid.bits)])


def _grid_of(text: str) -> Grid:
    *sides, bits = text.split(",")
    min_lon, min_lat, columns, rows = map(float.fromhex, sides)
    return Grid(min_lon, min_lat, columns, rows, int(bits))


@functools.cache
def boot_id() -> str:
    """Return what tells this boot of the host from all others."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        # Elsewhere than on Linux an index is not trusted by another session than the one that made it.
        return f"session-{os.getsid(0)}"
