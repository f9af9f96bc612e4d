"""Printing: results on stdout, as columns or as JSON lines; everything about them on stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from ps2stream.errors import ExpressionError

# Cc holds the terminal's escape codes, Cf what hides or reorders text, Zl and Zp break lines.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: How much of a long expression is shown around an error.
_POINTER_WIDTH = 72
#: One very long cell must not push the column of all others.
_WIDEST_COLUMN = 64
#: What is longer is shortened for people; ``--json`` has it whole.
_LONGEST_CELL = 200
_LONGEST_LINE = 500


def complain(error: Exception | str) -> None:
    """Print what went wrong; an error in an expression points at it."""
    note(f"ps2stream: {brief(safe(str(error)))}")
    if isinstance(error, ExpressionError) and error.expression.strip():
        note(pointer(error.expression, error.position))


def note(text: str) -> None:
    """Print about the results, not among them."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON line, in ASCII: it is right in whatever encoding the terminal has."""
    print(json.dumps(value))


def safe(text: str) -> str:
    """Put a space for every character that could break a line or the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        " " if unicodedata.category(character) in _UNPRINTABLE else character for character in text
    )


def brief(text: str, most: int = _LONGEST_LINE) -> str:
    """Leave out the middle of a text that nobody would read: its end often says what was wrong."""
    if len(text) <= most:
        return text
    n_tail = most // 4
    gap = f" [... {len(text) - most:,} characters ...] "
    return text[: most - n_tail] + gap + text[-n_tail:]


def degrees(value: float) -> str:
    """Write a coordinate without the noise of its last bits; ten digits are a centimetre."""
    return f"{value:.10g}"


def display_width(text: str) -> int:
    """Count the columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def pointer(text: str, position: int) -> str:
    """Show the part of a text around a position, and a caret below it."""
    start = max(0, position - _POINTER_WIDTH // 2)
    shown = safe(text[start : start + _POINTER_WIDTH])
    return f"  {shown}\n  {' ' * display_width(shown[: position - start])}^"


class Columns:
    """Print rows in columns as they come; a column grows when a later row needs it to."""

    def __init__(self, *headers: str) -> None:
        self._headers: tuple[str, ...] | None = headers
        self._widths = [len(header) for header in headers]

    def write(self, rows: Iterable[Sequence[object]]) -> None:
        """Print rows below those before; the headers come with the first ones."""
        cells = [[brief(safe(str(value)), _LONGEST_CELL) for value in row] for row in rows]
        if not cells:
            return
        for column in range(len(self._widths) - 1):
            widest = max(display_width(row[column]) for row in cells)
            self._widths[column] = max(self._widths[column], min(widest, _WIDEST_COLUMN))
        if self._headers is not None:
            self._print(self._headers)
            self._headers = None
        for row in cells:
            self._print(row)

    def _print(self, row: Sequence[str]) -> None:
        padded = [
            cell + " " * (width - display_width(cell)) for cell, width in zip(row, self._widths, strict=True)
        ]
        print("  ".join([*padded[:-1], row[-1]]))


def at_seq(seq: int | None) -> str:
    """Say at which seq something counts; nothing where the job gives it later."""
    return "" if seq is None else f" at seq {seq}"
