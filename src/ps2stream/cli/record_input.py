"""What ``publish`` and ``subscribe`` share: records from a file or pipe into the events of a home."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import held_interrupts
from ps2stream.cli.render.output import note
from ps2stream.cli.render.receipts import PrintedReceipts, summed_up
from ps2stream.deployment.deployment_events import ANYWHERE, Demands
from ps2stream.deployment.home import Home
from ps2stream.deployment.intake import Intake, RecordKind
from ps2stream.deployment.line_reader import LineReader


def take_lines(
    kind: RecordKind, home: Home, descriptor: int, *, as_json: bool, demands: Demands = ANYWHERE
) -> int:
    """Append the records of all lines to the events of a home; return the exit code.

    An interrupt ends the reading, not an append: all lines that came whole are appended first.
    """
    with held_interrupts() as interrupts, closing(home.events(create=True)) as events:
        intake = Intake(kind, events, PrintedReceipts(kind, as_json), demands)
        reader = LineReader(descriptor, lambda: interrupts)
        with summed_up(intake):
            for lines in reader.batches():
                intake.take_lines(lines)
                # Acknowledged before the next batch is awaited.
                print(end="", flush=True)
            if interrupts and reader.has_unfinished:
                note(f"ps2stream: interrupted; the last line was not finished and is not {kind.done}")
        return interrupts.exit_code if interrupts else _exit_code(intake)


def take_document(
    kind: RecordKind, home: Home, descriptor: int, *, as_json: bool, demands: Demands = ANYWHERE
) -> int:
    """Append the records of one JSON text; return the exit code."""
    document = b"".join(_chunks(descriptor))
    with held_interrupts() as interrupts, closing(home.events(create=True)) as events:
        intake = Intake(kind, events, PrintedReceipts(kind, as_json), demands)
        with summed_up(intake):
            intake.take_document(document)
        return interrupts.exit_code if interrupts else _exit_code(intake)


def _exit_code(intake: Intake) -> int:
    return exit_codes.PARTLY if intake.n_rejected else exit_codes.DONE


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, 1 << 20):
        yield chunk
