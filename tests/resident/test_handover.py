"""Who takes over from a dispatcher knows what that one has sent, noted or not, and repeats its last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ps2stream.config import Settings
from ps2stream.errors import FencedError
from ps2stream.kafka.places import RoleName, Send
from ps2stream.kafka.role_wire import KafkaWire
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.resident.handover import handed_over
from ps2stream.resident.memory_wire import MemoryWire
from ps2stream.resident.notes import DispatcherNote, note_from_bytes
from ps2stream.resident.routed import from_record
from ps2stream.resident.wire import DISPATCHER, Place, Topic
from ps2stream.state.state import State
from resident.on_kafka import KafkaRoles
from resident.rig import DeadError, Rig

ME = RoleName(DISPATCHER)
N_WORKERS = 3


def rig_of(n_dispatchers: int = 1, n_partitions: int = 1) -> Rig:
    """Return a rig whose subscriptions are divided by their words, one for each worker."""
    chosen = Settings(n_workers=N_WORKERS, n_dispatchers=n_dispatchers, partitioner="frequency")
    rig = Rig.of(chosen, empty(EVENTS), n_partitions=n_partitions, given=False).steadily()
    rig.config = replace(rig.config, trim_s=1e9, most_events=50)
    region = [-10, -10, 10, 10]
    words = ("tea", "milk", "cake", "bread", "jam", "rice", "corn", "salt")
    rig.arrive(Topic.UPDATES, *({"id": word, "expression": word, "region": region} for word in words))
    rig.settle(8)
    return rig


def publication(id: str) -> dict[str, Any]:
    return {"id": id, "lat": 1, "lon": 1, "text": "tea milk cake bread jam rice corn salt"}


def note_of(rig: Rig, number: int = 0) -> DispatcherNote:
    return note_from_bytes(DispatcherNote, rig.topics.notes(DISPATCHER).get(number))


def seen(rig: Rig, worker: int) -> list[tuple[str, int]]:
    """Return ids and positions of the publications in a worker's packets, in their order."""
    found = []
    for record in rig.topics.records(Place(Topic.ROUTED, worker)):
        packet, _ = from_record(record.value or b"")
        found += list(zip(packet["id"].to_pylist(), packet["seq"].to_pylist(), strict=True))
    return found


def concerned(rig: Rig, id: str) -> list[int]:
    return [worker for worker in range(N_WORKERS) if id in dict(seen(rig, worker))]


def die_when_sending(rig: Rig, workers: Sequence[int], role: RoleName = ME) -> None:
    """Let a dispatcher die when what it sends has come to some workers only."""
    wire = rig.loops[role]._wire
    send = wire.send

    def commit(sends: Sequence[Send], note: bytes) -> list[int]:
        send([each for each in sends if each.place.partition in workers])
        raise DeadError

    wire.commit = commit
    with pytest.raises(DeadError):
        rig.loops[role].step(0.0)


def delivered(rig: Rig) -> list[tuple[str, str]]:
    return sorted((match[0], match[2]) for match in rig.matches())


def all_of(*ids: str) -> list[tuple[str, str]]:
    words = ("tea", "milk", "cake", "bread", "jam", "rice", "corn", "salt")
    return sorted((word, id) for word in words for id in ids)


def test_what_some_workers_have_comes_to_the_others_at_the_same_position() -> None:
    rig = rig_of()
    rig.arrive(Topic.PUBLICATIONS, publication("before"))
    rig.settle()
    some, *others = concerned(rig, "before")
    assert others
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    die_when_sending(rig, [some])
    ((_, position),) = [each for each in seen(rig, some) if each[0] == "p"]
    rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": "tea"})
    rig.step(RoleName("registrar"))
    rig.start(ME)
    rig.arrive(Topic.PUBLICATIONS, publication("after"))
    rig.settle()
    for worker in (some, *others):
        assert {at for id, at in seen(rig, worker) if id == "p"} == {position}, worker
    gone = [("tea", "after")]
    assert delivered(rig) == [each for each in all_of("after", "before", "p") if each not in gone]


def test_what_nobody_has_gets_a_position_of_its_own() -> None:
    rig = rig_of()
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    die_when_sending(rig, [])
    rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": "tea"})
    rig.step(RoleName("registrar"))
    rig.start(ME)
    rig.settle()
    assert delivered(rig) == [each for each in all_of("p") if each[0] != "tea"]


def test_what_one_that_was_replaced_still_sends_is_passed_over() -> None:
    rig = rig_of()
    zombie = rig.loops[ME]
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    rig.start(ME)
    zombie._wire._every_s = 1e9
    zombie.step(0.0)
    assert [id for worker in range(N_WORKERS) for id, _ in seen(rig, worker)]
    rig.settle()
    assert delivered(rig) == all_of("p")


def test_who_dies_before_it_has_repeated_anything_leaves_that_to_the_next() -> None:
    rig = rig_of()
    rig.arrive(Topic.PUBLICATIONS, publication("before"))
    rig.settle()
    some, *_ = concerned(rig, "before")
    rig.arrive(Topic.PUBLICATIONS, publication("p"), publication("q"))
    die_when_sending(rig, [some])
    for _ in range(3):
        rig.start(ME)
        assert note_of(rig).repeats.keys() == {0}
        assert note_of(rig).publications == {0: 1}
    rig.settle()
    assert note_of(rig).repeats == {}
    assert delivered(rig) == all_of("before", "p", "q")


def test_steps_that_were_not_noted_are_done_but_for_the_last() -> None:
    rig = rig_of()
    rig.loops[ME]._wire._every_s = 1e9
    for number in range(3):
        rig.arrive(Topic.PUBLICATIONS, publication(f"p{number}"))
        rig.step(ME)
    assert note_of(rig).publications == {0: 0}
    settled = handed_over(MemoryWire(rig.topics, ME), 0, N_WORKERS)
    assert settled == note_of(rig)
    assert (settled.publications, [each.stop for each in settled.repeats[0]]) == ({0: 2}, [3])
    rig.start(ME)
    rig.settle()
    assert delivered(rig) == all_of("p0", "p1", "p2")
    assert note_of(rig).publications == {0: 3}


def test_partitions_that_are_anothers_now_are_repeated_by_that_one() -> None:
    rig = rig_of(n_dispatchers=1, n_partitions=2)
    for partition in range(2):
        rig.arrive(Topic.PUBLICATIONS, publication(f"before {partition}"), partition=partition)
    rig.settle()
    some, *_ = concerned(rig, "before 0")
    for partition in range(2):
        rig.arrive(Topic.PUBLICATIONS, publication(f"p{partition}"), partition=partition)
    die_when_sending(rig, [some])
    rig.restart(2)
    assert note_of(rig).repeats.keys() == {0, 1}
    rig.start(ME)
    for _ in range(3):
        rig.step(ME)  # it has noted its own part when the other begins
    assert note_of(rig).repeats.keys() == {1}
    rig.settle(8)
    assert delivered(rig) == all_of("before 0", "before 1", "p0", "p1")


def test_records_that_are_rejected_are_noted_with_what_was_sent() -> None:
    rig = rig_of()
    rig.loops[ME]._wire._every_s = 1e9
    rig.arrive(Topic.PUBLICATIONS, publication("p"), {"id": "bad", "lat": 100, "lon": 1, "text": "tea"})
    rig.step(ME)
    assert note_of(rig).publications == {0: 2}
    rig.start(ME)
    rig.settle()
    assert [each["id"] for each in rig.rejected()] == ["bad"]
    assert delivered(rig) == all_of("p")


def test_on_brokers_who_was_taken_over_notes_nothing_more(topics: Topics, tmp_path: Path) -> None:
    roles = KafkaRoles(topics, State.at(tmp_path / "state"))
    old = KafkaWire(roles.role_topics, ME)
    first = handed_over(old, 0, 1)
    second = handed_over(KafkaWire(roles.role_topics, ME), 0, 1)
    assert (first.incarnation, second.incarnation) == (1, 2)
    with pytest.raises(FencedError):
        old.commit([], b"zombie")
    records = KafkaWire(roles.role_topics, RoleName("worker")).read(Place(Topic.ROUTED), 0)
    assert [from_record(record.value or b"")[1].incarnation for record in records] == [1, 1, 2, 2]
    roles.close()
