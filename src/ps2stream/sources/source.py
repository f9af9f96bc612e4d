"""What a batch is read from: some events, where they lie and how many they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa


class SourceBatch(NamedTuple):
    """Publications, and records that were rejected on the way here."""

    publications: pa.RecordBatch
    rejected: pa.RecordBatch


class UpdateBatch(NamedTuple):
    """Subscribe and unsubscribe events, and records that could not be read as such."""

    updates: pa.RecordBatch
    rejected: pa.RecordBatch


class Source(Protocol):
    """Some events of a batch; whoever has it, in whatever process that can reach them, reads the same."""

    @property
    def is_local(self) -> bool:
        """Say whether only processes of one host can read it, wherever the state of the job is."""
        ...

    @property
    def n_publications(self) -> int: ...

    @property
    def n_updates(self) -> int: ...

    @property
    def last_seq(self) -> int:
        """Return the last seq of these events; of none, that of the batches before."""
        ...

    def updates(self) -> Iterator[UpdateBatch]:
        """Read subscribe and unsubscribe events (schema UPDATES), and what is none (schema REJECTED)."""
        ...

    def publications(self) -> Iterator[SourceBatch]:
        """Read publications (schema PUBLICATIONS), and what was rejected before (schema REJECTED)."""
        ...

    def waits(self, now: float) -> list[tuple[float, int]]:
        """Return (seconds from append to now, events) as far as that is known."""
        ...

    def forget(self) -> None:
        """Drop these events, and all before them, where they are kept; no batch will read them again."""
        ...


def n_events(source: Source) -> int:
    return source.n_publications + source.n_updates
