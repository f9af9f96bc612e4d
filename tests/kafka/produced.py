"""Events as records of topics, in the forms that producers may choose, and the order that they get."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ps2stream.kafka.decoding import decode_publications, decode_updates
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.numbering import numbered
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import as_events
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE
from ps2stream.roles.packets import encode
from waiting import HANG_S

FORMS = ("json", "geojson", "arrow")


def produce(topics: Topics, events: pa.Table, seed: int, forms: tuple[str, ...] = FORMS) -> None:
    """Send events to the topics, publications to any partition, each in one of the forms."""
    dice = random.Random(seed)
    n_partitions = topics.n_partitions(topics.publications)
    records = []
    for event in events.to_pylist():
        is_publish = event["op"] == PUBLISH
        topic = topics.publications if is_publish else topics.updates
        partition = dice.randrange(n_partitions) if is_publish else 0
        records.append(Outgoing(topic, partition, value_of(event, dice.choice(forms))))
    Sender(topics.kafka).send(records)


def value_of(event: dict[str, Any], form: str) -> bytes:
    """Return an event as the value of a record."""
    if form == "arrow":
        kept = {name: value for name, value in event.items() if name != "seq"}
        schema = pa.schema([field for field in EVENTS if field.name != "seq"])
        return encode(pa.RecordBatch.from_pylist([kept], schema=schema))
    if event["op"] == PUBLISH:
        value = {name: event[name] for name in ("id", "lat", "lon", "text")}
        if form == "geojson":
            point = {"type": "Point", "coordinates": [event["lon"], event["lat"]]}
            value = {
                "type": "Feature",
                "id": event["id"],
                "geometry": point,
                "properties": {"text": event["text"]},
            }
    elif event["op"] == SUBSCRIBE:
        box = [event[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat")]
        value = {"id": event["id"], "expression": event["expression"], "region": box}
        if form == "geojson":
            about = {"expression": event["expression"]}
            value = {"type": "Feature", "id": event["id"], "geometry": None, "bbox": box, "properties": about}
    else:
        value = {"op": event["op"], "id": event["id"]}
    return json.dumps(value).encode()


def batches_of(topics: Topics) -> dict[int, dict[str, Any]]:
    """Return which records each batch had, as the job has written it down."""
    (end,) = Ends(topics.kafka).last(topics.positions, 1)
    said = [
        json.loads(record.value or b"")
        for records in read(topics.kafka, Span(topics.positions, 0, 0, end))
        for record in records
    ]
    return {each["batch"]: each for each in said}


def ordered_events(topics: Topics) -> pa.Table:
    """Return all events that batches had, in the order of their seqs: what the oracle should be asked."""
    parts = [EVENTS.empty_table()]
    for batch in batches_of(topics).values():
        for place in numbered(topics, tuple(batch["after"]), tuple(batch["upto"])):
            for records in read(topics.kafka, place.span):
                if place.span.topic == topics.updates:
                    halves = as_events(decode_updates(records, place).events)
                else:
                    halves = as_events(decode_publications(records, place).events, PUBLISH)
                parts.append(pa.Table.from_batches([halves]))
    return pa.concat_tables(parts).sort_by("seq")


def delivered(topics: Topics, topic: str) -> list[dict[str, Any]]:
    """Return the rows of all committed records of a topic, in packets or in JSON."""
    assert not any(Ends(topics.kafka).first(topic, topics.n_partitions(topic)))
    return kept(topics, topic)


def kept(topics: Topics, topic: str) -> list[dict[str, Any]]:
    """Return the rows of those records that were not trimmed, once no transaction is open."""
    return [row for span in spans(topics, topic) for record in records_of(topics, span) for row in record[1]]


def spans(topics: Topics, topic: str) -> list[Span]:
    """Return what is kept of each partition, once no transaction is open."""
    ends, n = Ends(topics.kafka), topics.n_partitions(topic)
    until = time.monotonic() + HANG_S
    # Brokers tell of the end of a transaction before readers see it.
    while (last := ends.last(topic, n)) != ends.acknowledged(topic, n):
        assert time.monotonic() < until
    return [
        Span(topic, number, *both) for number, both in enumerate(zip(ends.first(topic, n), last, strict=True))
    ]


def records_of(topics: Topics, span: Span) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the offset of each record of a span, and its rows."""
    for records in read(topics.kafka, span):
        for offset, _, value in records:
            assert value is not None
            if value.startswith(b"{"):
                yield offset, [json.loads(value)]
            else:
                yield offset, pa.ipc.open_stream(value).read_all().to_pylist()
