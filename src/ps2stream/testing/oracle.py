"""The definition of a match: slow, obvious, and what everything else is tested against.

Read the events in order and keep the live subscriptions in a dictionary. A publication matches every
live subscription whose region holds its point and whose expression its text satisfies.
An event that makes no sense is rejected, and the log goes on without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import Expression, parse
from ps2stream.model.limits import check_length, shortened
from ps2stream.model.matches import Match
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS, EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.text.terms import terms_of


class EventRow(NamedTuple):
    """One row of an event log; any field may be missing or wrong."""

    seq: int | None = None
    op: str | None = None
    id: str | None = None
    lat: float | None = None
    lon: float | None = None
    text: str | None = None
    expression: str | None = None
    min_lon: float | None = None
    min_lat: float | None = None
    max_lon: float | None = None
    max_lat: float | None = None


class Rejection(NamedTuple):
    """An event that was left out; of an op or id that is too long, the beginning."""

    seq: int | None
    op: str | None
    id: str | None


class Deliveries(NamedTuple):
    """Matches by publication, then by subscription, both by seq; rejections in the order of the log."""

    matches: list[Match]
    rejected: list[Rejection]


class _Subscription(NamedTuple):
    id: str
    seq: int
    expression: Expression
    min_lon: float
    min_lat: float
    max_lon: float
    max_lat: float


class _RejectedError(Exception):
    """The event at hand must be left out."""


def run(events: Iterable[EventRow] | pa.Table | pa.RecordBatch, stop_words: Iterable[str] = ()) -> Deliveries:
    """Return the matches of an event log and what it rejects."""
    stopped = frozenset(term for word in stop_words for term in terms_of(word))
    live: dict[str, _Subscription] = {}
    outcome = Deliveries([], [])
    last_seq = BEFORE_ALL_SEQS
    for event in _rows(events):
        try:
            seq, event_id = _seq_and_id(event, last_seq)
            if event.op == PUBLISH:
                outcome.matches.extend(_matches(event, seq, event_id, live.values(), stopped))
            elif event.op == SUBSCRIBE:
                # The new version replaces the old one, but only if it is accepted.
                live[event_id] = _subscription(event, seq, event_id, stopped)
            elif event.op == UNSUBSCRIBE and event_id in live:
                del live[event_id]
            else:
                raise _RejectedError
        except _RejectedError:
            outcome.rejected.append(_rejection(event))
        # A rejected event has taken its seq all the same.
        if event.seq is not None and last_seq < event.seq < AFTER_ALL_SEQS:
            last_seq = event.seq
    return outcome


def _rows(events: Iterable[EventRow] | pa.Table | pa.RecordBatch) -> Iterable[EventRow]:
    if isinstance(events, pa.Table | pa.RecordBatch):
        return [EventRow(**row) for row in events.select(EVENTS.names).to_pylist()]
    return events


def _rejection(event: EventRow) -> Rejection:
    return Rejection(event.seq, event.op and shortened(event.op), event.id and shortened(event.id))


def _seq_and_id(event: EventRow, last_seq: int) -> tuple[int, str]:
    if event.seq is None or not last_seq < event.seq < AFTER_ALL_SEQS:
        raise _RejectedError
    if not event.id or check_length("id", event.id):
        raise _RejectedError
    return event.seq, event.id


def _matches(
    event: EventRow, seq: int, event_id: str, live: Iterable[_Subscription], stopped: frozenset[str]
) -> list[Match]:
    lon, lat = _coordinate(event.lon, 180), _coordinate(event.lat, 90)
    if event.text is None or check_length("text", event.text):
        raise _RejectedError
    terms = terms_of(event.text) - stopped
    return [
        Match(subscription.id, subscription.seq, event_id, seq)
        for subscription in sorted(live, key=lambda one: one.seq)
        if _is_inside(lon, lat, subscription) and subscription.expression.evaluate(terms)
    ]


def _subscription(event: EventRow, seq: int, event_id: str, stopped: frozenset[str]) -> _Subscription:
    min_lon, max_lon = _coordinate(event.min_lon, 180), _coordinate(event.max_lon, 180)
    min_lat, max_lat = _coordinate(event.min_lat, 90), _coordinate(event.max_lat, 90)
    if min_lat > max_lat or event.expression is None:
        raise _RejectedError
    try:
        expression = parse(event.expression).without(stopped)
    except ExpressionError:
        raise _RejectedError from None
    return _Subscription(event_id, seq, expression, min_lon, min_lat, max_lon, max_lat)


def _coordinate(value: float | None, bound: float) -> float:
    # Not a number compares as false with everything, so it is out of range like the infinities.
    if value is None or not -bound <= value <= bound:
        raise _RejectedError
    return value


def _is_inside(lon: float, lat: float, region: _Subscription) -> bool:
    """Tell whether a closed region holds a point; coordinates are compared as given."""
    if not region.min_lat <= lat <= region.max_lat:
        return False
    if region.min_lon <= region.max_lon:
        return region.min_lon <= lon <= region.max_lon
    return lon >= region.min_lon or lon <= region.max_lon  # across the antimeridian
