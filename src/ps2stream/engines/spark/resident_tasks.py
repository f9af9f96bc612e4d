"""Resident roles as tasks of one long job: which partition is which role, and how it starts.

Spark chooses where a task runs, and starts one that has failed again, alone, wherever there is a slot. All
else a role finds by itself: its note, the newest snapshot, the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import TaskContext

from ps2stream.adjusting.controller import Controller, controller_of
from ps2stream.balance.adjustments import Adjustment
from ps2stream.config import Settings
from ps2stream.engines.background import background_thread
from ps2stream.engines.kernel_warmup import warm
from ps2stream.kafka.places import RoleName
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import KafkaWire
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.dispatcher_loop import DispatcherLoop
from ps2stream.resident.registrar_loop import RegistrarLoop
from ps2stream.resident.seldom_notes import SeldomNotes
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, Wire
from ps2stream.resident.worker_loop import WorkerLoop
from ps2stream.state.state import State

#: So long a role waits longer with every attempt; at most a second.
_PAUSE_S = 0.05
_MOST_PAUSE_S = 1.0
#: A registrar that has fallen behind takes all that waits: updates may be single records, and a step of it
#: takes tens of milliseconds, however few there are. How many bytes wait the client limits.
_UPDATES_AT_ONCE = 20_000

#: Make the controller of a registrar; by default the one that the settings ask for.
MakeController = Callable[[Settings, ThreadPoolExecutor], Controller | None]


def roles_of(settings: Settings) -> list[RoleName]:
    """Return the roles of a job by the numbers of their partitions."""
    return [
        RoleName(REGISTRAR),
        *(RoleName(DISPATCHER, number) for number in range(settings.n_dispatchers)),
        *(RoleName(WORKER, number) for number in range(settings.n_workers)),
    ]


@dataclass(frozen=True, slots=True)
class RoleTask:
    """What Spark runs in each partition, until the role is told to stop."""

    config: RoleConfig
    topics: RoleTopics
    state: State
    make_controller: MakeController = controller_of

    def __call__(self, number: int, nothing: Iterable[object]) -> Iterator[int]:
        for each in nothing:
            raise AssertionError(f"no input was expected; got {each!r}")
        task = TaskContext.get()
        assert task is not None
        time.sleep(min(_MOST_PAUSE_S, _PAUSE_S * task.attemptNumber()))
        self.run(roles_of(self.config.settings)[number])
        yield number

    def run(self, role: RoleName) -> None:
        """Run a role until it is told to stop; raise whatever ends it before."""
        self.state.check_epoch()  # one that was taken over must not fence its successor's roles
        warm()
        wire: Wire
        if role.kind == REGISTRAR:
            wire = KafkaWire(self.topics, role, _UPDATES_AT_ONCE)
        else:
            wire = KafkaWire(self.topics, role)
            # What the registrar decides has to be decided once. Of dispatchers see ``handover.py``.
            if role.kind == DISPATCHER or not self.config.is_exact:
                wire = SeldomNotes(wire)
        try:
            # Taken over since: nobody would fence a dispatcher of whom there are fewer now.
            self.state.check_epoch()
            if role.kind == REGISTRAR:
                self._run_registrar(wire)
            else:
                loop = (DispatcherLoop if role.kind == DISPATCHER else WorkerLoop)(
                    role.number, wire, self.config
                )
                while loop.step():
                    pass
        finally:
            wire.close()

    def _run_registrar(self, wire: Wire) -> None:
        background, beside = background_thread("replanning"), background_thread("snapshots")
        try:
            controller = self.make_controller(self.config.settings, background)
            keep_status = self.state.mailbox.write_status
            loop = RegistrarLoop(wire, self.config, controller, self._keep_record, keep_status, beside)
            while loop.step():
                pass
        finally:
            # A successor need not wait for what nobody will look at.
            for each in (background, beside):
                each.shutdown(wait=False, cancel_futures=True)

    def _keep_record(self, record: Adjustment) -> None:
        self.state.resident_adjustments.write(record.batch_id, record)
