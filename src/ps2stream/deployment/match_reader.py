"""Read the matches of a sink as they come: files appear whole, in the order of their batches."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.errors import StateError
from ps2stream.model.events import conform
from ps2stream.model.schemas import MATCHES

_NAME = re.compile(r"batch-(\d+)-(\d+)\.parquet")
#: Clocks of file systems are coarse: a directory that changed this recently may change again unnoticed.
_SETTLED_S = 2.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which matches to read; ``since`` is the lowest seq of publications."""

    subscription_id: str | None = None
    since: int | None = None

    def of(self, matches: pa.RecordBatch) -> pa.RecordBatch:
        if self.subscription_id is not None:
            matches = matches.filter(pc.equal(matches.column("subscription_id"), self.subscription_id))
        if self.since is not None:
            matches = matches.filter(pc.greater_equal(matches.column("publication_seq"), self.since))
        return matches


class MatchReader:
    """Read each file of a directory once; the directory need not exist yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: set[str] = set()
        self._unchanged_since = -1

    def skip(self) -> None:
        """Leave out what is there now."""
        self._seen.update(self._new_names())

    def read(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield the matches of the files that came since the last time."""
        for name in self._new_names():
            # A batch that ran again after a crash wrote the same file again: its name is enough.
            self._seen.add(name)
            for batch in _batches(self._directory / name):
                matches = wanted.of(batch)
                if matches.num_rows:
                    yield matches

    def _new_names(self) -> list[str]:
        # Listing a directory of very many files several times a second would keep a core busy.
        changed_ns = self._changed_ns()
        if changed_ns == self._unchanged_since:
            return []
        self._unchanged_since = changed_ns if time.time() - changed_ns / 1e9 > _SETTLED_S else -1
        with contextlib.suppress(FileNotFoundError):
            return sorted(set(filter(_NAME.fullmatch, os.listdir(self._directory))) - self._seen)
        return []

    def _changed_ns(self) -> int:
        try:
            return self._directory.stat().st_mtime_ns
        except FileNotFoundError:
            return 0


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield conform(batch, MATCHES, str(path))
    except FileNotFoundError:  # somebody cleans up old files
        return
    except (pa.ArrowInvalid, OSError) as error:
        raise StateError(f"matches {path} cannot be read: {error}") from error
