"""The log of resident roles is read by others as it is, without a word to the roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.deployment.decided_log import BatchLog, decided_log
from ps2stream.deployment.home import Home
from ps2stream.deployment.roles_events import RolesEvents
from ps2stream.deployment.roles_log import RolesLog
from ps2stream.errors import StateError
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.registry.segments import BEGIN, changes
from ps2stream.resident.positions import last_update_seq
from ps2stream.resident.wire import REGISTRAR
from ps2stream.state.state import State
from resident.on_kafka import KafkaRoles

REGION: dict[str, Any] = {"min_lon": -9.0, "min_lat": -9.0, "max_lon": 9.0, "max_lat": 9.0}


@pytest.fixture
def home(tmp_path: Path, topics: Topics) -> Home:
    return Home(tmp_path / "home", topics=topics)


@pytest.fixture
def roles(home: Home, topics: Topics) -> Iterator[KafkaRoles]:
    made = KafkaRoles(topics, State.at(home.state), snapshot_every=4)
    yield made
    made.close()


def updates(roles: KafkaRoles, *rows: dict[str, Any]) -> int:
    """Send updates; return the seq of the last when the registrar has decided on it."""
    events = RolesEvents(roles.topics)
    seqs = events.append(pa.RecordBatch.from_pylist(list(rows), schema=EVENTS))
    last = max(seq for seq in seqs if seq is not None)
    roles.run_until(lambda: roles.loops[REGISTRAR]._role.upto >= last)
    return last


def subscription(id: str) -> dict[str, Any]:
    return {"op": SUBSCRIBE, "id": id, "expression": "tea", **REGION}


def begun(log: RolesLog) -> list[str]:
    return [id for _, segment in log.read() for id in changes(segment, BEGIN).column("id").to_pylist()]


def test_a_log_of_nothing_has_the_first_plan(roles: KafkaRoles) -> None:
    log = RolesLog(roles.topics, roles.state)
    assert (log.base(), log.last_seq(), begun(log)) == (0, 0, [])
    plans = log.plans()
    assert plans is not None
    assert plans.newest.n_workers == 1


def test_the_log_is_the_newest_snapshot_and_all_behind_it(roles: KafkaRoles) -> None:
    roles.start()
    seq = updates(roles, subscription("a"), subscription("b"))
    log = RolesLog(roles.topics, roles.state)
    assert log.last_seq() >= seq
    assert sorted(begun(log)) == ["a", "b"]
    gone = [{"op": UNSUBSCRIBE, "id": "a"}, subscription("c"), {"op": UNSUBSCRIBE, "id": "c"}]
    last = updates(roles, *gone, subscription("d"))
    roles.run_until(lambda: roles.loops[REGISTRAR]._note.log > 0)
    updates(roles, subscription("e"))
    assert sorted(begun(log)) == ["a", "b"]  # as it was read
    newer = RolesLog(roles.topics, roles.state)
    assert newer.last_seq() > last_update_seq(0)
    assert newer.last_seq() > last
    assert {"b", "d", "e"} <= set(begun(newer))
    assert [number for number, _ in newer.read()] == list(range(len(list(newer.read()))))


def test_a_snapshot_that_is_replaced_while_it_is_read_is_read_again(
    roles: KafkaRoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Any = RolesLog(roles.topics, roles.state)
    read, failures = log._read, [StateError("trimmed"), StateError("trimmed")]

    def failing() -> Any:
        if failures:
            raise failures.pop()
        return read()

    monkeypatch.setattr(RolesLog, "_read", lambda self: failing())
    assert log.last_seq() == 0
    failures.extend([StateError("trimmed")] * 3)
    with pytest.raises(StateError, match="trimmed"):
        RolesLog(roles.topics, roles.state).last_seq()


def test_who_made_the_state_decides_which_log_is_read(home: Home, roles: KafkaRoles) -> None:
    assert isinstance(decided_log(home, roles.state), RolesLog)
    assert isinstance(decided_log(Home(home.directory), roles.state), BatchLog)
