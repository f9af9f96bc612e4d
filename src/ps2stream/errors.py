"""Every error that PS2Stream raises on purpose, in one tree.

    PS2StreamError
    ├── ExpressionError      an expression cannot be parsed; knows the position
    ├── RegionError          a region or a coordinate is out of its domain
    ├── SchemaError          a table lacks a column or has one of the wrong type
    ├── ConfigError          a setting is out of its range or contradicts another
    │   └── MissingExtraError    an optional package is needed; says what to install
    ├── RejectedError        events given by a Python call are not valid; knows them all
    ├── JournalError         a journal cannot be opened, read or written
    ├── StateError           the state of a job is missing, foreign or damaged
    │   ├── MissingError         a store has nothing under a key
    │   └── FencedError          another driver has taken over the state
    ├── BrokerError          a Kafka cluster cannot be reached, or refuses
    └── EngineError          a process that the engine needs has failed or ended

A message says where, what was needed and what came; of a long string it quotes an excerpt
(:func:`quoted`). In a stream a bad *record* is no error: it leaves by the rejected output with its reason
(see ``model.events``). Who calls from Python has no such output to look at, so there it is raised unless
asked otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: This many rejected events are named in a message.
_NAMED = 3
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


class MissingExtraError(ConfigError, ImportError):
    """What is asked for needs a package of an extra that is not installed."""

    def __init__(self, what: str, modules: Sequence[str], extra: str) -> None:
        super().__init__(f"{what} needs {', '.join(modules)}: pip install 'ps2stream[{extra}]'")
        self.extra = extra


class Rejected(NamedTuple):
    """An event that is not accepted, and why; what it lacks is None.

    ``row`` counts the records of a call from 0, where they have no ``seq`` yet.
    """

    op: str | None
    id: str | None
    reason: str
    seq: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        return f"{self.op} {quoted(self.id)}: {self.reason}"

    @property
    def where(self) -> str:
        """Say which of many it is."""
        return f"row {self.row}" if self.seq is None else f"seq {self.seq}"


class RejectedError(PS2StreamError):
    """Some events of a call are not valid; ``rejected`` has all of them."""

    def __init__(self, rejected: Sequence[Rejected], n_events: int) -> None:
        super().__init__(f"rejected: {rejected[0]}" if n_events == 1 else _summary(rejected, n_events))
        self.rejected = tuple(rejected)


def _summary(rejected: Sequence[Rejected], n_events: int) -> str:
    named = [f"{each.where}: {each}" for each in rejected[:_NAMED]]
    if len(rejected) > _NAMED:
        named.append(f"and {len(rejected) - _NAMED:,} more")
    return f"{len(rejected):,} of {n_events:,} events rejected: {'; '.join(named)}"


class JournalError(PS2StreamError):
    """A journal cannot be opened, read or written."""


class StateError(PS2StreamError):
    """The state directory of a job is missing, foreign or damaged."""


class MissingError(StateError):
    """A store has nothing under a key."""


class FencedError(StateError):
    """Another driver has taken over the state; what this one wrote since does not count."""


class BrokerError(PS2StreamError):
    """A Kafka cluster cannot be reached, or refuses what was asked of it."""


class EngineError(PS2StreamError):
    """A process that the engine needs has failed or ended."""
