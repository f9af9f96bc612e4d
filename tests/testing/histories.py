"""Histories by hand: one partition, one worker, everybody everywhere; seqs are small and even."""

from __future__ import annotations

from typing import Any

from ps2stream.model.matches import Match
from ps2stream.model.schemas import PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.history import Delivery, History, SentPublication, SentUpdate
from ps2stream.testing.oracle import EventRow

_EVERYWHERE: dict[str, Any] = {"min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0}


def subscribe(seq: int | None, name: str = "s", expression: str = "fire") -> EventRow:
    return EventRow(seq, SUBSCRIBE, name, expression=expression, **_EVERYWHERE)


def unsubscribe(seq: int | None, name: str = "s") -> EventRow:
    return EventRow(seq, UNSUBSCRIBE, name)


def acked(event: EventRow, invoked_s: float = 0.0, acked_s: float = 100.0) -> SentUpdate:
    """Return an update with its acknowledgement; by default all were under way at the same time."""
    return SentUpdate(event, invoked_s, acked_s)


def published(name: str, offset: int | None = 0, text: str = "fire", **fields: Any) -> SentPublication:
    """Return a publication that was acknowledged, all at the same time."""
    event = EventRow(None, PUBLISH, name, lat=0.0, lon=0.0, text=text)
    partition = None if offset is None else 0
    whole: dict[str, Any] = {"acked_s": 100.0, "partition": partition, "offset": offset, **fields}
    return SentPublication(event, 0.0, **whole)


def got(publication: str, position: int, seq: int = 2, name: str = "s", worker: int | None = 0) -> Delivery:
    return Delivery(Match(name, seq, publication, position), worker)


def history_of(
    updates: list[EventRow], publications: list[SentPublication], deliveries: list[Delivery]
) -> History:
    return History([acked(event) for event in updates], publications, deliveries)
