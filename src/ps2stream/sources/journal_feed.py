"""A journal as a feed: its packets, by position."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ps2stream.journal import Journal
from ps2stream.sources.feed import Offsets
from ps2stream.sources.journal_range import OpenJournalRange, open_ranges
from ps2stream.sources.source import Source


@dataclass(frozen=True, slots=True)
class JournalFeed:
    """The packets of an open journal; a place is the position of the last packet before it."""

    journal: Journal
    directory: Path
    stays_here: bool = False  # ranges are read by this process only
    #: Where there was nothing more, and the version of the journal then.
    _quiet: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def identity(self) -> str:
        return f"journal {self.journal.identity()}"

    @property
    def look_every_s(self) -> float:
        return 0.01

    def beginning(self) -> Offsets:
        return (self.journal.oldest() - 1,)

    def end_within(self, after: Offsets, n_events: int) -> Offsets:
        (position,) = after
        # Asked first: what is appended between the two looks is seen by this one or by the next.
        version = self.journal.version()
        if self._quiet.get(position) == version:
            return after
        upto = max(position, self.journal.end_within(position, n_events))
        self._quiet.clear()
        if upto == position:
            self._quiet[position] = version
        return (upto,)

    def sources(self, after: Offsets, upto: Offsets, n_parts: int) -> tuple[Source, ...]:
        ranges = open_ranges(self.journal, self.directory, after[0], upto[0], n_parts)
        if self.stays_here:
            return tuple(OpenJournalRange.of(each, self.journal) for each in ranges)
        return tuple(ranges)

    def settled(self, batch_id: int, after: Offsets, upto: Offsets) -> None:
        """Do nothing: a seq tells where its event lies."""

    def learned(self, n_events: int) -> None:
        """Do nothing: a journal knows how many events a packet has."""
