"""Takeovers of dispatchers beside others: zombies between greetings, old repeats, another number of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.kafka.places import RoleName, Send
from ps2stream.resident.dispatcher_loop import DispatcherLoop
from ps2stream.resident.handover import HEARTBEAT, handed_over
from ps2stream.resident.memory_wire import MemoryTopics, MemoryWire
from ps2stream.resident.notes import DispatcherNote, Repeat, Repeats, note_to_bytes
from ps2stream.resident.positions import update_seq
from ps2stream.resident.routed import RoutedHeader, Source, to_record
from ps2stream.resident.seldom_notes import SeldomNotes
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, Place, Topic
from ps2stream.testing.generators import random_events
from resident.rig import Rig
from resident.test_handover import (
    ME,
    N_WORKERS,
    all_of,
    concerned,
    delivered,
    die_when_sending,
    note_of,
    publication,
    rig_of,
    seen,
)
from resident.test_laws import assert_as_the_oracle_says

OTHER = RoleName(DISPATCHER, 1)
WORDS = ("tea", "milk", "cake", "bread", "jam", "rice", "corn", "salt")


class SlowGreetings(MemoryWire):
    """What is sent together comes to the first partition, and to the others when something has happened."""

    def __init__(self, topics: MemoryTopics, role: RoleName, happens: list[Callable[[], None]]) -> None:
        super().__init__(topics, role)
        self._happens = happens

    def send(self, sends: Sequence[Send]) -> list[int]:
        offsets = super().send(sends[:1])
        if self._happens:
            self._happens.pop()()
        return offsets + super().send(sends[1:])


@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_what_one_that_was_replaced_sends_between_two_greetings_comes_to_all_or_to_none(n_steps: int) -> None:
    rig = rig_of()
    zombie = rig.loops[ME]
    zombie._wire._every_s = 1e9  # it does not learn that it was replaced
    ids = [f"p{number}" for number in range(n_steps)]

    def happens() -> None:
        for id in ids:
            rig.arrive(Topic.PUBLICATIONS, publication(id))
            zombie.step(0.0)

    wire = SeldomNotes(SlowGreetings(rig.topics, ME, [happens]), every_s=0)
    rig.loops[ME] = DispatcherLoop(0, wire, rig.config)
    rig.settle(8)
    positions = {id: set[int]() for id in ids}
    for worker in range(N_WORKERS):
        for id, at in seen(rig, worker):
            positions[id].add(at)
    assert delivered(rig) == all_of(*ids)
    assert {len(each) for each in positions.values()} == {1}


def test_a_repeat_that_is_over_hides_no_later_one() -> None:
    rig = rig_of(n_dispatchers=2, n_partitions=2)
    rig.arrive(Topic.PUBLICATIONS, publication("before"))
    rig.settle()
    some, *_ = concerned(rig, "before")
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    die_when_sending(rig, [some])
    rig.start(ME)
    rig.start(OTHER)  # at the same time: it reads the note of the first, and keeps what that says
    rig.settle()
    assert note_of(rig).repeats == {}
    assert note_of(rig, 1).repeats.keys() == {0}
    rig.arrive(Topic.PUBLICATIONS, publication("q"))
    die_when_sending(rig, [some])
    rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": "tea"})
    rig.step(RoleName(REGISTRAR))
    rig.arrive(Topic.PUBLICATIONS, publication("r"))
    rig.start(ME)
    rig.settle()
    positions = {at for worker in range(N_WORKERS) for id, at in seen(rig, worker) if id == "q"}
    assert len(positions) == 1
    assert delivered(rig) == [each for each in all_of("before", "p", "q", "r") if each != ("tea", "r")]


@pytest.mark.parametrize("n", [2, 1], ids=["as many", "fewer"])
def test_what_another_number_of_dispatchers_repeats_finds_what_ended_since(n: int) -> None:
    rig = rig_of(n_dispatchers=2, n_partitions=2)
    rig.arrive(Topic.PUBLICATIONS, publication("before"), partition=1)
    rig.settle(8)
    some, *_ = concerned(rig, "before")
    rig.arrive(Topic.PUBLICATIONS, publication("p"), partition=1)
    die_when_sending(rig, [some], OTHER)
    rig.stopped = {OTHER}
    for word in WORDS:
        rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": word})
    for role in [role for role in rig.roles if role != OTHER] * 12:
        rig.step(role)
    rig.restart(n)
    rig.stopped = set()
    workers = [RoleName(WORKER, number) for number in range(N_WORKERS)]
    for role in [RoleName(REGISTRAR), *workers * 8]:  # they begin sooner than the dispatcher
        if role not in rig.loops:
            rig.start(role)
        rig.step(role)
    rig.settle(10)
    assert len({at for worker in range(N_WORKERS) for id, at in seen(rig, worker) if id == "p"}) == 1
    assert delivered(rig) == all_of("before", "p")


@pytest.mark.parametrize("n", [2, 1, 3])
def test_a_replay_goes_on_with_any_number_of_dispatchers_where_one_was_behind(n: int) -> None:
    events = random_events(600, seed=0, publication_share=0.6)
    rig = Rig.of(Settings(n_workers=3, n_dispatchers=2), one_batch(events), n_partitions=4)
    rig.pour(events)
    rig.run(n_steps=150)
    rig.stopped = {OTHER}
    rig.run(n_steps=1500)
    rig.stopped = set()
    rig.restart(n)
    rig.settle(400)  # what notes say of the end is of the dispatchers before: ``run`` would not begin
    assert_as_the_oracle_says(rig, events)


def test_one_that_came_after_an_update_and_as_of_an_earlier_one_is_repeated_as_it_was() -> None:
    rig = rig_of()
    rig.arrive(Topic.PUBLICATIONS, publication("before"))
    rig.settle()
    some, *_ = concerned(rig, "before")
    rig.config = replace(rig.config, as_of_s=60.0)
    rig.start(ME)
    offset = -1
    for number in range(2):
        unasked = {"id": f"m{number}", "expression": "nothing", "region": [-10, -10, 10, 10]}
        (offset,) = rig.arrive(Topic.UPDATES, unasked)
        rig.settle()
    demands = {"after": update_seq(offset), "as_of": update_seq(offset - 1)}
    rig.arrive(Topic.PUBLICATIONS, {**publication("p"), **demands})
    die_when_sending(rig, [some])
    rig.start(ME)
    rig.settle(8)
    assert rig.rejected() == []
    assert delivered(rig) == all_of("before", "p")


def test_what_is_to_be_repeated_of_anothers_partition_outlives_steps_of_ones_own() -> None:
    topics = MemoryTopics({Topic.ROUTED: 1, Topic.PUBLICATIONS: 2})
    wire = MemoryWire(topics, ME)
    # As the driver has settled it: partition 1 was of this dispatcher, and is another's now.
    repeats: Repeats = {1: (Repeat(4, 0, 0),)}
    wire.commit(
        [], note_to_bytes(DispatcherNote({0: 5, 1: 3}, incarnation=1, routed={0: 0}, repeats=repeats))
    )
    header = RoutedHeader(0, 0, 0, incarnation=1, step=1, sources=(Source(0, 5, 6),))
    wire.send([Send(Place(Topic.ROUTED, 0), to_record(HEARTBEAT, header))])
    assert handed_over(MemoryWire(topics, ME), 0, 1).repeats == {**repeats, 0: (Repeat(6, 0, 0),)}
