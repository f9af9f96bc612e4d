"""A range of a journal as a source."""

from __future__ import annotations

from collections.abc import Iterator
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
        for packet in self._packets(publications=False):
            if packet.updates is not None:
                yield UpdateBatch(decode_updates(packet.updates), nothing_rejected())

    def publications(self) -> Iterator[SourceBatch]:
        for packet in self._packets():
            damage = [(packet.first_seq, None, None, packet.damage)] if packet.damage else []
            yield SourceBatch(decode_publications(packet.publications), rejected_records(damage))

    def waits(self, now: float) -> list[tuple[float, int]]:
        with Journal.open(self.journal) as journal:
            spans = journal.spans(self.after, self.upto)
        return [(max(0.0, now - span.appended_us / 1e6), span.n_events) for span in spans]

    def forget(self) -> None:
        with Journal.open(self.journal) as journal:
            journal.prune(self.upto)

    def _packets(self, *, publications: bool = True) -> Iterator[JournalPacket]:
        with Journal.open(self.journal) as journal:
            yield from journal.read(self.after, self.upto, publications=publications)


def journal_ranges(directory: Path, after: int, upto: int, n_parts: int) -> list[JournalRange]:
    """Cut packets ``(after, upto]`` into at most ``n_parts`` of about the same number of events."""
    with Journal.open(directory) as journal:
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
