"""Roles are idle when all that there is has passed them, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.deployment.roles_events import RolesEvents
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE
from ps2stream.resident.idleness import RolesIdleness
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER
from ps2stream.state.state import State
from resident.on_kafka import KafkaRoles


@pytest.fixture
def roles(topics: Topics, tmp_path: Path) -> Iterator[KafkaRoles]:
    made = KafkaRoles(topics, State.at(tmp_path / "state"))
    made.start()
    yield made
    made.close()


def is_idle(idleness: RolesIdleness) -> bool:
    idleness._next = 0.0  # look, however soon after the last time
    return idleness.is_idle()


def test_events_that_any_role_has_not_seen_are_something_to_do(roles: KafkaRoles) -> None:
    idleness = RolesIdleness(roles.role_topics)
    roles.run_until(lambda: is_idle(idleness))
    events = RolesEvents(roles.topics)
    region: dict[str, Any] = {"min_lon": -9.0, "min_lat": -9.0, "max_lon": 9.0, "max_lat": 9.0}
    rows: list[dict[str, Any]] = [{"op": SUBSCRIBE, "id": "a", "expression": "tea", **region}]
    (seq,) = events.append(pa.RecordBatch.from_pylist(rows, schema=EVENTS))
    assert not is_idle(idleness)
    roles.run_until(lambda: is_idle(idleness) and roles.loops[DISPATCHER]._role.applied >= seq)
    publication = {"op": PUBLISH, "id": "p", "lat": 1.0, "lon": 1.0, "text": "tea"}
    events.append(pa.RecordBatch.from_pylist([publication], schema=EVENTS))
    assert not is_idle(idleness)
    worker = roles.loops.pop(WORKER)
    roles.loops.pop(REGISTRAR)
    dispatched = roles.loops[DISPATCHER]._partitions
    roles.run_until(lambda: sum(each.next_offset for each in dispatched.values()) == 1)
    assert not is_idle(idleness)
    roles.loops[WORKER] = worker
    roles.run_until(lambda: is_idle(idleness))


def test_it_is_looked_up_now_and_then_only(roles: KafkaRoles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ps2stream.resident.idleness._LOOK_EVERY_S", 1e9)
    idleness = RolesIdleness(roles.role_topics)
    roles.run_until(lambda: is_idle(idleness))
    assert not idleness.is_idle()
