"""The loop of the registrar: what it writes when, and what is left of it when it dies."""

from __future__ import annotations

from typing import Any

import pytest

from ps2stream.config import Settings
from ps2stream.errors import FencedError
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.resident.entries import EntryKind, EntryReader
from ps2stream.resident.memory_wire import MemoryWire
from ps2stream.resident.notes import RegistrarNote, note_from_bytes
from ps2stream.resident.positions import update_seq
from ps2stream.resident.wire import REGISTRAR, Place, RoleName, Topic
from resident.rig import Rig

LOG = Place(Topic.LOG)
ME = RoleName(REGISTRAR)


def subscription(id: str, expression: str = "tea") -> dict[str, Any]:
    return {"id": id, "expression": expression, "region": [-10, -10, 10, 10]}


def rig_of(*, n_workers: int = 2, snapshot_every: int = 1_000) -> Rig:
    settings = Settings(n_workers=n_workers, n_dispatchers=1)
    return Rig.of(
        settings, empty(EVENTS), n_partitions=1, given=False, snapshot_every=snapshot_every
    ).steadily()


def kinds(rig: Rig) -> list[EntryKind]:
    reader = EntryReader()
    start = note(rig).log
    entries = [reader.take(record.value or b"") for record in rig.topics.records(LOG, start)]
    return [entry.kind for entry in entries if entry is not None]


def note(rig: Rig) -> RegistrarNote:
    return note_from_bytes(RegistrarNote, rig.topics.notes(REGISTRAR).get(0))


def test_updates_become_an_entry_that_is_complete_up_to_their_record() -> None:
    rig = rig_of()
    rig.start(ME)
    rig.arrive(Topic.UPDATES, subscription("a"), subscription("b"))
    rig.step(ME)
    (record,) = rig.topics.records(LOG)
    entry = EntryReader().take(record.value or b"")
    assert entry is not None
    assert entry.segment.column("seq_from").to_pylist() == [update_seq(0), update_seq(1)]
    assert entry.upto >= update_seq(1)
    assert note(rig).updates == 2


def test_what_is_wrong_with_updates_goes_to_the_rejected_and_the_others_go_on() -> None:
    rig = rig_of()
    rig.start(ME)
    rig.arrive(Topic.UPDATES, subscription("a", "tea and ("), {"op": "unsubscribe", "id": "nobody"})
    rig.arrive(Topic.UPDATES, {"op": "dance"}, subscription("b"))
    rig.step(ME)
    rig.step(ME)
    assert [row["id"] for row in rig.rejected()].count("nobody") == 1
    assert len(rig.rejected()) == 3
    assert rig.loops[ME]._role.n_subscriptions == 1


def test_a_successor_goes_on_where_the_log_ends() -> None:
    rig = rig_of()
    rig.start(ME)
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.step(ME)
    rig.arrive(Topic.UPDATES, subscription("b"))
    rig.start(ME)
    assert rig.loops[ME]._role.n_subscriptions == 1
    rig.step(ME)
    assert rig.loops[ME]._role.n_subscriptions == 2
    assert kinds(rig) == [EntryKind.UPDATES, EntryKind.UPDATES]


def test_one_that_was_replaced_writes_nothing() -> None:
    rig = rig_of()
    rig.start(ME)
    before = rig.loops[ME]
    rig.start(ME)
    rig.arrive(Topic.UPDATES, subscription("a"))
    with pytest.raises(FencedError):
        before.step(0.0)
    assert rig.topics.end(LOG) == 0


def test_a_stop_of_this_run_ends_all_roles_and_of_another_none() -> None:
    rig = rig_of()
    rig.settle()
    rig.topics.append(Place(Topic.CONTROL), b"stop another-run")
    assert all(rig.loops[role].step(0.0) for role in rig.roles)
    rig.stop()
    assert all(any(not rig.loops[role].step(0.0) for _ in range(50)) for role in rig.roles)
    assert kinds(rig) == [EntryKind.STOP]


def test_a_registrar_that_died_when_it_had_told_others_to_stop_stops_too() -> None:
    rig = rig_of()
    rig.start(ME)
    rig.stop()
    rig.step(ME)
    rig.start(ME)
    assert not rig.loops[ME].step(0.0)
    assert kinds(rig) == [EntryKind.STOP]


def test_a_stop_is_behind_every_snapshot_so_that_whoever_starts_late_finds_it() -> None:
    rig = rig_of(snapshot_every=0)
    rig.settle()
    rig.arrive(Topic.UPDATES, subscription("a"), {"op": "unsubscribe", "id": "a"})
    rig.stop()
    rig.step(ME)
    assert kinds(rig)[-1] is EntryKind.STOP
    late = rig.roles[-1]
    rig.start(late)
    assert not all(rig.loops[late].step(0.0) for _ in range(3))


def test_a_later_run_is_not_stopped_by_the_stop_of_an_earlier() -> None:
    rig = rig_of()
    rig.settle()
    rig.stop()
    rig.settle(1)
    rig.config = type(rig.config)(rig.config.settings, rig.config.files, "another", report_s=0.0)
    rig.loops.clear()
    rig.settle(1)
    assert all(rig.loops[role].step(0.0) for role in rig.roles)


def test_a_snapshot_stands_for_the_log_and_the_one_before_it_stays() -> None:
    rig = rig_of(snapshot_every=0)
    names = []
    for n in range(3):
        rig.arrive(Topic.UPDATES, subscription(f"stays {n}"))
        for m in range(4):
            rig.arrive(Topic.UPDATES, subscription(f"goes {m}"), {"op": "unsubscribe", "id": f"goes {m}"})
        rig.settle(8)
        names.append(note(rig).snapshot)
    assert len(set(names)) == 3
    assert note(rig).snapshot_before in rig.config.files.store.list()
    assert [key for key in rig.config.files.store.list() if key.startswith("snapshot")] == sorted(
        [note(rig).snapshot, note(rig).snapshot_before]
    )
    rig.start(ME)
    assert rig.loops[ME]._role.n_subscriptions == 3


def test_one_that_dies_between_the_file_of_a_snapshot_and_its_note_leaves_the_one_before() -> None:
    rig = rig_of(snapshot_every=0)
    rig.settle()
    rig.arrive(Topic.UPDATES, subscription("a"), subscription("b"))
    before = note(rig)
    loop: Any = rig.loops[ME]
    loop._role.n_since_snapshot = -100  # not now
    rig.step(ME)
    loop._role.n_since_snapshot = 100
    MemoryWire(rig.topics, ME)  # somebody else takes over
    with pytest.raises(FencedError):
        loop._snapshot_when_due()
    assert note(rig).snapshot == before.snapshot
    rig.start(ME)
    assert rig.loops[ME]._role.n_subscriptions == 2


def test_one_that_was_replaced_after_its_note_removes_nothing_of_its_successor() -> None:
    rig = rig_of(snapshot_every=0)
    rig.settle()
    loop: Any = rig.loops[ME]
    files, commit = rig.config.files, loop._wire.commit
    written: list[str] = []

    def commit_and_stall(*arguments: Any) -> Any:
        offsets = commit(*arguments)
        if loop._note.snapshot != note_before.snapshot:  # the snapshot is noted: a successor goes on with it
            written.append(files.write_snapshot(loop._role.snapshot(0).made().entry))
        return offsets

    note_before = loop._note
    loop._wire.commit = commit_and_stall
    rig.arrive(Topic.UPDATES, subscription("a"), {"op": "unsubscribe", "id": "a"})
    rig.settle()
    assert written
    assert set(written) <= set(files.store.list())
