"""Snapshots of the registrar: what they let go of, and what they must not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.errors import FencedError, StateError
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.resident.files import FIRST_SNAPSHOT
from ps2stream.resident.log_tail import LOG, LogTail
from ps2stream.resident.memory_wire import MemoryWire
from ps2stream.resident.notes import RegistrarNote, note_from_bytes
from ps2stream.resident.registrar_loop import RegistrarLoop
from ps2stream.resident.wire import REGISTRAR, RoleName, Topic
from ps2stream.store.memory import MemoryStore
from ps2stream.testing.generators import random_events
from resident.restless import Restless
from resident.rig import Rig
from resident.test_laws import assert_as_the_oracle_says


def test_a_registrar_that_was_taken_over_removes_no_file_of_its_successor() -> None:
    events = random_events(800, seed=1)
    rig = Rig.of(Settings(n_workers=2), one_batch(events), seed=1, snapshot_every=10)
    rig.pour(events)
    rig.run(n_steps=200)
    zombie = rig.loops[RoleName(REGISTRAR)]
    commit = zombie._wire.commit

    def commit_and_be_cut_off(*arguments: object) -> object:
        """Stand for a host that is cut off after a commit, while another registrar does all the rest."""
        done = commit(*arguments)
        rig.start(RoleName(REGISTRAR))
        rig.run()
        return done

    zombie._wire.commit = commit_and_be_cut_off
    zombie._role.n_since_snapshot = 10_000  # a snapshot is due
    zombie._snapshot_when_due()
    while zombie._snapshotting.is_busy:
        zombie._snapshot_when_due()
    zombie._wire.commit = commit
    with pytest.raises(FencedError):
        zombie._commit([])
    for role in rig.roles:  # what the successor wrote is there for all who start now
        rig.start(role)
    assert_as_the_oracle_says(rig, events)


@dataclass(frozen=True)
class FullStore(MemoryStore):
    """A store that has no space left for a while."""

    full: threading.Event = field(default_factory=threading.Event)

    def put(self, key: str, data: bytes) -> None:
        if self.full.is_set():
            raise StateError("no space left on device")
        MemoryStore.put(self, key, data)


def test_a_store_without_space_holds_up_snapshots_and_no_deliveries() -> None:
    events = random_events(600, seed=2)
    store = FullStore()
    rig = Rig.of(Settings(n_workers=2), one_batch(events), seed=2, snapshot_every=10, store=store)
    rig.pour(events)
    rig.run(n_steps=100)
    store.full.set()
    n_before, n_deaths = len(rig.matches()), rig.n_deaths
    rig.run(n_steps=800)
    assert rig.n_deaths > n_deaths
    assert len(rig.matches()) > n_before
    store.full.clear()
    rig.run()
    assert_as_the_oracle_says(rig, events)


def test_adjustments_that_follow_each_other_at_once_do_not_put_off_a_snapshot_for_ever() -> None:
    sample = random_events(300, seed=3)
    controller = Restless(3, one_batch(sample), share=1.0)
    rig = Rig.of(
        Settings(n_workers=2), empty(EVENTS), controller=controller, given=False, seed=3, snapshot_every=5
    ).steadily()
    keys, n_adjustments = [FIRST_SNAPSHOT], 0
    for number in range(40):
        region = [-10, -10, 10, 10]
        rig.arrive(Topic.UPDATES, {"id": f"s{number}", "expression": "tea", "region": region})
        rig.arrive(Topic.PUBLICATIONS, {"id": f"p{number}", "lat": 1.0, "lon": 1.0, "text": "tea"})
        rig.settle(n_rounds=1)
        note = note_from_bytes(RegistrarNote, rig.topics.notes(REGISTRAR).get(0))
        n_adjustments = note.n_adjustments
        if note.snapshot != keys[-1]:
            keys.append(note.snapshot)
    assert n_adjustments > 5  # there are many, as the test needs
    assert len(keys) > 2


def test_plans_that_the_log_names_are_there_for_as_long_as_it_is_kept() -> None:
    events = random_events(300, seed=3)
    controller = Restless(3, one_batch(events), share=0.7)
    rig = Rig.of(
        Settings(n_workers=2), empty(EVENTS), controller=controller, given=False, seed=3, snapshot_every=5
    ).steadily()
    named: set[str] = set()
    for number in range(60):
        region = [-10, -10, 10, 10]
        rig.arrive(Topic.UPDATES, {"id": f"s{number}", "expression": "tea", "region": region})
        rig.settle(n_rounds=1)
        kept = LogTail(MemoryWire(rig.topics, RoleName("reader")), rig.config.files, "")
        log = rig.topics.records(LOG, rig.topics.first(LOG))
        entries = [rig.config.files.read_snapshot(kept.note.snapshot_before), *kept.entries(log)]
        named = {place.key for entry in entries for place in entry.routing.parts}
        assert named <= set(rig.config.files.keys())
    assert len(named) > 3  # there are some between two snapshots
    assert len(rig.config.files.keys()) < 40  # and those before go


def test_a_snapshot_is_of_the_log_as_it_was_when_it_was_begun() -> None:
    work: list[Callable[[], object]] = []

    class Held(Executor):
        """Carry out nothing by itself."""

        def submit(self, each: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
            future: Future[Any] = Future()
            work.append(lambda: future.set_result(each()))
            return future

    sample = one_batch(random_events(300, seed=4))
    rig = Rig.of(Settings(n_workers=2), sample, given=False, seed=4, snapshot_every=10).steadily()
    rig.settle(1)
    registrar = RoleName(REGISTRAR)
    controller = Restless(4, sample, share=1.0)
    rig.loops[registrar] = RegistrarLoop(
        MemoryWire(rig.topics, registrar), rig.config, controller, beside=Held()
    )
    for number in range(40):
        region = [-10, -10, 10, 10]
        rig.arrive(Topic.UPDATES, {"id": f"s{number}", "expression": "tea", "region": region})
        if number % 3 == 0:
            rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": f"s{number // 2}"})
        rig.arrive(Topic.PUBLICATIONS, {"id": f"p{number}", "lat": 1.0, "lon": 1.0, "text": "tea"})
        rig.settle(1)
    assert len(work) == 1  # one at a time, and updates and adjustments went on
    note = note_from_bytes(RegistrarNote, rig.topics.notes(REGISTRAR).get(0))
    assert note.snapshot == FIRST_SNAPSHOT
    assert note.n_adjustments > 3
    work.pop()()
    rig.settle(1)
    note = note_from_bytes(RegistrarNote, rig.topics.notes(REGISTRAR).get(0))
    assert note.snapshot != FIRST_SNAPSHOT
    n_live, matches = rig.loops[registrar]._role.n_subscriptions, len(rig.matches())
    for role in rig.roles:  # from the snapshot, and what came since it was begun
        rig.start(role)
    assert rig.loops[registrar]._role.n_subscriptions == n_live
    rig.arrive(Topic.PUBLICATIONS, {"id": "last", "lat": 1.0, "lon": 1.0, "text": "tea"})
    rig.settle(30)
    assert len(rig.matches()) == matches + n_live
