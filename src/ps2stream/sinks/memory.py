"""A sink in memory: for tests."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.model.schemas import MATCHES, REJECTED


class MemorySink:
    """Keep what each merger and each source wrote of each batch."""

    def __init__(self) -> None:
        self._owner: str | None = None
        self._matches: dict[tuple[int, int], pa.Table] = {}
        self._rejected: dict[tuple[int, str], pa.RecordBatch] = {}

    def claim(self, job_id: str) -> None:
        if self._owner not in (None, job_id):
            raise StateError("the sink in memory belongs to another job")
        self._owner = job_id

    def write_matches(self, batch_id: int, merger: int, pieces: Iterable[pa.RecordBatch]) -> int:
        matches = pa.Table.from_batches(pieces, MATCHES)
        if matches.num_rows:
            self._matches[batch_id, merger] = matches
        return int(matches.num_rows)

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        if rejected.num_rows:
            self._rejected[batch_id, source] = rejected

    def finish(self) -> None:
        """Do nothing: a table has its schema without any rows."""

    def clear(self) -> None:
        self._owner = None
        self._matches.clear()
        self._rejected.clear()

    def matches(self) -> pa.Table:
        """Return all matches, in the order of batches and mergers."""
        return pa.concat_tables(
            [MATCHES.empty_table(), *(self._matches[key] for key in sorted(self._matches))]
        )

    def rejected(self) -> pa.Table:
        """Return all rejected records, in the order of batches and sources."""
        return pa.Table.from_batches([self._rejected[key] for key in sorted(self._rejected)], REJECTED)
