"""Roles on topics in memory, stepped one at a time in an order that a seed decides; any of them may die."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ps2stream.adjusting.controller import Controller
from ps2stream.config import Settings
from ps2stream.errors import MissingError, PS2StreamError, StateError
from ps2stream.model.events import in_order, split
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS, EVENTS, PUBLICATIONS, UPDATES, empty
from ps2stream.planning.first_plan import first_plan
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.dispatcher_loop import DispatcherLoop
from ps2stream.resident.entries import first_entry
from ps2stream.resident.files import FIRST_SNAPSHOT, RoleFiles
from ps2stream.resident.handover import handed_over
from ps2stream.resident.memory_wire import MemoryTopics, MemoryWire
from ps2stream.resident.notes import DispatcherNote, RegistrarNote, WorkerNote, note_from_bytes
from ps2stream.resident.reading import given_packet
from ps2stream.resident.registrar_loop import RegistrarLoop
from ps2stream.resident.seldom_notes import SeldomNotes
from ps2stream.resident.wire import (
    DISPATCHER,
    REGISTRAR,
    WORKER,
    Place,
    Received,
    RoleName,
    Send,
    Topic,
    Wire,
)
from ps2stream.resident.worker_loop import WorkerLoop
from ps2stream.roles.packets import decode
from ps2stream.store.memory import MemoryStore

#: Behind all events of a log that is over.
THE_END = AFTER_ALL_SEQS - 2
#: Where chance does not decide: so much comes to a role at once.
_AT_ONCE: dict[str, int] = {Topic.UPDATES: 2, Topic.PUBLICATIONS: 2, Topic.LOG: 2, Topic.ROUTED: 4}
#: No log of these tests takes so many.
_MOST_STEPS = 50_000
#: Steps of a worker alone.
_MOST_TO_CATCH_UP = 100
#: Where ten roles die again and again, all of them are seldom done at once: so long they go on dying at most.
_MOST_DYING = 5_000


class DeadError(Exception):
    """Stand for the end of a process."""


class LateCommit(Future[list[int]]):
    """A commit that takes effect when somebody waits for it, unless it has before."""

    def __init__(self, commit: Callable[[], list[int]]) -> None:
        super().__init__()
        self._commit = commit

    def happen(self) -> None:
        if not self.done():
            try:
                self.set_result(self._commit())
            except Exception as failure:
                self.set_exception(failure)

    def result(self, timeout: float | None = None) -> list[int]:
        self.happen()
        return super().result(timeout)


class PatchyWire(MemoryWire):
    """A wire on which places come as they like, each in its order, and commits take their time.

    As with brokers.
    ``writers``: who wrote which record of a topic, where that is asked for later. ``meanwhile`` is called
    between two records that are not in one piece.
    """

    def __init__(
        self,
        topics: MemoryTopics,
        role: RoleName,
        dice: random.Random,
        writers: Writers,
        meanwhile: Callable[[], None],
    ) -> None:
        super().__init__(topics, role)
        self._dice, self._writers, self._meanwhile = dice, writers, meanwhile
        self._late: LateCommit | None = None

    def commit(self, sends: Sequence[Send], note: bytes) -> list[int]:
        return self._written(sends, super().commit(sends, note))

    def begin_commit(
        self, sends: Sequence[Send], note: bytes, *, is_whole: bool = False
    ) -> Future[list[int]]:
        assert self._late is None or self._late.done(), "one commit at a time"
        self._late = LateCommit(lambda: self.commit(sends, note))
        self._happen_by_chance()
        return self._late

    def _happen_by_chance(self) -> None:
        if self._late is not None and self._dice.random() < 0.5:
            self._late.happen()

    def send(self, sends: Sequence[Send]) -> list[int]:
        offsets = []
        for each in sends:
            offsets += super().send([each])
            self._meanwhile()
        return self._written(sends, offsets)

    def _written(self, sends: Sequence[Send], offsets: list[int]) -> list[int]:
        for send, offset in zip(sends, offsets, strict=True):
            if send.place.topic == Topic.MATCHES:
                self._writers[send.place.partition, offset] = self._role.number
        return offsets

    def _taken(self) -> list[Received]:
        self._happen_by_chance()
        received = []
        for place, start in self._next.items():
            if self._dice.random() < 0.5:
                found = self.read(place, start)
                received += found[: self._dice.choice((1, 3, len(found)))]
        for record in received:
            self._next[record.place] = record.offset + 1
        return received


#: Workers by the partition and the offset of what they delivered.
Writers = dict[tuple[int, int], int]


class Late(Executor):
    """Carry out what was submitted when somebody has asked for it some times: as late as that may be."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return _LateFuture(functools.partial(work, *arguments, **named), self._dice)


class _LateFuture(Future[Any]):
    def __init__(self, work: Callable[[], Any], dice: random.Random) -> None:
        super().__init__()
        self._work, self._dice = work, dice

    def done(self) -> bool:
        if not super().done() and self._dice.random() < 0.3:
            try:
                self.set_result(self._work())
            except Exception as error:
                self.set_exception(error)
        return super().done()


@dataclass
class Rig:
    """A deployment in memory."""

    config: RoleConfig
    topics: MemoryTopics
    controller: Controller | None = None
    seed: int = 0
    loops: dict[RoleName, Any] = field(default_factory=dict)
    n_deaths: int = 0
    n_runs: int = 0
    #: Roles that stand still.
    stopped: set[RoleName] = field(default_factory=set)
    writers: Writers = field(default_factory=dict)
    #: What clients will do, one after the other, while roles run.
    coming: deque[Callable[[], object]] = field(default_factory=deque)
    #: Whether chance decides what comes to a role when.
    is_patchy: bool = True
    #: Loops of roles that were replaced, and do not know it.
    zombies: list[Any] = field(default_factory=list)
    _has_zombie_at_work: bool = False

    def steadily(self) -> Rig:
        """Let what was sent come at once, a few records at a time."""
        self.is_patchy = False
        self.config = replace(self.config, trim_s=0.0)
        return self

    @classmethod
    def of(
        cls,
        settings: Settings,
        sample: pa.RecordBatch,
        *,
        controller: Controller | None = None,
        n_partitions: int = 3,
        given: bool = True,
        seed: int = 0,
        snapshot_every: int = 40,
        as_of_s: float = 0.0,
        store: MemoryStore | None = None,
    ) -> Rig:
        files = RoleFiles(store or MemoryStore())
        files.write_snapshot(first_entry(files.write_plan(first_plan(sample, settings))), FIRST_SNAPSHOT)
        config = RoleConfig(
            settings,
            files,
            "run",
            n_match_partitions=2,
            has_given_order=given,
            report_s=0.0,
            heartbeat_s=0.0,
            # Who trims notes: where it is never due, much is sent that no note has.
            trim_s=random.Random(f"{seed} trim").choice((0.0, 0.02, 1.0)),
            as_of_s=as_of_s,
            # Where a step takes one event, commits go on while there is more to do.
            most_events=random.Random(seed).choice((1, 4, 50)),
            snapshot_every=snapshot_every,
        )
        partitions = {
            Topic.PUBLICATIONS: n_partitions,
            Topic.ROUTED: settings.n_workers,
            Topic.MATCHES: 2,
        }
        return cls(config, MemoryTopics(partitions), controller, seed)

    @property
    def roles(self) -> list[RoleName]:
        settings = self.config.settings
        return [
            RoleName(REGISTRAR),
            *(RoleName(DISPATCHER, number) for number in range(settings.n_dispatchers)),
            *(RoleName(WORKER, number) for number in range(settings.n_workers)),
        ]

    def start(self, role: RoleName) -> None:
        """Start a role, or start it again in the place of the one before."""
        dice = random.Random(f"{self.seed} {role} {self.n_deaths}")
        wire: Wire = (
            PatchyWire(self.topics, role, dice, self.writers, lambda: self._meanwhile(dice))
            if self.is_patchy
            else MemoryWire(self.topics, role, _AT_ONCE)
        )
        if role.kind == DISPATCHER or (role.kind == WORKER and not self.config.is_exact):
            every_s = dice.choice((0, 10, 50)) if self.is_patchy else 0
            wire = SeldomNotes(wire, every_s=every_s, clock=itertools.count().__next__)
        if role in self.loops and role.kind != REGISTRAR:
            self.zombies.append(self.loops[role])
        if role.kind == REGISTRAR:
            beside = Late(dice) if self.is_patchy else None
            self.loops[role] = RegistrarLoop(wire, self.config, self.controller, beside=beside)
        elif role.kind == DISPATCHER:
            self.loops[role] = DispatcherLoop(role.number, wire, self.config)
        else:
            self.loops[role] = WorkerLoop(role.number, wire, self.config)

    def pour(self, events: pa.Table, *, is_last: bool = True, high_water: int = BEFORE_ALL_SEQS) -> None:
        """Send events in their own order, packets of publications to partitions by chance."""
        dice = random.Random(self.seed)
        n = self.topics.n_partitions[Topic.PUBLICATIONS]
        batch = events.select(EVENTS.names).combine_chunks().to_batches()
        kept, _, _ = in_order(batch[0] if batch else empty(EVENTS), high_water)
        start = 0
        while start < kept.num_rows:
            size = dice.choice((1, 1, 1, 2, 5, 12))
            part = kept.slice(start, size)
            start += size
            publications, updates = split(part)
            upto = int(part.column("seq")[-1].as_py())
            self._will_append(Place(Topic.UPDATES), given_packet(updates, upto))
            if publications.num_rows:
                partition = Place(Topic.PUBLICATIONS, dice.randrange(n))
                self._will_append(partition, given_packet(publications, upto))
        if is_last:
            self._will_append(Place(Topic.UPDATES), given_packet(empty(UPDATES), THE_END))
            for number in range(n):
                end = given_packet(empty(PUBLICATIONS), THE_END)
                self._will_append(Place(Topic.PUBLICATIONS, number), end)

    def _will_append(self, place: Place, value: bytes) -> None:
        self.coming.append(lambda: self.topics.append(place, value))

    def restart(self, n_dispatchers: int) -> None:
        """End all roles; as many dispatchers as are told go on with the others."""
        settings = replace(self.config.settings, n_dispatchers=n_dispatchers)
        self.config = replace(self.config, settings=settings, run=f"{self.config.run} again")
        self.zombies += [loop for role, loop in self.loops.items() if role.kind == DISPATCHER]
        self.loops.clear()
        for number in self.topics.notes(DISPATCHER):  # as the driver does
            handed_over(MemoryWire(self.topics, RoleName(DISPATCHER, number)), number, settings.n_workers)

    def run(self, death: float = 0.0, n_steps: int | None = None) -> None:
        """Step roles by chance, any number of times until all has passed them; each may die at a step."""
        dice = random.Random(f"{self.seed} {self.n_runs}")
        self.n_runs += 1
        for n_done in range(n_steps or _MOST_STEPS):
            if self.coming:
                for _ in range(dice.choice((0, 0, 0, 0, 1, 2))):
                    if self.coming:
                        self.coming.popleft()()
            elif self.is_over():
                return
            if self.zombies and dice.random() < 0.2:
                self._step_zombie(dice.choice(self.zombies))
            role = dice.choice([each for each in self.roles if each not in self.stopped])
            if role not in self.loops:
                self.start(role)
            elif dice.random() < death and n_done < _MOST_DYING:
                self.n_deaths += 1
                if dice.random() < 0.5:  # amid a step: when it would commit, or when it has
                    self._die_at_commit(role, is_done=dice.random() < 0.5)
                self.start(role)
            else:
                self.step(role)
        assert n_steps is not None, "the roles did not get on"

    def arrive(self, topic: Topic, *objects: dict[str, Any], partition: int = 0) -> list[int]:
        """Send events as any producer would, a record each; return their offsets."""
        place = Place(topic, partition)
        return [self.topics.append(place, json.dumps(each).encode()) for each in objects]

    def stop(self) -> None:
        self.topics.append(Place(Topic.CONTROL), f"stop {self.config.run}".encode())

    def settle(self, n_rounds: int = 4) -> None:
        """Step all roles in turn, some times, so that whatever was sent has passed them."""
        for role in self.roles * n_rounds:
            if role not in self.loops:
                self.start(role)
            self.step(role)

    def step(self, role: RoleName) -> None:
        """Step a role; one that is left behind by what was trimmed fails, and is started again."""
        try:
            self.loops[role].step(0.0)
        except (StateError, MissingError):
            self.n_deaths += 1
            self.start(role)

    def _meanwhile(self, dice: random.Random) -> None:
        """Let one that was replaced go on while another sends."""
        if self.zombies and not self._has_zombie_at_work and dice.random() < 0.1:
            self._step_zombie(dice.choice(self.zombies))

    def _step_zombie(self, loop: Any) -> None:
        """Let one go on that was replaced; it ends when it finds that out."""
        self._has_zombie_at_work = True
        try:
            loop.step(0.0)
        except (DeadError, PS2StreamError):
            self.zombies.remove(loop)
        self._has_zombie_at_work = False

    def _die_at_commit(self, role: RoleName, *, is_done: bool) -> None:
        """Let a role die when it commits, before or after; or amid it, where that is not in one piece."""
        wire = self.loops[role]._wire
        original, dice = wire.commit, random.Random(f"{self.seed} {self.n_deaths}")

        def commit(sends: Sequence[Send], note: bytes) -> Any:
            if is_done:
                original(sends, note)
            elif isinstance(wire, SeldomNotes):
                wire.send([send for send in sends if dice.random() < 0.5])
            raise DeadError

        wire.commit = commit
        for _ in range(3):
            try:
                self.loops[role].step(0.0)
            except DeadError:
                return

    def is_over(self) -> bool:
        """Say whether every worker knows that nothing will come to it any more."""
        if not self.config.has_given_order:
            return self._is_read()
        notes = self.topics.notes(WORKER)
        n_dispatchers = self.config.settings.n_dispatchers
        horizons = [note_from_bytes(WorkerNote, note).horizons for note in notes.values()]
        return len(notes) == self.config.settings.n_workers and all(
            all(each.get(number, 0) > THE_END for number in range(n_dispatchers)) for each in horizons
        )

    def _is_read(self) -> bool:
        """Say whether every role has noted that it has read all there is.

        Dispatchers go on to tell workers how far they are, so these would be at the end all at once by luck
        alone: when all events are read, workers are stepped while nobody else is.
        """
        updates = note_from_bytes(RegistrarNote, self.topics.notes(REGISTRAR).get(0)).updates
        done: dict[int, int] = {}
        for said in self.topics.notes(DISPATCHER).values():
            for partition, offset in note_from_bytes(DispatcherNote, said).publications.items():
                done[partition] = max(offset, done.get(partition, 0))
        are_events_read = updates == self.topics.end(Place(Topic.UPDATES)) and all(
            done.get(number, 0) == self.topics.end(Place(Topic.PUBLICATIONS, number))
            for number in range(self.topics.n_partitions[Topic.PUBLICATIONS])
        )
        return are_events_read and all(self._catches_up(role) for role in self.roles if role.kind == WORKER)

    def _catches_up(self, worker: RoleName) -> bool:
        """Step a worker until it has noted all its packets, if it is there and gets so far."""
        place = Place(Topic.ROUTED, worker.number)
        for _ in range(_MOST_TO_CATCH_UP):
            note = self.topics.notes(WORKER).get(worker.number)
            if note_from_bytes(WorkerNote, note).routed == self.topics.end(place):
                return True
            if worker in self.stopped or worker not in self.loops:
                return False
            self.step(worker)
        return False

    def matches(self) -> list[tuple[str, int, str, int]]:
        """Return what was delivered, in the order of partitions."""
        rows = []
        for partition in range(self.topics.n_partitions[Topic.MATCHES]):
            for record in self.topics.records(Place(Topic.MATCHES, partition)):
                rows += [tuple(row.values()) for row in decode(record.value or b"").to_pylist()]
        return rows

    def rejected(self) -> list[dict[str, Any]]:
        records = self.topics.records(Place(Topic.REJECTED))
        return [json.loads(record.value or b"") for record in records]
