"""A role begins with the newest snapshot, and follows the log behind it."""

from __future__ import annotations

from ps2stream.resident.entries import Entry, EntryKind, PlanPlace, first_entry, to_bytes
from ps2stream.resident.files import FIRST_SNAPSHOT, RoleFiles
from ps2stream.resident.log_tail import LOG, LogTail
from ps2stream.resident.memory_wire import MemoryTopics, MemoryWire
from ps2stream.resident.notes import RegistrarNote, note_to_bytes
from ps2stream.resident.wire import REGISTRAR, WORKER, RoleName, Send
from ps2stream.routing.routing import Routing
from ps2stream.store.memory import MemoryStore

PLAN = Routing(PlanPlace(1, "plan"))


def entry(kind: EntryKind, upto: int, run: str = "") -> Entry:
    return Entry(kind, upto, PLAN, run=run)


def tail_of(note: RegistrarNote | None, *entries: Entry) -> tuple[LogTail, MemoryTopics]:
    topics, files = MemoryTopics({}), RoleFiles(MemoryStore())
    files.write_snapshot(first_entry(PLAN.newest), FIRST_SNAPSHOT)
    files.write_snapshot(entry(EntryKind.SNAPSHOT, 50), "later")
    registrar = MemoryWire(topics, RoleName(REGISTRAR))
    sends = [Send(LOG, to_bytes(each)) for each in entries]
    if note is not None:
        registrar.commit(sends, note_to_bytes(note))
    return LogTail(MemoryWire(topics, RoleName(WORKER)), files, "mine"), topics


def test_without_a_note_a_log_begins_with_the_first_snapshot() -> None:
    tail, _ = tail_of(None)
    assert (tail.snapshot.upto, tail.start, tail.is_stopped) == (0, 0, False)


def test_the_note_of_the_registrar_says_where_to_begin() -> None:
    tail, _ = tail_of(RegistrarNote(9, "later", 7))
    assert (tail.snapshot.upto, tail.start) == (50, 7)


def test_entries_come_in_their_order_and_the_stop_of_this_run_is_noticed() -> None:
    written = [
        entry(EntryKind.UPDATES, 2),
        entry(EntryKind.STOP, 2, "another"),
        entry(EntryKind.STOP, 2, "mine"),
    ]
    tail, topics = tail_of(RegistrarNote(), *written)
    records = topics.records(LOG)
    assert list(tail.entries(records[:2])) == written[:2]
    assert not tail.is_stopped
    assert list(tail.entries(records[2:])) == written[2:]
    assert tail.is_stopped
