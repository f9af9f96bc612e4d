"""The loop of a worker: matches and offsets in one piece, horizons as the last commit has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ps2stream.config import Settings
from ps2stream.errors import FencedError
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.resident.notes import WorkerNote, note_from_bytes
from ps2stream.resident.routed import from_record, to_record
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, Place, RoleName, Topic
from resident.rig import LateCommit, Rig

ME = RoleName(WORKER)
ROUTED, MATCHES = Place(Topic.ROUTED), Place(Topic.MATCHES)


def rig_of(n_dispatchers: int = 1, **more: Any) -> Rig:
    settings = Settings(n_workers=1, n_dispatchers=n_dispatchers)
    rig = Rig.of(settings, empty(EVENTS), n_partitions=n_dispatchers, given=False).steadily()
    rig.config = replace(rig.config, trim_s=1e9, n_match_partitions=1, **more)
    rig.arrive(Topic.UPDATES, {"id": "a", "expression": "tea", "region": [-10, -10, 10, 10]})
    rig.settle()
    return rig


def publish(rig: Rig, *ids: str) -> None:
    """Bring publications as far as the worker's partition, a packet each."""
    for id in ids:
        rig.arrive(Topic.PUBLICATIONS, {"id": id, "lat": 1, "lon": 1, "text": "tea"})
        rig.step(RoleName(DISPATCHER))


def note(rig: Rig) -> WorkerNote:
    return note_from_bytes(WorkerNote, rig.topics.notes(WORKER).get(0))


def delivered(rig: Rig) -> list[str]:
    return [match[2] for match in rig.matches()]


def test_matches_and_the_offset_of_their_packets_are_one_piece() -> None:
    rig = rig_of()
    publish(rig, "p")
    before = note(rig).routed
    rig._die_at_commit(ME, is_done=False)
    assert (delivered(rig), note(rig).routed) == ([], before)
    rig.start(ME)
    rig._die_at_commit(ME, is_done=True)
    rig.start(ME)
    rig.settle()
    assert delivered(rig) == ["p"]


def test_packets_that_wait_are_matched_while_a_commit_goes_on_and_nothing_is_trimmed_before_it_ends() -> None:
    rig = rig_of(most_events=1)
    rig.config = replace(rig.config, trim_s=0.0)
    rig.start(ME)
    rig.settle()
    publish(rig, "p", "q")
    wire, before = rig.loops[ME]._wire, note(rig).routed
    begun: list[LateCommit] = []

    def begin_commit(*arguments: Any, is_whole: bool) -> LateCommit:
        begun.append(LateCommit(lambda: wire.commit(*arguments)))
        return begun[-1]

    wire.begin_commit = begin_commit
    rig.step(ME)  # "q" waits: nobody waits for the commit of "p"
    assert (len(begun), delivered(rig), note(rig).routed) == (1, [], before)
    assert rig.topics.records(ROUTED, before)  # raises where they were trimmed
    rig.step(ME)
    assert (len(begun), delivered(rig)) == (2, ["p"])
    begun[-1].happen()
    assert delivered(rig) == ["p", "q"]


def test_one_that_was_replaced_delivers_nothing() -> None:
    rig = rig_of()
    before = rig.loops[ME]
    publish(rig, "p")
    rig.start(ME)
    with pytest.raises(FencedError):
        before.step(0.0)
    rig.settle()
    assert delivered(rig) == ["p"]


def test_packets_wait_until_enough_of_the_log_is_known() -> None:
    rig = rig_of()
    publish(rig, "p")
    rig.start(ME)
    loop: Any = rig.loops[ME]
    poll = loop._wire.poll
    loop._wire.poll = lambda timeout_s: [each for each in poll(timeout_s) if each.place == ROUTED]
    loop._wire._next[Place(Topic.LOG)] = rig.topics.end(Place(Topic.LOG))
    for _ in range(3):
        loop.step(0.0)
    assert delivered(rig) == []
    rig.start(ME)
    rig.settle()
    assert delivered(rig) == ["p"]


def test_the_horizon_is_the_least_that_all_dispatchers_have_promised() -> None:
    rig = rig_of(n_dispatchers=2)
    rig.arrive(Topic.UPDATES, {"id": "b", "expression": "tea", "region": [-10, -10, 10, 10]})
    loop: Any = rig.loops[ME]
    before = loop._horizon
    for role in (RoleName(REGISTRAR), RoleName(DISPATCHER, 0), ME):
        rig.step(role)
    assert note(rig).horizons[0] > note(rig).horizons[1]
    assert loop._horizon == before
    rig.step(RoleName(DISPATCHER, 1))
    rig.step(ME)
    assert loop._horizon == note(rig).horizons[0]


def test_a_note_that_was_kept_back_moves_the_horizon_once_it_is_written() -> None:
    rig = rig_of(is_exact=False)
    rig.start(ME)
    rig.settle()
    loop: Any = rig.loops[ME]
    before = loop._horizon
    loop._wire._every_s = 1e9
    rig.arrive(Topic.UPDATES, {"id": "b", "expression": "tea", "region": [-10, -10, 10, 10]})
    for role in (RoleName(REGISTRAR), RoleName(DISPATCHER), ME):
        rig.step(role)
    assert (loop._wire.is_noted, loop._horizon) == (False, before)
    loop._wire._every_s = 0
    rig.step(ME)  # nothing to commit: the note goes before what comes next is asked for
    assert loop._horizon == note(rig).horizons[0] > before


def test_a_dispatcher_that_has_not_spoken_yet_may_send_anything() -> None:
    rig = rig_of()
    rig.config = replace(rig.config, settings=replace(rig.config.settings, n_dispatchers=2))
    rig.start(ME)
    assert rig.loops[ME]._horizon < 0


def test_packets_are_trimmed_when_they_were_matched_and_their_dispatcher_has_noted_it() -> None:
    rig = rig_of()
    publish(rig, "p", "q")
    n = rig.topics.end(ROUTED)
    rig.config = replace(rig.config, trim_s=0.0)
    rig.start(ME)
    for _ in range(4):
        rig.step(ME)
    assert len(rig.topics.records(ROUTED, 0)) == n
    rig.start(RoleName(DISPATCHER))
    rig.settle()
    with pytest.raises(Exception, match="trimmed"):
        rig.topics.records(ROUTED, n - 1)


def test_what_comes_again_is_matched_once() -> None:
    rig = rig_of()
    publish(rig, "p")
    last = rig.topics.records(ROUTED)[-1].value or b""
    packet, header = from_record(last)
    again = to_record(packet, header._replace(incarnation=header.incarnation + 1, step=0))
    for worker in ("the same", "its successor"):
        rig.topics.append(ROUTED, again)
        rig.settle()
        assert delivered(rig) == ["p"], worker
        rig.start(ME)


def test_a_step_may_have_several_packets_for_a_worker_also_if_that_starts_again_between_them() -> None:
    rig = rig_of()
    publish(rig, "p")
    packet, header = from_record(rig.topics.records(ROUTED)[-1].value or b"")
    (source,) = header.sources
    later = header._replace(step=99, sources=(source._replace(start=source.stop, stop=source.stop + 1),))
    for _ in range(2):
        rig.topics.append(ROUTED, to_record(packet, later))
        rig.settle()
        rig.start(ME)
    assert delivered(rig) == ["p", "p", "p"]


def test_a_worker_that_is_behind_takes_in_no_more_than_it_can_match_soon() -> None:
    rig = rig_of(most_events=1)
    ids = [f"p{n}" for n in range(40)]
    publish(rig, *ids)
    loop: Any = rig.loops[ME]
    most = 0
    for _ in range(80):
        loop.step(0.0)
        most = max(most, len(loop._waiting))
    assert most < 20
    assert delivered(rig) == ids


def test_a_worker_tells_of_itself() -> None:
    rig = rig_of()
    publish(rig, "p")
    rig.settle()
    kinds = {record.key for record in rig.topics.records(Place(Topic.LOADS))}
    assert {b"measures", b"cells", b"contents", b"sample"} <= kinds


def test_packets_have_what_a_worker_must_know() -> None:
    rig = rig_of()
    publish(rig, "p")
    packet, header = from_record(rig.topics.records(ROUTED)[-1].value or b"")
    assert packet.column("seq").to_pylist() == [header.needs + 1]
    assert header.horizon <= header.needs + 1
    assert sum(n for _, n in header.appended) == 1
