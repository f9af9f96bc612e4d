"""From events to records, as anybody would write them: a JSON object each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import PUBLISH, SUBSCRIBE

_CORNERS = ("min_lon", "min_lat", "max_lon", "max_lat")


def records_of(topics: Topics, events: pa.RecordBatch) -> Iterator[Outgoing]:
    """Write events (schema EVENTS); publications go to any partition, updates by their order."""
    for event in events.to_pylist():
        if event["op"] == PUBLISH:
            yield Outgoing(topics.publications, None, _json(event, "id", "lat", "lon", "text"))
        else:
            yield Outgoing(topics.updates, 0, _update(event), event["id"].encode())


def _update(event: dict[str, Any]) -> bytes:
    if event["op"] != SUBSCRIBE:
        return _json(event, "op", "id")
    region = [event[name] for name in _CORNERS]
    return _json({**event, "region": region}, "op", "id", "expression", "region")


def _json(event: dict[str, Any], *names: str) -> bytes:
    return json.dumps({name: event[name] for name in names}, ensure_ascii=False).encode()
