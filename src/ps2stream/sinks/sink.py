"""What a merger writes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa


class Sink(Protocol):
    """Take the matches and the rejected records of batches; a batch that is written twice is there once."""

    def claim(self, job_id: str) -> None:
        """Make the sink that of one job, and remove what a killed writer left half written.

        Raises :class:`~ps2stream.errors.StateError` if it belongs to another job.
        """
        ...

    def write_matches(self, batch_id: int, merger: int, pieces: Iterable[pa.RecordBatch]) -> int:
        """Write the part of a batch that one merger has, in pieces (schema MATCHES); return its matches.

        Any number of mergers may share a batch. Pieces that cannot all be made leave what was there before.
        """
        ...

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        """Write the rejected records of a batch (schema REJECTED) that come from one source."""
        ...

    def finish(self) -> None:
        """Make the sink readable as it is, also where nothing was written; call between batches."""
        ...

    def clear(self) -> None:
        """Begin anew: remove what an earlier job wrote here, and nothing else."""
        ...
