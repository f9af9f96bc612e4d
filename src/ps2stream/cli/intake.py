"""Records from a file or pipe into the journal, with a line for each that needs one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import held_interrupts
from ps2stream.cli.render.output import brief, note, pointer, print_json, safe
from ps2stream.deployment.home import Home
from ps2stream.deployment.intake import Accepted, Fault, Intake, RecordKind
from ps2stream.deployment.line_reader import LineReader
from ps2stream.deployment.records import Origin
from ps2stream.errors import ExpressionError
from ps2stream.journal import Journal
from ps2stream.model.expressions import parse


def take_lines(kind: RecordKind, home: Home, descriptor: int, *, as_json: bool) -> int:
    """Append the records of all lines to the journal of a home; return the exit code.

    An interrupt ends the reading, not an append: all lines that came whole are appended first.
    """
    with held_interrupts() as interrupts, Journal.open(home.journal, create=True) as journal:
        intake = Intake(kind, journal, PrintedReceipts(kind, as_json))
        reader = LineReader(descriptor, lambda: interrupts)
        with _summed_up(intake):
            for lines in reader.batches():
                intake.take_lines(lines)
                # Acknowledged before the next batch is awaited.
                print(end="", flush=True)
            if interrupts and reader.has_unfinished:
                note(f"ps2stream: interrupted; the last line was not finished and is not {kind.done}")
        return interrupts.exit_code if interrupts else _exit_code(intake)


def take_document(kind: RecordKind, home: Home, descriptor: int, *, as_json: bool) -> int:
    """Append the records of one JSON text; return the exit code."""
    document = b"".join(_chunks(descriptor))
    with held_interrupts() as interrupts, Journal.open(home.journal, create=True) as journal:
        intake = Intake(kind, journal, PrintedReceipts(kind, as_json))
        with _summed_up(intake):
            intake.take_document(document)
        return interrupts.exit_code if interrupts else _exit_code(intake)


class PrintedReceipts:
    """Rejected records on stderr; with ``as_json`` a line for every record on stdout."""

    def __init__(self, kind: RecordKind, as_json: bool) -> None:
        self._kind = kind
        self._as_json = as_json

    def rejected(self, fault: Fault) -> None:
        where = f"{fault.origin}: " if str(fault.origin) else ""
        note(f"ps2stream: {where}{brief(safe(fault.reason))}")
        if fault.expression is not None:
            _point_at_error(fault.expression)
        if self._as_json:
            print_json({**_numbers(fault.origin), "rejected": fault.reason})

    def accepted(self, records: Iterable[Accepted]) -> None:
        if self._as_json:
            for record in records:
                mark = {"generated": True} if record.is_generated else {}
                print_json({**_numbers(record.origin), "id": record.id, "seq": record.seq, **mark})

    def lost(self, n_records: int) -> None:
        note(f"ps2stream: {_count(n_records, self._kind.noun)} more came and could not be kept")


@contextlib.contextmanager
def _summed_up(intake: Intake) -> Iterator[None]:
    """Say what was done, also when it could not be finished."""
    try:
        yield
    finally:
        words = f"{intake.kind.done} {_count(intake.n_accepted, intake.kind.noun)}"
        if intake.n_generated:
            words += f" ({intake.n_generated:,} with a generated id; --json shows them)"
        note(f"{words}, rejected {intake.n_rejected:,}")


def _point_at_error(expression: str) -> None:
    try:
        parse(expression)
    except ExpressionError as error:
        note(pointer(expression, error.position))


def _exit_code(intake: Intake) -> int:
    return exit_codes.PARTLY if intake.n_rejected else exit_codes.DONE


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, 1 << 20):
        yield chunk


def _numbers(origin: Origin) -> dict[str, int]:
    return {name: number for name, number in origin._asdict().items() if number is not None}


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
