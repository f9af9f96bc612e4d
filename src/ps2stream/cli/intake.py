"""Records from a file or pipe into the journal, batch by batch; a bad one is told of and the rest go on."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from ps2stream.cli import exits
from ps2stream.cli.home import Home
from ps2stream.cli.interrupts import held_interrupts
from ps2stream.cli.lines import MAX_LINES, LineReader
from ps2stream.cli.output import note, pointer, print_json, safe
from ps2stream.cli.records import BadRecordError, Place, Row, objects_in, publication_row, subscription_row
from ps2stream.errors import ExpressionError, PS2StreamError
from ps2stream.journal import Journal
from ps2stream.model.events import check_publications
from ps2stream.model.expressions import parse
from ps2stream.model.schemas import EVENTS, PUBLICATIONS, PUBLISH, SUBSCRIBE, UPDATES
from ps2stream.pipeline.registrar import compile_updates
from ps2stream.text.tokenizer import Tokenizer

Records = list[tuple[Place, Row]]

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

    place: Place
    reason: str
    expression: str | None = None


@dataclass(slots=True)
class Intake:
    """Append records of one kind to a journal and say what became of each."""

    kind: Kind
    journal: Journal
    as_json: bool
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

    def summary(self) -> str:
        words = f"{self.kind.done} {_count(self.n_accepted, self.kind.noun)}"
        if self.n_generated:
            words += f" ({self.n_generated:,} with a generated id; --json shows them)"
        return f"{words}, rejected {self.n_rejected:,}"

    def _read(self, document: bytes, line: int | None, records: Records, faults: list[Fault]) -> None:
        try:
            for place, value in objects_in(document, line):
                try:
                    records.append((place, self.kind.row_of(value)))
                except BadRecordError as error:
                    faults.append(Fault(place, str(error)))
        except BadRecordError as error:
            faults.append(Fault(Place(line), str(error)))

    def _take(self, records: Records, faults: list[Fault]) -> None:
        """Append what is valid, tell of the rest in the order of the input, then acknowledge."""
        generated = self._complete(records)
        events = pa.RecordBatch.from_pylist([row for _, row in records], schema=EVENTS)
        rejected = self.kind.rejected_of(events)
        numbers, reasons = rejected.column("seq").to_pylist(), rejected.column("reason").to_pylist()
        for number, reason in zip(numbers, reasons, strict=True):
            place, row = records[number]
            faults.append(Fault(place, reason, row.get("expression")))
        for fault in sorted(faults, key=lambda fault: fault.place):
            self._tell(fault)
        bad = set(numbers)
        kept = [number for number in range(len(records)) if number not in bad]
        if kept:
            seq = self._append(events.take(pa.array(kept)) if bad else events)
            self.n_generated += len(generated.intersection(kept))
            if self.as_json:
                self._acknowledge([(*records[number], number in generated) for number in kept], seq)

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
            note(f"ps2stream: {_count(events.num_rows, self.kind.noun)} more came and could not be kept")
            raise
        self.n_accepted += events.num_rows
        return appended.first_seq

    def _acknowledge(self, kept: Iterable[tuple[Place, Row, bool]], first_seq: int) -> None:
        for seq, (place, row, is_generated) in enumerate(kept, first_seq):
            mark = {"generated": True} if is_generated else {}
            print_json({**_numbers(place), "id": row["id"], "seq": seq, **mark})

    def _tell(self, fault: Fault) -> None:
        self.n_rejected += 1
        where = f"{fault.place}: " if str(fault.place) else ""
        note(f"ps2stream: {where}{safe(fault.reason)}")
        if fault.expression is not None:
            _point_at_error(fault.expression)
        if self.as_json:
            print_json({**_numbers(fault.place), "rejected": fault.reason})


def _point_at_error(expression: str) -> None:
    try:
        parse(expression)
    except ExpressionError as error:
        note(pointer(expression, error.position))


def take_lines(kind: Kind, home: Home, descriptor: int, *, as_json: bool) -> int:
    """Append the records of all lines to the journal of a home; return the exit code.

    An interrupt ends the reading, not an append: all lines that came whole are appended first.
    """
    with held_interrupts() as interrupts, Journal.open(home.journal, create=True) as journal:
        intake = Intake(kind, journal, as_json)
        reader = LineReader(descriptor, lambda: interrupts)
        with _summed_up(intake):
            for lines in reader.batches():
                intake.take_lines(lines)
                # Acknowledged before the next batch is awaited.
                print(end="", flush=True)
            if interrupts and reader.has_unfinished:
                note(f"ps2stream: interrupted; the last line was not finished and is not {kind.done}")
        return interrupts.exit_code if interrupts else _exit_code(intake)


def take_document(kind: Kind, home: Home, descriptor: int, *, as_json: bool) -> int:
    """Append the records of one JSON text; return the exit code."""
    document = b"".join(_chunks(descriptor))
    with held_interrupts() as interrupts, Journal.open(home.journal, create=True) as journal:
        intake = Intake(kind, journal, as_json)
        with _summed_up(intake):
            intake.take_document(document)
        return interrupts.exit_code if interrupts else _exit_code(intake)


@contextlib.contextmanager
def _summed_up(intake: Intake) -> Iterator[None]:
    """Say what was done, also when it could not be finished."""
    try:
        yield
    finally:
        note(intake.summary())


def _exit_code(intake: Intake) -> int:
    return exits.PARTLY if intake.n_rejected else exits.DONE


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, 1 << 20):
        yield chunk


def _numbers(place: Place) -> dict[str, int]:
    return {name: number for name, number in place._asdict().items() if number is not None}


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
