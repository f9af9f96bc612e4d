"""Resident roles on the topics of a broker, stepped in this process: for tests of those who watch them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ps2stream.config import Settings
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import KafkaWire
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.planning.first_plan import first_plan
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.dispatcher_loop import DispatcherLoop
from ps2stream.resident.entries import first_entry
from ps2stream.resident.files import FIRST_SNAPSHOT, RoleFiles
from ps2stream.resident.registrar_loop import RegistrarLoop
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, RoleName
from ps2stream.resident.worker_loop import WorkerLoop
from ps2stream.state.state import State
from waiting import HANG_S

SETTINGS = Settings(n_workers=1, n_dispatchers=1)


@dataclass
class KafkaRoles:
    """A registrar, a dispatcher and a worker; a step of each is a round."""

    topics: Topics
    state: State
    snapshot_every: int = 100_000
    loops: dict[str, Any] = field(default_factory=dict)
    wires: list[KafkaWire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.role_topics = RoleTopics(self.topics, SETTINGS.n_workers)
        self.role_topics.create(SETTINGS.n_dispatchers)
        self.files = RoleFiles(self.state.store.under("resident"))
        plan = first_plan(empty(EVENTS), SETTINGS)
        self.files.write_snapshot(first_entry(self.files.write_plan(plan)), FIRST_SNAPSHOT)
        self.state.job_file.create(SETTINGS, plan.number, self.state.epoch, engine="realtime")
        self.config = RoleConfig(
            SETTINGS,
            self.files,
            "run",
            n_match_partitions=3,
            report_s=0.0,
            heartbeat_s=0.0,
            as_of_s=0.0,
            snapshot_every=self.snapshot_every,
        )

    def start(self) -> None:
        for kind, make in (
            (REGISTRAR, RegistrarLoop),
            (DISPATCHER, lambda *given: DispatcherLoop(0, *given)),
            (WORKER, lambda *given: WorkerLoop(0, *given)),
        ):
            self.wires.append(KafkaWire(self.role_topics, RoleName(kind)))
            self.loops[kind] = make(self.wires[-1], self.config)

    def run_until(self, is_over: Callable[[], bool]) -> None:
        deadline = time.monotonic() + HANG_S
        while not is_over():
            assert time.monotonic() < deadline
            for loop in self.loops.values():
                loop.step(0.05)

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        self.role_topics.delete()
