"""What clients of a running deployment did and saw, to be judged afterwards (``checker``).

Whoever tests an engine under faults notes what was sent, what was acknowledged and what a reader got; lists
may be appended to by many threads. When all is quiet and read to the end, the history is complete. A client
does not know what became of an update whose acknowledgement never came; the topic of updates does, so what
it holds in the end is a part of the history, too (``log``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ps2stream.model.matches import Match
from ps2stream.testing.oracle import EventRow, Rejection


@dataclass(frozen=True, slots=True)
class SentUpdate:
    """A subscribe or unsubscribe event; its seq is what the acknowledgement said, None if it said nothing.

    Without ``acked_s`` it may have happened or not. Times are of one monotonic clock.
    """

    event: EventRow
    invoked_s: float
    acked_s: float | None = None


@dataclass(frozen=True, slots=True)
class SentPublication:
    """A publication that was sent once, under an id of its own, and where the broker put it.

    ``after`` and ``as_of`` are what its record demanded. Without ``acked_s`` it may have happened or not.
    """

    event: EventRow
    invoked_s: float
    acked_s: float | None = None
    partition: int | None = None
    offset: int | None = None
    after: int | None = None
    as_of: int | None = None


class Delivery(NamedTuple):
    """A match as a ``read_committed`` reader got it, and the worker that it came from.

    A number of anything that keeps an order will do for the worker; None: it is not known, and no order is
    checked. (A partition of matches keeps none where several workers write a subscription's matches.)
    """

    match: Match
    worker: int | None = None


@dataclass(slots=True)
class History:
    """Everything that was sent and everything that came out; deliveries of a worker in their order."""

    updates: list[SentUpdate] = field(default_factory=list)
    publications: list[SentPublication] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    #: The updates that there are in the end, with their seqs; None: those acknowledged and no others.
    log: list[EventRow] | None = None
    stop_words: Sequence[str] = ()


class Violation(NamedTuple):
    """A law that a history breaks, and a sentence: where, what was expected, what came."""

    law: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.law}: {self.sentence}"
