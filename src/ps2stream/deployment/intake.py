"""Records into the journal of a deployment, batch by batch; a bad one is reported and the rest go on.

Who feeds records is told what became of each through a :class:`Receipts`: the command line prints, a service
would answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from ps2stream.deployment.line_reader import MAX_LINES
from ps2stream.deployment.records import (
    BadRecordError,
    Origin,
    Row,
    objects_in,
    publication_row,
    subscription_row,
)
from ps2stream.errors import PS2StreamError
from ps2stream.journal import Journal
from ps2stream.model.events import check_publications
from ps2stream.model.schemas import EVENTS, PUBLICATIONS, PUBLISH, SUBSCRIBE, UPDATES
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.text.tokenizer import Tokenizer

Records = list[tuple[Origin, Row]]

#: Take events, return a rejected record (``seq`` is the row's number) for each that the job would reject.
Check = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is taken in: how one is read, which rules it obeys, and how to speak of it."""

    op: str
    noun: str
    done: str
    row_of: Callable[[object], Row]
    rejected_of: Check
    needs_id: bool


def publications() -> Kind:
    def rejected_of(events: pa.RecordBatch) -> pa.RecordBatch:
        return check_publications(events.select(PUBLICATIONS.names))[1]

    return Kind(PUBLISH, "publication", "published", publication_row, rejected_of, needs_id=False)


def subscriptions(stop_words: Iterable[str]) -> Kind:
    tokenizer = Tokenizer(stop_words)

    def rejected_of(events: pa.RecordBatch) -> pa.RecordBatch:
        return compile_updates(events.select(UPDATES.names), tokenizer)[1]

    return Kind(SUBSCRIBE, "subscription", "subscribed", subscription_row, rejected_of, needs_id=True)


class Fault(NamedTuple):
    """A record that was rejected, and why."""

    origin: Origin
    reason: str
    expression: str | None = None


class Accepted(NamedTuple):
    """A record that is in the journal."""

    origin: Origin
    id: str
    seq: int
    is_generated: bool  # the id is ours


class Receipts(Protocol):
    """Be told what became of each record, in the order of the input."""

    def rejected(self, fault: Fault) -> None: ...

    def accepted(self, records: Iterable[Accepted]) -> None:
        """Take notice of records that are on disk."""
        ...

    def lost(self, n_records: int) -> None:
        """Take notice of valid records that the journal could not keep; why is raised."""
        ...


@dataclass(slots=True)
class Intake:
    """Append records of one kind to a journal and report what became of each."""

    kind: Kind
    journal: Journal
    receipts: Receipts
    n_accepted: int = field(default=0, init=False)
    n_generated: int = field(default=0, init=False)
    n_rejected: int = field(default=0, init=False)

    def take_lines(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Take a batch of JSON lines; when this returns, what was acknowledged is on disk."""
        records: Records = []
        faults: list[Fault] = []
        for number, line in lines:
            self._read(line, number, records, faults)
        self._take(records, faults)

    def take_document(self, document: bytes) -> None:
        """Take one JSON text as a whole, in batches."""
        records: Records = []
        faults: list[Fault] = []
        self._read(document, None, records, faults)
        self._take(records[:MAX_LINES], faults)
        for start in range(MAX_LINES, len(records), MAX_LINES):
            self._take(records[start : start + MAX_LINES], [])

    def _read(self, document: bytes, line: int | None, records: Records, faults: list[Fault]) -> None:
        try:
            for origin, value in objects_in(document, line):
                try:
                    records.append((origin, self.kind.row_of(value)))
                except BadRecordError as error:
                    faults.append(Fault(origin, str(error)))
        except BadRecordError as error:
            faults.append(Fault(Origin(line), str(error)))

    def _take(self, records: Records, faults: list[Fault]) -> None:
        """Append what is valid; report the rest in the order of the input, then what was accepted."""
        generated = self._complete(records)
        events = pa.RecordBatch.from_pylist([row for _, row in records], schema=EVENTS)
        rejected = self.kind.rejected_of(events)
        numbers, reasons = rejected.column("seq").to_pylist(), rejected.column("reason").to_pylist()
        for number, reason in zip(numbers, reasons, strict=True):
            origin, row = records[number]
            faults.append(Fault(origin, reason, row.get("expression")))
        for fault in sorted(faults, key=lambda fault: fault.origin):
            self.n_rejected += 1
            self.receipts.rejected(fault)
        bad = set(numbers)
        kept = [number for number in range(len(records)) if number not in bad]
        if kept:
            seq = self._append(events.take(pa.array(kept)) if bad else events)
            self.n_generated += len(generated.intersection(kept))
            self.receipts.accepted(
                Accepted(records[number][0], records[number][1]["id"], seq + i, number in generated)
                for i, number in enumerate(kept)
            )

    def _complete(self, records: Records) -> set[int]:
        """Add what the input leaves open; return which records got an id that way."""
        generated = set()
        for number, (_, row) in enumerate(records):
            row["op"] = self.kind.op
            row["seq"] = number
            if row["id"] is None and not self.kind.needs_id:
                row["id"] = str(uuid.uuid4())
                generated.add(number)
        return generated

    def _append(self, events: pa.RecordBatch) -> int:
        try:
            appended = self.journal.append(events)
        except PS2StreamError:
            self.receipts.lost(events.num_rows)
            raise
        self.n_accepted += events.num_rows
        return appended.first_seq
