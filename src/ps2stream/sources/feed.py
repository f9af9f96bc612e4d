"""What a stream is read from: events without an end, in ranges that stay as they are."""

from __future__ import annotations

from typing import Protocol

from ps2stream.sources.source import Source

#: A place in a feed: the events before it and those after it. What the numbers count is known to the feed.
Offsets = tuple[int, ...]


class Feed(Protocol):
    """Say how far events go, and what a range of them is read from.

    A range ``(after, upto)`` has the same events, with the same seqs, whoever reads it and whenever: both are
    written down before its batch runs (``Ledger.begin``). Seqs rise from range to range.
    """

    @property
    def identity(self) -> str:
        """Return what tells these events from those of all other feeds."""
        ...

    @property
    def look_every_s(self) -> float:
        """Return how long to wait, where there was nothing, before looking again."""
        ...

    def beginning(self) -> Offsets:
        """Return the place before the first event that is kept."""
        ...

    def end_within(self, after: Offsets, n_events: int) -> Offsets:
        """Return the end of a range of about so many events; ``after`` itself if there are none yet."""
        ...

    def sources(self, after: Offsets, upto: Offsets, n_parts: int) -> tuple[Source, ...]:
        """Return what a range is read from, cut into about as many parts as there are readers."""
        ...

    def settled(self, batch_id: int, after: Offsets, upto: Offsets) -> None:
        """Take notice that a batch has this range, now and whenever it runs."""
        ...

    def learned(self, n_events: int) -> None:
        """Take notice of how many events the range had that was processed last."""
        ...
