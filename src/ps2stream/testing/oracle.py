"""The definition of a match: slow, obvious, and what everything else is tested against.

Read the events in order and keep the live subscriptions in a dictionary. A publication matches every
live subscription whose region holds its point and whose expression its text satisfies.
An event that makes no sense is rejected, and the log goes on without it.

:func:`run` takes a log in which every event has a seq of its own. Where only updates are numbered, and
publications are placed between them, :func:`run_at` says the same: a publication sees the updates below its
position and no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

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


#: A log of events, in memory.
Events: TypeAlias = Iterable[EventRow] | pa.Table | pa.RecordBatch


class Rejection(NamedTuple):
    """An event that was left out; of an op or id that is too long, the beginning."""

    seq: int | None
    op: str | None
    id: str | None


class Deliveries(NamedTuple):
    """Matches by publication, then by subscription, both by seq; rejections in the order of the log."""

    matches: list[Match]
    rejected: list[Rejection]


class Version(NamedTuple):
    """A subscription from its subscribe event to the update that ended or replaced it."""

    id: str
    seq: int
    end: int
    expression: Expression
    min_lon: float
    min_lat: float
    max_lon: float
    max_lat: float

    def is_live_at(self, position: int) -> bool:
        """Tell whether a publication at a position sees it."""
        return self.seq < position < self.end


class _RejectedError(Exception):
    """The event at hand must be left out."""


class _Log:
    """The events up to now: who lives, who has ended, and what was left out."""

    def __init__(self, stop_words: Iterable[str]) -> None:
        self.stopped = _stopped(stop_words)
        self.live: dict[str, Version] = {}
        self.ended: list[Version] = []
        self.rejected: list[Rejection] = []
        self._last_seq = BEFORE_ALL_SEQS

    def take(self, event: EventRow) -> list[Match]:
        """Take the next event; return the matches of a publication."""
        matches: list[Match] = []
        try:
            seq, event_id = _seq_and_id(event, self._last_seq)
            if event.op == PUBLISH:
                met = _met(event, self.live.values(), self.stopped)
                matches = [Match(version.id, version.seq, event_id, seq) for version in met]
            elif event.op == SUBSCRIBE:
                # The new version replaces the old one, but only if it is accepted.
                version = _version(event, seq, event_id, self.stopped)
                self._end(event_id, seq)
                self.live[event_id] = version
            elif event.op == UNSUBSCRIBE and event_id in self.live:
                self._end(event_id, seq)
            else:
                raise _RejectedError
        except _RejectedError:
            self.rejected.append(_rejection(event))
        # A rejected event has taken its seq all the same.
        if event.seq is not None and self._last_seq < event.seq < AFTER_ALL_SEQS:
            self._last_seq = event.seq
        return matches

    def _end(self, event_id: str, seq: int) -> None:
        if event_id in self.live:
            self.ended.append(self.live.pop(event_id)._replace(end=seq))


def run(events: Events, stop_words: Iterable[str] = ()) -> Deliveries:
    """Return the matches of an event log and what it rejects."""
    log = _Log(stop_words)
    matches = [match for event in _rows(events) for match in log.take(event)]
    return Deliveries(matches, log.rejected)


def run_at(updates: Events, publications: Events, stop_words: Iterable[str] = ()) -> Deliveries:
    """Return the matches of publications whose seq is a position among updates.

    Updates are a log. Publications come in any order and may share a position; matches are ordered by
    position, then by publication id. Rejected publications follow the rejected updates.
    """
    lives, rejected = versions(updates, stop_words)
    matches: list[Match] = []
    for event in _rows(publications):
        met = met_by(event, lives, stop_words)
        if met is None or event.seq is None or not BEFORE_ALL_SEQS < event.seq < AFTER_ALL_SEQS:
            rejected.append(_rejection(event))
            continue
        seen = [version for version in met if version.is_live_at(event.seq)]
        matches += [Match(version.id, version.seq, str(event.id), event.seq) for version in seen]
    matches.sort(key=lambda match: (match.publication_seq, match.publication_id, match.subscription_seq))
    return Deliveries(matches, rejected)


def versions(updates: Events, stop_words: Iterable[str] = ()) -> tuple[list[Version], list[Rejection]]:
    """Return every version of a subscription that a log of updates brings, by seq, and what it rejects."""
    log = _Log(stop_words)
    for event in _rows(updates):
        log.take(event)
    return sorted([*log.ended, *log.live.values()], key=lambda one: one.seq), log.rejected


def met_by(event: EventRow, lives: Iterable[Version], stop_words: Iterable[str] = ()) -> list[Version] | None:
    """Return the versions, by seq, that a publication meets whenever they live; None if it makes no sense."""
    if event.op != PUBLISH or not event.id or check_length("id", event.id):
        return None
    try:
        return _met(event, lives, _stopped(stop_words))
    except _RejectedError:
        return None


def _stopped(stop_words: Iterable[str]) -> frozenset[str]:
    return frozenset(term for word in stop_words for term in terms_of(word))


def _rows(events: Events) -> Iterable[EventRow]:
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


def _met(event: EventRow, lives: Iterable[Version], stopped: frozenset[str]) -> list[Version]:
    lon, lat = _coordinate(event.lon, 180), _coordinate(event.lat, 90)
    if event.text is None or check_length("text", event.text):
        raise _RejectedError
    terms = terms_of(event.text) - stopped
    return [
        version
        for version in sorted(lives, key=lambda one: one.seq)
        if _is_inside(lon, lat, version) and version.expression.evaluate(terms)
    ]


def _version(event: EventRow, seq: int, event_id: str, stopped: frozenset[str]) -> Version:
    min_lon, max_lon = _coordinate(event.min_lon, 180), _coordinate(event.max_lon, 180)
    min_lat, max_lat = _coordinate(event.min_lat, 90), _coordinate(event.max_lat, 90)
    if min_lat > max_lat or event.expression is None:
        raise _RejectedError
    try:
        expression = parse(event.expression).without(stopped)
    except ExpressionError:
        raise _RejectedError from None
    return Version(event_id, seq, AFTER_ALL_SEQS, expression, min_lon, min_lat, max_lon, max_lat)


def _coordinate(value: float | None, bound: float) -> float:
    # Not a number compares as false with everything, so it is out of range like the infinities.
    if value is None or not -bound <= value <= bound:
        raise _RejectedError
    return value


def _is_inside(lon: float, lat: float, region: Version) -> bool:
    """Tell whether a closed region holds a point; coordinates are compared as given."""
    if not region.min_lat <= lat <= region.max_lat:
        return False
    if region.min_lon <= region.max_lon:
        return region.min_lon <= lon <= region.max_lon
    return lon >= region.min_lon or lon <= region.max_lon  # across the antimeridian
