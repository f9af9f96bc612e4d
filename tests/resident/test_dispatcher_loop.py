"""The loop of a dispatcher: positions, demands, heartbeats; and those who take over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ps2stream.config import Settings
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.resident.dispatcher_loop import DispatcherLoop
from ps2stream.resident.memory_wire import MemoryWire
from ps2stream.resident.notes import DispatcherNote, note_from_bytes
from ps2stream.resident.positions import last_update_seq, position_after, update_seq
from ps2stream.resident.routed import RoutedHeader, from_record
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, Place, Received, RoleName, Topic
from resident.rig import Rig

ME = RoleName(DISPATCHER)


def subscription(id: str) -> dict[str, Any]:
    return {"id": id, "expression": "tea", "region": [-10, -10, 10, 10]}


def publication(id: str, **demands: int) -> dict[str, Any]:
    return {"id": id, "lat": 1, "lon": 1, "text": "tea", **demands}


def rig_of(n_dispatchers: int = 1, n_partitions: int = 1, **more: Any) -> Rig:
    settings = Settings(n_workers=1, n_dispatchers=n_dispatchers)
    rig = Rig.of(settings, empty(EVENTS), n_partitions=n_partitions, given=False).steadily()
    rig.config = replace(rig.config, **more)
    return rig


def routed(rig: Rig, start: int = 0) -> list[tuple[list[str], list[int], RoutedHeader]]:
    """Return ids, positions and header of each packet."""
    found = []
    for record in rig.topics.records(Place(Topic.ROUTED), start):
        packet, header = from_record(record.value or b"")
        found.append((packet.column("id").to_pylist(), packet.column("seq").to_pylist(), header))
    return found


def positions(rig: Rig) -> dict[str, int]:
    return {id: seq for ids, seqs, _ in routed(rig) for id, seq in zip(ids, seqs, strict=True)}


def note_of(rig: Rig, number: int = 0) -> DispatcherNote:
    return note_from_bytes(DispatcherNote, rig.topics.notes(DISPATCHER).get(number))


def untrimmed(rig: Rig) -> Rig:
    rig.config = replace(rig.config, trim_s=1e9)
    return rig


def test_a_publication_stands_behind_all_updates_that_are_known() -> None:
    rig = untrimmed(rig_of())
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    rig.settle()
    assert positions(rig) == {"p": position_after(last_update_seq(0))}
    assert [(match[0], match[2]) for match in rig.matches()] == [("a", "p")]


@pytest.mark.parametrize("odd", [0, 1])
def test_a_publication_waits_for_what_it_wants_to_come_after(odd: int) -> None:
    rig = untrimmed(rig_of())
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("p", after=update_seq(0) + odd))
    rig.settle()
    assert not positions(rig)
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    assert positions(rig) == {"p": position_after(last_update_seq(0))}


def test_a_publication_after_another_is_at_its_position_or_behind() -> None:
    rig = untrimmed(rig_of())
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("q", after=positions(rig)["p"]))
    rig.settle()
    assert rig.rejected() == []
    assert positions(rig)["q"] >= positions(rig)["p"]


def test_a_publication_that_waits_in_vain_is_rejected_and_those_behind_it_go_on() -> None:
    rig = untrimmed(rig_of(after_s=-1.0))
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("p", after=update_seq(9)), publication("q"))
    rig.settle()
    assert list(positions(rig)) == ["q"]
    (row,) = rig.rejected()
    assert (row["id"], row["op"], row["seq"]) == ("p", "publish", None)
    assert "no update up to there has come" in row["reason"]


def test_a_dispatcher_that_has_to_wait_for_the_log_sleeps() -> None:
    rig = rig_of()
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("p", after=update_seq(0)))
    rig.settle()
    asked: list[float] = []
    wire: Any = rig.loops[ME]._wire

    def poll(timeout_s: float) -> list[Received]:
        asked.append(timeout_s)
        return []

    wire.poll = poll
    rig.loops[ME].step(0.05)
    assert asked == [0.05]


def test_as_of_an_update_its_end_is_not_seen() -> None:
    rig = untrimmed(rig_of(as_of_s=1e9))
    rig.settle()
    rig.arrive(Topic.UPDATES, subscription("a"), {"op": "unsubscribe", "id": "a"})
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("now"), publication("then", as_of=update_seq(0)))
    rig.settle()
    assert [match[2] for match in rig.matches()] == ["then"]
    assert positions(rig)["then"] == update_seq(0) + 1


def test_as_of_what_is_not_kept_is_rejected() -> None:
    rig = rig_of()
    rig.arrive(Topic.UPDATES, subscription("a"), {"op": "unsubscribe", "id": "a"})
    rig.settle()
    rig.arrive(Topic.PUBLICATIONS, publication("then", as_of=update_seq(0)))
    rig.settle()
    assert rig.matches() == []
    assert "the first position that is kept" in rig.rejected()[0]["reason"]


def test_a_successor_answers_what_its_predecessor_would_have() -> None:
    rig = rig_of(as_of_s=1e9)
    rig.settle()
    rig.arrive(Topic.UPDATES, subscription("a"), {"op": "unsubscribe", "id": "a"})
    rig.settle()
    for role in rig.roles:
        rig.start(role)
    rig.arrive(Topic.PUBLICATIONS, publication("then", as_of=update_seq(0)))
    rig.settle()
    assert [match[2] for match in rig.matches()] == ["then"]


def test_a_successor_knows_as_much_as_its_predecessor_before_it_routes_anything() -> None:
    rig = untrimmed(rig_of())
    for n in range(6):
        rig.arrive(Topic.UPDATES, subscription(str(n)))
        rig.settle(2)
    applied = note_of(rig).applied
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    rig.start(ME)
    rig.step(ME)  # of the log two entries come at a time, and the publication with the first
    assert positions(rig)["p"] == applied + 1


def test_workers_that_get_no_packets_hear_how_far_a_dispatcher_is_once() -> None:
    rig = untrimmed(rig_of())
    rig.settle()
    n = rig.topics.end(Place(Topic.ROUTED))
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle(6)
    (beat,) = routed(rig, n)
    assert (beat[0], beat[2].horizon) == ([], position_after(last_update_seq(0)))


def test_with_fewer_dispatchers_positions_of_a_partition_do_not_fall() -> None:
    rig = untrimmed(rig_of(n_dispatchers=2, n_partitions=2))
    rig.settle()
    rig.arrive(Topic.UPDATES, subscription("a"), subscription("b"))
    for role in (RoleName(REGISTRAR), RoleName(DISPATCHER, 1)):  # the other one sleeps
        rig.step(role)
    rig.arrive(Topic.PUBLICATIONS, publication("p"), partition=1)
    rig.step(RoleName(DISPATCHER, 1))
    rig.config = replace(rig.config, settings=replace(rig.config.settings, n_dispatchers=1))
    rig.loops.clear()
    rig.arrive(Topic.PUBLICATIONS, publication("q"), partition=1)
    late: Any = DispatcherLoop(0, MemoryWire(rig.topics, ME, {Topic.LOG: 0}), rig.config)
    late.step(0.0)  # nothing of the log comes to it
    assert positions(rig)["q"] >= positions(rig)["p"]


def test_a_dispatcher_of_old_that_comes_back_promises_nothing_that_is_gone() -> None:
    """With two, with one, then with two again: what only the first two knew is not in a snapshot."""
    rig = rig_of(n_dispatchers=2, n_partitions=2, as_of_s=1e9, snapshot_every=0)
    rig.settle()
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    old = note_of(rig, 1).horizon
    rig.config = replace(rig.config, as_of_s=0.0, settings=replace(rig.config.settings, n_dispatchers=1))
    rig.loops.clear()
    for _ in range(4):
        rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": "a"}, subscription("a"))
        rig.settle(6)
    assert rig.config.files.read_snapshot(rig.loops[RoleName(REGISTRAR)]._note.snapshot).upto > old
    rig.config = replace(rig.config, as_of_s=1e9, settings=replace(rig.config.settings, n_dispatchers=2))
    rig.loops.clear()
    rig.arrive(Topic.PUBLICATIONS, publication("then", as_of=update_seq(0)), partition=1)
    rig.settle(10)
    # Either it finds what was there then, or it is told that nobody knows any more.
    assert [match[2] for match in rig.matches()] == ["then"] or len(rig.rejected()) == 1


def test_partitions_that_were_added_are_read_after_the_next_start() -> None:
    rig = untrimmed(rig_of(n_partitions=1))
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    rig.settle()
    rig.topics.n_partitions[Topic.PUBLICATIONS] = 2
    rig.arrive(Topic.PUBLICATIONS, publication("q"), partition=1)
    rig.start(ME)
    rig.settle()
    assert list(positions(rig)) == ["p", "q"] or list(positions(rig)) == ["q"]
    assert note_of(rig).publications == {0: 1, 1: 1}


def test_partitions_that_are_added_are_read_from_their_beginning() -> None:
    rig = untrimmed(rig_of(n_dispatchers=2, n_partitions=2))
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.arrive(Topic.PUBLICATIONS, publication("before"))
    rig.settle()
    rig.topics.n_partitions[Topic.PUBLICATIONS] = 4
    for partition in (2, 3):
        rig.arrive(Topic.PUBLICATIONS, publication(f"on {partition}"), partition=partition)
    rig.arrive(Topic.PUBLICATIONS, publication("after"))
    rig.settle()
    assert sorted(positions(rig)) == ["after", "before", "on 2", "on 3"]
    assert note_of(rig, 0).publications.items() >= {0: 2, 2: 1}.items()
    assert note_of(rig, 1).publications.items() >= {1: 0, 3: 1}.items()


def test_partitions_that_were_added_are_gone_on_with_after_a_death() -> None:
    rig = untrimmed(rig_of())
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    rig.topics.n_partitions[Topic.PUBLICATIONS] = 2
    rig.arrive(Topic.PUBLICATIONS, publication("one"), partition=1)
    rig.settle()
    rig.start(ME)
    rig.arrive(Topic.PUBLICATIONS, publication("two"), partition=1)
    rig.settle()
    assert [id for ids, _, _ in routed(rig) for id in ids] == ["one", "two"]
    assert note_of(rig).publications == {0: 0, 1: 2}
