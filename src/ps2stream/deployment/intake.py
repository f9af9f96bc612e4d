"""Records into the events of a deployment, batch by batch; a bad one is reported and the rest go on.

Who feeds records is told what became of each through a :class:`Receipts`: the command line prints, a service
would answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from ps2stream.deployment.deployment_events import ANYWHERE, Demands, DeploymentEvents
from ps2stream.deployment.home import Home
from ps2stream.deployment.line_reader import MAX_LINES
from ps2stream.deployment.live_subscriptions import live_subscriptions
from ps2stream.errors import PS2StreamError, quoted
from ps2stream.model.events import check_publications, rejection
from ps2stream.model.records import (
    BadRecordError,
    Origin,
    Row,
    objects_in,
    publication_row,
    subscription_row,
    unsubscription_row,
)
from ps2stream.model.schemas import EVENTS, PUBLICATIONS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, UPDATES
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.text.tokenizer import Tokenizer

OriginRows = list[tuple[Origin, Row]]

#: Take events, return a rejected record (``seq`` is the row's number) for each that the job would reject.
Check = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RecordKind:
    """What is taken in: how one is read, which rules it obeys, and how to speak of it."""

    op: str
    noun: str
    done: str
    row_of: Callable[[object], Row]
    rejected_of: Check
    needs_id: bool


def publications() -> RecordKind:
    def rejected_of(events: pa.RecordBatch) -> pa.RecordBatch:
        return check_publications(events.select(PUBLICATIONS.names))[1]

    return RecordKind(PUBLISH, "publication", "published", publication_row, rejected_of, needs_id=False)


def subscriptions(stop_words: Iterable[str]) -> RecordKind:
    tokenizer = Tokenizer(stop_words)

    def rejected_of(events: pa.RecordBatch) -> pa.RecordBatch:
        return compile_updates(events.select(UPDATES.names), tokenizer)[1]

    return RecordKind(SUBSCRIBE, "subscription", "subscribed", subscription_row, rejected_of, needs_id=True)


def unsubscriptions(home: Home) -> RecordKind:
    def rejected_of(events: pa.RecordBatch) -> pa.RecordBatch:
        ids = events.column("id").to_pylist()
        live = set(live_subscriptions(home, ids).column("id").to_pylist())
        missing = {row: each for row, each in enumerate(ids) if each not in live}
        return rejection(
            events, {row: f"no live subscription has the id {quoted(each)}" for row, each in missing.items()}
        )

    return RecordKind(
        UNSUBSCRIBE, "subscription", "unsubscribed", unsubscription_row, rejected_of, needs_id=True
    )


class Fault(NamedTuple):
    """A record that was rejected, and why."""

    origin: Origin
    reason: str
    expression: str | None = None


class Accepted(NamedTuple):
    """A record that is kept."""

    origin: Origin
    id: str
    seq: int | None
    is_generated: bool  # the id is ours


class Checked(NamedTuple):
    """Records of one append, as events; which of them are valid, and what is wrong with the others."""

    records: OriginRows
    events: pa.RecordBatch
    kept: list[int]
    generated: set[int]
    faults: list[Fault]


class Receipts(Protocol):
    """Be told what became of each record, in the order of the input."""

    def rejected(self, fault: Fault) -> None: ...

    def accepted(self, records: Iterable[Accepted]) -> None:
        """Take notice of records that are on disk."""
        ...

    def lost(self, n_records: int) -> None:
        """Take notice of valid records that could not be kept; why is raised."""
        ...


def check(kind: RecordKind, records: OriginRows, faults: Iterable[Fault] = ()) -> Checked:
    """Apply the rules of the job to records; ``faults`` are those that could not even be read."""
    generated = _complete(kind, records)
    events = pa.RecordBatch.from_pylist([row for _, row in records], schema=EVENTS)
    rejected = kind.rejected_of(events)
    numbers, reasons = rejected.column("seq").to_pylist(), rejected.column("reason").to_pylist()
    found = [
        Fault(records[number][0], reason, records[number][1].get("expression"))
        for number, reason in zip(numbers, reasons, strict=True)
    ]
    bad = set(numbers)
    kept = [number for number in range(len(records)) if number not in bad]
    in_order = sorted([*faults, *found], key=lambda fault: fault.origin)
    return Checked(records, events, kept, generated, in_order)


def _complete(kind: RecordKind, records: OriginRows) -> set[int]:
    """Add what the input leaves open; return which records got an id that way."""
    generated = set()
    for number, (_, row) in enumerate(records):
        row["op"] = kind.op
        row["seq"] = number
        if row["id"] is None and not kind.needs_id:
            row["id"] = str(uuid.uuid4())
            generated.add(number)
    return generated


@dataclass(slots=True)
class Intake:
    """Append records of one kind to those of a deployment and report what became of each."""

    kind: RecordKind
    target: DeploymentEvents
    receipts: Receipts
    demands: Demands = ANYWHERE
    n_accepted: int = field(default=0, init=False)
    n_generated: int = field(default=0, init=False)
    n_rejected: int = field(default=0, init=False)

    def take_lines(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Take a batch of JSON lines; when this returns, what was acknowledged is on disk."""
        records: OriginRows = []
        faults: list[Fault] = []
        for number, line in lines:
            self._read(line, number, records, faults)
        self._take(records, faults)

    def take_document(self, document: bytes) -> None:
        """Take one JSON text as a whole, in batches."""
        records: OriginRows = []
        faults: list[Fault] = []
        self._read(document, None, records, faults)
        self._take(records[:MAX_LINES], faults)
        for start in range(MAX_LINES, len(records), MAX_LINES):
            self._take(records[start : start + MAX_LINES], [])

    def _read(self, document: bytes, line: int | None, records: OriginRows, faults: list[Fault]) -> None:
        try:
            for origin, value in objects_in(document, line):
                try:
                    records.append((origin, self.kind.row_of(value)))
                except BadRecordError as error:
                    faults.append(Fault(origin, str(error)))
        except BadRecordError as error:
            faults.append(Fault(Origin(line), str(error)))

    def _take(self, records: OriginRows, faults: list[Fault]) -> None:
        self.add(check(self.kind, records, faults))

    def add(self, checked: Checked) -> None:
        """Append what is valid; report the rest in the order of the input, then what was accepted."""
        records, events, kept, generated, faults = checked
        for fault in faults:
            self.n_rejected += 1
            self.receipts.rejected(fault)
        if kept:
            seqs = self._append(events.take(pa.array(kept)) if len(kept) < len(records) else events)
            self.n_generated += len(generated.intersection(kept))
            self.receipts.accepted(
                Accepted(records[number][0], records[number][1]["id"], seq, number in generated)
                for number, seq in zip(kept, seqs, strict=True)
            )

    def _append(self, events: pa.RecordBatch) -> Sequence[int | None]:
        try:
            seqs = self.target.append(events, self.demands)
        except PS2StreamError:
            self.receipts.lost(events.num_rows)
            raise
        self.n_accepted += events.num_rows
        return seqs
