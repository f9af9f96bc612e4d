"""What people see of records that were taken in: a line for each that needs one, and a summary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from ps2stream.cli.render.output import brief, note, pointer, print_json, safe
from ps2stream.cli.render.printable import counted
from ps2stream.deployment.intake import Accepted, Fault, Intake, RecordKind
from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import parse
from ps2stream.model.records import Origin


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
        note(f"ps2stream: {counted(n_records, self._kind.noun)} more came and could not be kept")


@contextlib.contextmanager
def summed_up(intake: Intake) -> Iterator[None]:
    """Say what was done, also when it could not be finished."""
    try:
        yield
    finally:
        words = f"{intake.kind.done} {counted(intake.n_accepted, intake.kind.noun)}"
        if intake.n_generated:
            words += f" ({intake.n_generated:,} with a generated id; --json shows them)"
        note(f"{words}, rejected {intake.n_rejected:,}")


def _point_at_error(expression: str) -> None:
    try:
        parse(expression)
    except ExpressionError as error:
        note(pointer(expression, error.position))


def _numbers(origin: Origin) -> dict[str, int]:
    return {name: number for name, number in origin._asdict().items() if number is not None}
