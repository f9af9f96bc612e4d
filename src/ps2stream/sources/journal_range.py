"""A range of a journal as a source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ps2stream.journal import Journal, JournalPacket, PacketSpan
from ps2stream.journal.packets import decode_publications, decode_updates
from ps2stream.model.events import nothing_rejected, rejected_records
from ps2stream.sources.source import SourceBatch, UpdateBatch


@dataclass(frozen=True, slots=True)
class JournalRange:
    """Packets ``(after, upto]`` of a journal."""

    journal: Path
    after: int
    upto: int
    n_publications: int
    n_updates: int
    last_seq: int

    @property
    def is_local(self) -> bool:
        return True

    def updates(self) -> Iterator[UpdateBatch]:
        if not self.n_updates:
            return
        for packet in self._packets(publications=False):
            if packet.updates is not None:
                yield UpdateBatch(decode_updates(packet.updates), nothing_rejected())

    def publications(self) -> Iterator[SourceBatch]:
        for packet in self._packets():
            damage = [(packet.first_seq, None, None, packet.damage)] if packet.damage else []
            yield SourceBatch(decode_publications(packet.publications), rejected_records(damage))

    def waits(self, now: float) -> list[tuple[float, int]]:
        with self._opened() as journal:
            spans = journal.spans(self.after, self.upto)
        return [(max(0.0, now - span.appended_us / 1e6), span.n_events) for span in spans]

    def forget(self) -> None:
        with self._opened() as journal:
            journal.prune(self.upto)

    def _packets(self, *, publications: bool = True) -> Iterator[JournalPacket]:
        with self._opened() as journal:
            yield from journal.read(self.after, self.upto, publications=publications)

    def _opened(self) -> AbstractContextManager[Journal]:
        return Journal.open(self.journal)


@dataclass(frozen=True, slots=True)
class OpenJournalRange(JournalRange):
    """The same for the process that has the journal open: to open it takes longer than to read a little."""

    opened: Journal

    @classmethod
    def of(cls, part: JournalRange, opened: Journal) -> OpenJournalRange:
        return cls(
            part.journal, part.after, part.upto, part.n_publications, part.n_updates, part.last_seq, opened
        )

    def _opened(self) -> AbstractContextManager[Journal]:
        return contextlib.nullcontext(self.opened)


def journal_ranges(directory: Path, after: int, upto: int, n_parts: int) -> list[JournalRange]:
    """Cut packets ``(after, upto]`` into at most ``n_parts`` of about the same number of events."""
    with Journal.open(directory) as journal:
        return open_ranges(journal, directory, after, upto, n_parts)


def open_ranges(journal: Journal, directory: Path, after: int, upto: int, n_parts: int) -> list[JournalRange]:
    """Do the same with a journal that is open."""
    spans = journal.spans(after, upto)
    share = max(1, -(-sum(span.n_events for span in spans) // n_parts))
    ranges: list[JournalRange] = []
    part: list[PacketSpan] = []
    for i, span in enumerate(spans):
        part.append(span)
        if i + 1 == len(spans) or sum(each.n_events for each in part) >= share:
            ranges.append(_range_of(directory, part))
            part = []
    return ranges


def _range_of(directory: Path, spans: list[PacketSpan]) -> JournalRange:
    return JournalRange(
        directory,
        spans[0].position - 1,
        spans[-1].position,
        sum(span.n_publications for span in spans),
        sum(span.n_updates for span in spans),
        spans[-1].last_seq,
    )
