"""Every error that PS2Stream raises on purpose, in one tree.

    PS2StreamError
    ├── ExpressionError      an expression cannot be parsed; knows the position
    ├── RegionError          a region or a coordinate is out of its domain
    ├── SchemaError          a table lacks a column or has one of the wrong type
    ├── ConfigError          a setting is out of its range or contradicts another
    ├── JournalError         a journal cannot be opened, read or written
    ├── StateError           the state of a job is missing, foreign or damaged
    └── EngineError          a process that the engine needs has failed or ended

A message says where, what was needed and what came. A bad *record* is no error: it
leaves by the rejected output with its reason (see ``model.events``).
"""

from __future__ import annotations


class PS2StreamError(Exception):
    """Base of all errors that a user can act on."""


class ExpressionError(PS2StreamError):
    """Say where in an expression the parser stopped and what it needed there."""

    def __init__(self, message: str, expression: str, position: int) -> None:
        super().__init__(f"{message} at position {position} of {expression!r}")
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


class EngineError(PS2StreamError):
    """A process that the engine needs has failed or ended."""
