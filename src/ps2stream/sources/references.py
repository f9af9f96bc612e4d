"""References: where a range of the stream lies, in place of the stream itself.

Through the engine's first steps go a few small rows that say where events are; the task that
needs them reads them there. Nothing is carried from Python to the JVM and back before it has
been routed, and updates can be read without the publications between them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.journal import Journal, JournalPacket, PacketSpan
from ps2stream.journal.packets import decode_publications, decode_updates
from ps2stream.model.events import (
    conform,
    not_late,
    nothing_rejected,
    rejected_records,
    split,
)
from ps2stream.model.schemas import PUBLICATIONS, REJECTED, UPDATES

#: References as rows of a DataFrame.
REFERENCES = pa.schema(
    [
        ("place", pa.string()),
        ("after", pa.int64()),
        ("upto", pa.int64()),
        ("n_publications", pa.int64()),
        ("n_updates", pa.int64()),
        ("last_seq", pa.int64()),
    ]
)


class Reference(NamedTuple):
    """Packets ``(after, upto]`` of a journal; or, with ``upto`` 0, a directory of spooled events."""

    place: str
    after: int
    upto: int
    n_publications: int
    n_updates: int
    last_seq: int

    def updates(self) -> Iterator[pa.RecordBatch]:
        """Read subscribe and unsubscribe events."""
        if not self.upto:
            yield from _read(Path(self.place) / _UPDATES_FILE)
        else:
            for packet in self._packets(publications=False):
                if packet.updates is not None:
                    yield decode_updates(packet.updates)

    def publications(self) -> Iterator[Part]:
        """Read publications, and what was rejected on the way here."""
        if not self.upto:
            place = Path(self.place)
            for batch in _read(place / _PUBLICATIONS_FILE):
                yield Part(batch, nothing_rejected())
            for batch in _read(place / _REJECTED_FILE):
                yield Part(decode_publications(None), batch)
        else:
            for packet in self._packets():
                damage = [(packet.first_seq, None, None, packet.damage)] if packet.damage else []
                yield Part(decode_publications(packet.publications), rejected_records(damage))

    def _packets(self, *, publications: bool = True) -> Iterator[JournalPacket]:
        with Journal.open(Path(self.place)) as journal:
            yield from journal.read(self.after, self.upto, publications=publications)


class Part(NamedTuple):
    """Publications and rejected records of one range."""

    publications: pa.RecordBatch
    rejected: pa.RecordBatch


_PUBLICATIONS_FILE, _UPDATES_FILE, _REJECTED_FILE = "publications.arrow", "updates.arrow", "rejected.arrow"


def spool(events: Iterable[pa.RecordBatch], directory: Path, high_water: int) -> Reference:
    """Write events to a new directory of this host and refer to them.

    Events need not be sorted within a batch of the stream, but none may lie at or below the last
    seq of the batches before: whoever waited for it has been told already.
    """
    directory.mkdir(parents=True)
    n_publications = n_updates = 0
    last_seq = high_water
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(
                pa.ipc.new_stream(stack.enter_context(pa.OSFile(str(directory / name), "wb")), schema)
            )
            for name, schema in (
                (_PUBLICATIONS_FILE, PUBLICATIONS),
                (_UPDATES_FILE, UPDATES),
                (_REJECTED_FILE, REJECTED),
            )
        ]
        for batch in events:
            kept, late = not_late(conform(batch), high_water)
            publications, updates = split(kept)
            for file, part in zip(files, (publications, updates, late), strict=True):
                file.write_batch(part)
            n_publications += publications.num_rows
            n_updates += updates.num_rows
            if kept.num_rows:
                last_seq = max(last_seq, pc.max(kept.column("seq")).as_py())
    return Reference(str(directory), 0, 0, n_publications, n_updates, last_seq)


def journal_references(directory: Path, after: int, upto: int, n_parts: int) -> list[Reference]:
    """Cut a range of a journal into at most ``n_parts`` of about the same number of events."""
    with Journal.open(directory) as journal:
        spans = journal.spans(after, upto)
    share = max(1, -(-sum(span.n_events for span in spans) // n_parts))
    references: list[Reference] = []
    part: list[PacketSpan] = []
    for i, span in enumerate(spans):
        part.append(span)
        if i + 1 == len(spans) or sum(each.n_events for each in part) >= share:
            references.append(_refer(directory, part))
            part = []
    return references


def _refer(directory: Path, spans: list[PacketSpan]) -> Reference:
    return Reference(
        str(directory),
        spans[0].position - 1,
        spans[-1].position,
        sum(span.n_publications for span in spans),
        sum(span.n_updates for span in spans),
        spans[-1].last_seq,
    )


def prune(references: Iterable[Reference]) -> None:
    """Drop the packets that references stand for, and all before them, from their journals."""
    for reference in references:
        if reference.upto:
            with Journal.open(Path(reference.place)) as journal:
                journal.prune(reference.upto)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file:
        yield from pa.ipc.open_stream(file)
