"""Records from a file or pipe into the journal, batch by batch; a bad one is told of and the rest go on."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

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
        found: Records = []
        for number, line in lines:
            found += self._records(line, number)
        self._append(found)

    def take_document(self, document: bytes) -> None:
        """Take one JSON text as a whole, in batches."""
        found = self._records(document, None)
        for start in range(0, len(found), MAX_LINES):
            self._append(found[start : start + MAX_LINES])

    def summary(self) -> str:
        words = f"{self.kind.done} {_count(self.n_accepted, self.kind.noun)}"
        if self.n_generated:
            words += f" ({self.n_generated:,} with a generated id; --json shows them)"
        return f"{words}, rejected {self.n_rejected:,}"

    def _records(self, document: bytes, line: int | None) -> Records:
        found: Records = []
        try:
            for place, value in objects_in(document, line):
                try:
                    found.append((place, self.kind.row_of(value)))
                except BadRecordError as error:
                    self._reject(place, str(error))
        except BadRecordError as error:
            self._reject(Place(line), str(error))
        return found

    def _append(self, records: Records) -> None:
        generated = set()
        for number, (_, row) in enumerate(records):
            row["op"] = self.kind.op
            row["seq"] = number
            if row["id"] is None and not self.kind.needs_id:
                row["id"] = str(uuid.uuid4())
                generated.add(number)
        if not records:
            return
        events = pa.RecordBatch.from_pylist([row for _, row in records], schema=EVENTS)
        rejected = self.kind.rejected_of(events)
        reasons = dict(zip(rejected.column("seq").to_pylist(), rejected.column("reason").to_pylist(), strict=True))
        for number in sorted(reasons):
            place, row = records[number]
            self._reject(place, reasons[number], row.get("expression"))
        kept = [number for number in range(len(records)) if number not in reasons]
        if not kept:
            return
        appended = self.journal.append(events.take(pa.array(kept)) if reasons else events)
        self.n_accepted += len(kept)
        self.n_generated += len(generated.intersection(kept))
        if self.as_json:
            for seq, number in enumerate(kept, appended.first_seq):
                place, row = records[number]
                self._acknowledge(place, row["id"], seq, number in generated)

    def _acknowledge(self, place: Place, record_id: str, seq: int, generated: bool) -> None:
        mark = {"generated": True} if generated else {}
        print_json({**_numbers(place), "id": record_id, "seq": seq, **mark})

    def _reject(self, place: Place, reason: str, expression: str | None = None) -> None:
        self.n_rejected += 1
        where = f"{place}: " if str(place) else ""
        note(f"ps2stream: {where}{safe(reason)}")
        if expression is not None:
            self._point(expression)
        if self.as_json:
            print_json({**_numbers(place), "rejected": reason})

    def _point(self, expression: str) -> None:
        try:
            parse(expression)
        except ExpressionError as error:
            note(pointer(expression, error.position))


def take_in(kind: Kind, home: Home, descriptor: int, *, whole: bool, as_json: bool) -> int:
    """Append all records of an input to the journal of a home; return the exit code.

    An interrupt ends the reading, not an append: all lines that came whole are appended first.
    """
    with held_interrupts() as interrupts, Journal.open(home.journal, create=True) as journal:
        intake = Intake(kind, journal, as_json)
        reader = LineReader(descriptor, lambda: interrupts)
        try:
            if whole:
                intake.take_document(b"".join(_chunks(descriptor)))
            else:
                for lines in reader.batches():
                    intake.take_lines(lines)
                    _flush()
        except PS2StreamError:
            note(intake.summary())
            raise
        if interrupts and reader.has_unfinished:
            note(f"ps2stream: interrupted; the last line was not finished and is not {kind.done}")
        note(intake.summary())
        if interrupts:
            return interrupts.exit_code
    return exits.PARTLY if intake.n_rejected else exits.DONE


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, 1 << 20):
        yield chunk


def _flush() -> None:
    """Let the acknowledgements of a batch out before the next one is awaited."""
    print(end="", flush=True)


def _numbers(place: Place) -> dict[str, int]:
    return {name: number for name, number in place._asdict().items() if number is not None}


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
