"""Read the matches of a sink as they come: files appear whole, in the order of their batches."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.errors import MissingError, StateError
from ps2stream.model.events import conform
from ps2stream.model.schemas import MATCHES
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore

_NAME = re.compile(r"batch-(\d+)-(\d+)\.parquet")
#: How often one who follows looks for new files.
POLL_S = 0.2
#: The same where every look is a request, which somebody answers and may charge for.
REMOTE_POLL_S = 1.0
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


class Matches(Protocol):
    """What a job delivers, read as it comes: each match once."""

    def has_any(self) -> bool:
        """Say whether there is anything to read, now or before."""
        ...

    def skip(self) -> None:
        """Leave out what is there now."""
        ...

    def read(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield the matches that came since the last time."""
        ...

    def follow(
        self, wanted: Wanted, *, timeout_s: float | None = None, poll_s: float = POLL_S
    ) -> Iterator[pa.RecordBatch]:
        """Yield matches as they come, until none came for ``timeout_s``."""
        ...


def followed(
    read: Callable[[], Iterator[pa.RecordBatch]], timeout_s: float | None, pause_s: float
) -> Iterator[pa.RecordBatch]:
    """Read again and again, until nothing came for ``timeout_s``."""
    last = time.monotonic()
    while True:
        for batch in read():
            yield batch
            last = time.monotonic()
        if timeout_s is not None and time.monotonic() - last >= timeout_s:
            return
        time.sleep(pause_s)


class MatchReader:
    """Read each file of a store once; there need not be any yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: set[str] = set()
        self._unchanged_since = -1

    def has_any(self) -> bool:
        """Say whether there is anything to read, now or before."""
        return bool(self._seen) or any(map(_NAME.fullmatch, self._store.list()))

    def skip(self) -> None:
        """Leave out what is there now."""
        self._seen.update(self._new_names())

    def read(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield the matches of the files that came since the last time."""
        for name in self._new_names():
            # A batch that ran again after a crash wrote the same file again: its name is enough.
            self._seen.add(name)
            for batch in self._batches(name):
                matches = wanted.of(batch)
                if matches.num_rows:
                    yield matches

    def follow(
        self, wanted: Wanted, *, timeout_s: float | None = None, poll_s: float = POLL_S
    ) -> Iterator[pa.RecordBatch]:
        """Yield matches as their files come, until none came for ``timeout_s``."""
        pause_s = poll_s if isinstance(self._store, DirectoryStore) else max(poll_s, REMOTE_POLL_S)
        return followed(lambda: self.read(wanted), timeout_s, pause_s)

    def _new_names(self) -> list[str]:
        if self._is_unchanged():
            return []
        return sorted(set(filter(_NAME.fullmatch, self._store.list())) - self._seen)

    def _is_unchanged(self) -> bool:
        """Say whether nothing can have come since the last look, where that can be told without a listing.

        Listing a directory of very many files several times a second would keep a core busy.
        """
        if not isinstance(self._store, DirectoryStore):
            return False
        changed_ns = _changed_ns(Path(self._store.location()))
        if changed_ns == self._unchanged_since:
            return True
        self._unchanged_since = changed_ns if time.time() - changed_ns / 1e9 > _SETTLED_S else -1
        return False

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        where = self._store.location(name)
        try:
            with pq.ParquetFile(pa.BufferReader(self._store.get(name))) as file:
                for batch in file.iter_batches():
                    yield conform(batch, MATCHES, where)
        except MissingError:  # somebody cleans up old files
            return
        except (pa.ArrowInvalid, OSError) as error:
            raise StateError(f"matches {where} cannot be read: {error}") from error


def _changed_ns(directory: Path) -> int:
    try:
        return directory.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
