"""From events to records, as anybody would write them: a JSON object each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import PUBLISH, SUBSCRIBE

_CORNERS = ("min_lon", "min_lat", "max_lon", "max_lat")


def records_of(
    topics: Topics, events: pa.RecordBatch, demands: Mapping[str, int] | None = None
) -> Iterator[Outgoing]:
    """Write events (schema EVENTS); publications go to any partition, updates by their order.

    ``demands``: where in the order publications want to be, ``after`` a seq or ``as_of`` one.
    """
    wanted = demands or {}
    for event in events.to_pylist():
        if event["op"] == PUBLISH:
            names = ("id", "lat", "lon", "text", *wanted)
            yield Outgoing(topics.publications, None, _json({**event, **wanted}, *names))
        else:
            yield Outgoing(topics.updates, 0, _update(event), event["id"].encode())


def _update(event: dict[str, Any]) -> bytes:
    if event["op"] != SUBSCRIBE:
        return _json(event, "op", "id")
    region = [event[name] for name in _CORNERS]
    return _json({**event, "region": region}, "op", "id", "expression", "region")


def _json(event: dict[str, Any], *names: str) -> bytes:
    return json.dumps({name: event[name] for name in names}, ensure_ascii=False).encode()
