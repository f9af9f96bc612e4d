"""On topics of resident roles an update has its seq when it is acknowledged."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.deployment.deployment_events import ANYWHERE, Demands
from ps2stream.deployment.kafka_events import KafkaEvents
from ps2stream.deployment.roles_events import RolesEvents
from ps2stream.errors import ConfigError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE
from ps2stream.resident.positions import last_update_seq

REGION: dict[str, Any] = {"min_lon": -9.0, "min_lat": -9.0, "max_lon": 9.0, "max_lat": 9.0}


def subscriptions(*ids: str) -> pa.RecordBatch:
    rows = [{"op": SUBSCRIBE, "id": id, "expression": "tea", **REGION} for id in ids]
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS)


def publications(*ids: str) -> pa.RecordBatch:
    rows = [{"op": PUBLISH, "id": id, "lat": 1.0, "lon": 2.0, "text": f"text of {id}"} for id in ids]
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS)


def known(events: RolesEvents, after_seq: int = -1) -> dict[str, int]:
    return {
        id: seq
        for batch in events.updates(after_seq)
        for id, seq in zip(batch.column("id").to_pylist(), batch.column("seq").to_pylist(), strict=True)
    }


def test_updates_are_read_with_the_seqs_that_were_acknowledged(topics: Topics) -> None:
    events = RolesEvents(topics)
    (first,) = events.append(subscriptions("a"))
    second, third = events.append(subscriptions("b", "c"))
    assert first is not None
    assert known(events) == {"a": first, "b": second, "c": third}
    assert known(events, first) == {"b": second, "c": third}
    assert known(events, last_update_seq(0)) == {"b": second, "c": third}
    assert sorted(known(events).values()) == [first, second, third]


def test_a_publication_has_no_seq_before_it_is_routed(topics: Topics) -> None:
    events = RolesEvents(topics)
    assert events.append(publications("p", "q")) == [None, None]
    found = events.publication("p")
    assert found.seq is None
    assert events.text("q", 7) == "text of q"
    assert events.text("nobody", 7) is None


def test_demands_go_with_each_publication(topics: Topics) -> None:
    RolesEvents(topics).append(publications("p", "q"), Demands(after=12))
    values = []
    for partition, end in enumerate(Ends(topics.kafka).last(topics.publications, 3)):
        for records in read(topics.kafka, Span(topics.publications, partition, 0, end)):
            values += [json.loads(record.value or b"") for record in records]
    assert [(value["id"], value["after"]) for value in sorted(values, key=lambda each: str(each["id"]))] == [
        ("p", 12),
        ("q", 12),
    ]


@pytest.mark.parametrize("name", ["after", "as_of"])
def test_where_no_roles_are_resident_demands_are_refused(topics: Topics, name: str) -> None:
    demands = Demands(**{name: 12})
    with pytest.raises(ConfigError, match=f"{name} is for deployments of 'ps2stream run --engine realtime'"):
        KafkaEvents(topics).append(publications("p"), demands)


def test_demands_of_nothing_are_none() -> None:
    assert ANYWHERE.given() == {}
    assert Demands(7, 9).given() == {"after": 7, "as_of": 9}
    ANYWHERE.refuse("never")
