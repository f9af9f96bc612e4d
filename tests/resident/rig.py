"""Roles on topics in memory, stepped one at a time in an order that a seed decides; any of them may die."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laws.chaos import Chaos
from ps2stream.adjusting.controller import Adjusted, Controller
from ps2stream.config import Settings
from ps2stream.errors import StateError
from ps2stream.model.events import in_order, split
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS, EVENTS, PUBLICATIONS, UPDATES, empty
from ps2stream.planning.first_plan import first_plan
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.dispatcher_loop import DispatcherLoop
from ps2stream.resident.entries import first_entry
from ps2stream.resident.files import FIRST_SNAPSHOT, RoleFiles
from ps2stream.resident.memory_wire import MemoryTopics, MemoryWire
from ps2stream.resident.notes import WorkerNote, note_from_bytes
from ps2stream.resident.reading import given_packet
from ps2stream.resident.registrar_loop import RegistrarLoop
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, Place, RoleName, Topic
from ps2stream.resident.worker_loop import WorkerLoop
from ps2stream.roles.packets import decode
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import WorkerHost
from ps2stream.store.memory import MemoryStore

#: Behind all events of a log that is over.
THE_END = AFTER_ALL_SEQS - 2
#: So little comes to a role at once that others are ahead of it, or behind.
_AT_ONCE = {Topic.UPDATES: 2, Topic.PUBLICATIONS: 2, Topic.LOG: 2, Topic.ROUTED: 4}


class Restless(Chaos):
    """Chaos that thinks anew whenever it is asked: the registrar counts only what was adjusted."""

    n_asked = 0

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        self.n_asked += 1
        return super().adjust(self.n_asked, registrar, hosts)


class DeadError(Exception):
    """Stand for the end of a process."""


@dataclass
class Rig:
    """A deployment in memory."""

    config: RoleConfig
    topics: MemoryTopics
    controller: Controller | None = None
    seed: int = 0
    loops: dict[RoleName, Any] = field(default_factory=dict)
    n_deaths: int = 0
    n_left_behind: int = 0

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
    ) -> Rig:
        files = RoleFiles(MemoryStore())
        files.write_snapshot(first_entry(files.write_plan(first_plan(sample, settings))), FIRST_SNAPSHOT)
        config = RoleConfig(
            settings,
            files,
            "run",
            n_match_partitions=2,
            has_given_order=given,
            report_s=0.0,
            heartbeat_s=0.0,
            trim_s=0.0,
            as_of_s=0.0,
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
        wire = MemoryWire(self.topics, role, at_once=_AT_ONCE)
        if role.kind == REGISTRAR:
            self.loops[role] = RegistrarLoop(wire, self.config, self.controller)
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
            size = dice.randint(1, 12)
            part = kept.slice(start, size)
            start += size
            publications, updates = split(part)
            upto = int(part.column("seq")[-1].as_py())
            self.topics.append(Place(Topic.UPDATES), given_packet(updates, upto))
            if publications.num_rows:
                partition = Place(Topic.PUBLICATIONS, dice.randrange(n))
                self.topics.append(partition, given_packet(publications, upto))
        if is_last:
            self.topics.append(Place(Topic.UPDATES), given_packet(empty(UPDATES), THE_END))
            for number in range(n):
                self.topics.append(
                    Place(Topic.PUBLICATIONS, number), given_packet(empty(PUBLICATIONS), THE_END)
                )

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

    def run(self, death: float = 0.0, is_over: Callable[[], bool] | None = None, most: int = 20_000) -> None:
        """Step roles by chance until all that was poured has passed them; each may die at a step."""
        dice = random.Random(self.seed + 1)
        for role in self.roles:
            if role not in self.loops:
                self.start(role)
        for _ in range(most):
            if (is_over or self.is_over)():
                return
            role = dice.choice(self.roles)
            if dice.random() < death:
                self.n_deaths += 1
                if dice.random() < 0.5:  # amid a step: when it would commit, or when it has
                    self._die_at_commit(role, is_done=dice.random() < 0.5)
                self.start(role)
            else:
                self.step(role)
        raise AssertionError("the roles did not get on")

    def step(self, role: RoleName) -> None:
        """Step a role; where the log has gone on without it, it dies and begins with a newer snapshot."""
        try:
            self.loops[role].step(0.0)
        except StateError as error:
            if "trimmed" not in str(error) and "missing" not in str(error):
                raise
            self.n_left_behind += 1
            self.start(role)

    def _die_at_commit(self, role: RoleName, *, is_done: bool) -> None:
        wire = self.loops[role]._wire
        original = wire.commit

        def commit(*arguments: Any) -> Any:
            if is_done:
                original(*arguments)
            raise DeadError

        wire.commit = commit
        for _ in range(3):
            try:
                self.loops[role].step(0.0)
            except (DeadError, StateError):
                return

    def is_over(self) -> bool:
        """Say whether every worker knows that nothing will come to it any more."""
        notes = self.topics.notes(WORKER)
        n_dispatchers = self.config.settings.n_dispatchers
        horizons = [note_from_bytes(WorkerNote, note).horizons for note in notes.values()]
        return len(notes) == self.config.settings.n_workers and all(
            len(each) >= n_dispatchers and min(each.values()) > THE_END for each in horizons
        )

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
