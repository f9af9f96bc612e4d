"""Every error that PS2Stream raises on purpose, in one tree.

    PS2StreamError
    ├── ExpressionError      an expression cannot be parsed; knows the position
    ├── RegionError          a region or a coordinate is out of its domain
    ├── SchemaError          a table lacks a column or has one of the wrong type
    ├── ConfigError          a setting is out of its range or contradicts another
    ├── JournalError         a journal cannot be opened, read or written
    └── StateError           the state of a job is missing, foreign or damaged

A message says where, what was needed and what came; of a long string it quotes an excerpt
(:func:`quoted`). A bad *record* is no error: it leaves by the rejected output with its reason
(see ``model.events``).
"""

from __future__ import annotations

#: The most characters of a string that a message quotes.
EXCERPT = 60


def quoted(value: object, position: int = 0) -> str:
    """Quote a value that a user gave; of a long string, what stands around a position."""
    if not isinstance(value, str):
        shown = repr(value)
        return shown if len(shown) <= EXCERPT else f"{shown[:EXCERPT]}\u2026"
    start = max(0, min(position - EXCERPT // 2, len(value) - EXCERPT))
    stop = start + EXCERPT
    before, behind = "\u2026" if start > 0 else "", "\u2026" if stop < len(value) else ""
    return f"{before}{value[start:stop]!r}{behind}"


class PS2StreamError(Exception):
    """Base of all errors that a user can act on."""


class ExpressionError(PS2StreamError):
    """Say where in an expression the parser stopped and what it needed there."""

    def __init__(self, message: str, expression: str, position: int) -> None:
        super().__init__(f"{message} at position {position} of {quoted(expression, position)}")
        self.expression = expression
        self.position = position


class RegionError(PS2StreamError):
    """A region or a coordinate is out of its domain."""


class SchemaError(PS2StreamError):
    """A table lacks a column or has one of the wrong type."""


class ConfigError(PS2StreamError):
    """A setting is out of its range or contradicts another."""


class JournalError(PS2StreamError):
    """A journal cannot be opened, read or written."""


class StateError(PS2StreamError):
    """The state directory of a job is missing, foreign or damaged."""
