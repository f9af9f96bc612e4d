"""Roles that are told by hand what comes next: no wires, no loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ps2stream.adjusting.controller import Adjusted, Observed, relocate, switch, unite
from ps2stream.adjusting.repartitioning import Considered
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.local_adjustment import LocalAdjustment
from ps2stream.balance.ownership import Ownership
from ps2stream.config import Settings
from ps2stream.model.schemas import EVENTS, PUBLICATIONS, SUBSCRIBE, UNSUBSCRIBE, UPDATES, empty
from ps2stream.planning.first_plan import first_plan
from ps2stream.resident.dispatcher import ResidentDispatcher
from ps2stream.resident.entries import Entry, first_entry
from ps2stream.resident.files import RoleFiles
from ps2stream.resident.registrar import ResidentRegistrar
from ps2stream.resident.routed import RoutedHeader
from ps2stream.resident.worker import ResidentWorker
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.roles.worker_host import WorkerHost, fetching
from ps2stream.store.memory import MemoryStore

WORLD = (-180.0, -90.0, 180.0, 90.0)


@dataclass
class Obedient:
    """A controller that does what it was told next."""

    order: tuple[str, int, int] = ("", 0, 0)

    def observe(self, observed: Observed) -> Adjustment | None:
        return None

    def completed(self, record: Adjustment) -> None:
        pass

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        what, source, target = self.order
        if what == "move":
            ownership = Ownership(registrar.plan)
            ownership.hand_over(np.arange(registrar.plan.grid.n_cells), source, target)
            nothing = np.zeros(registrar.plan.n_workers)
            plan = ownership.plan(registrar.plan.number + 1)
            planned = LocalAdjustment(plan, ownership.changed_cells, (), nothing, nothing)
            return relocate(planned, registrar, fetching(hosts), "told", "", 0.0)
        if what == "switch":
            nothing = np.zeros(registrar.plan.n_workers)
            plan = first_plan(empty(EVENTS), Settings(n_workers=registrar.plan.n_workers))
            return switch(Considered(plan, nothing, nothing), registrar, "told")
        return unite(registrar, fetching(hosts), "told", ()) if what == "unite" else None


@dataclass
class House:
    """One registrar, one dispatcher and all workers; each entry comes to all of them at once."""

    n_workers: int = 2
    files: RoleFiles = field(default_factory=lambda: RoleFiles(MemoryStore()))
    log: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = Settings(n_workers=self.n_workers, n_dispatchers=1)
        plan = first_plan(empty(EVENTS), self.settings)
        self.log.append(first_entry(self.files.write_plan(plan)))
        self.controller = Obedient()
        self.registrar = self.new_registrar()
        self.dispatcher = self.new_dispatcher()
        self.workers = [self.new_worker(number) for number in range(self.n_workers)]

    def new_registrar(self) -> ResidentRegistrar:
        return ResidentRegistrar(self.log, self.files.read_plan, gives_order=True)

    def new_dispatcher(self) -> ResidentDispatcher:
        made = ResidentDispatcher(self.settings.tokenizer(), self.files.read_plan)
        for entry in self.log:
            made.follow(entry)
        return made

    def new_worker(self, number: int) -> ResidentWorker:
        made = ResidentWorker(number, self.settings, self.files.read_plan)
        for entry in self.log:
            made.follow(entry)
        return made

    def tell(self, entry: Entry) -> Entry:
        self.log.append(entry)
        self.dispatcher.follow(entry)
        for worker in self.workers:
            worker.follow(entry)
        return entry

    def update(self, seq: int, *ids: str, ends: Sequence[str] = (), expression: str = "tea") -> Entry:
        """Subscribe some and unsubscribe others, at this seq and those that follow by 2."""
        rows: list[dict[str, Any]] = [
            {"op": SUBSCRIBE, "id": id, "expression": expression, **_region()} for id in ids
        ] + [{"op": UNSUBSCRIBE, "id": id} for id in ends]
        numbered = [{**row, "seq": seq + 2 * n} for n, row in enumerate(rows)]
        updates = pa.RecordBatch.from_pylist(numbered, schema=UPDATES)
        compiled, malformed = compile_updates(updates, self.settings.tokenizer())
        assert malformed.num_rows == 0
        return self.tell(self.registrar.decide(compiled, seq + 2 * len(rows)).entry)

    def adjust(self, what: str, source: int = 0, target: int = 0) -> Entry:
        self.controller.order = what, source, target
        contents = [np.zeros(self.registrar.registrar.plan.grid.n_cells, np.int64)] * self.n_workers
        adjusted = self.registrar.adjust(len(self.log), self.controller, contents, self.files.write_plan)
        assert adjusted is not None
        return self.tell(adjusted.entry)

    def packets(
        self, *positions: int, text: str = "tea", at: tuple[float, float] = (1.0, 1.0)
    ) -> list[tuple[int, pa.RecordBatch, RoutedHeader]]:
        """Route publications at some positions; return workers, packets and what goes with them."""
        rows = [
            {"seq": each, "id": f"p{each}", "lon": at[0], "lat": at[1], "text": text} for each in positions
        ]
        found = []
        for routing, done in self.dispatcher.dispatch(pa.RecordBatch.from_pylist(rows, schema=PUBLICATIONS)):
            plans = routing.plans
            header = RoutedHeader(
                0, 0, max(positions) - 1, routing.generation, plans.older is not None, plans.switch_seq
            )
            found += [(worker, packet, header) for worker, packet in done.packets.items()]
        return found

    def deliver(self, packets: list[tuple[int, pa.RecordBatch, RoutedHeader]], horizon: int = 0) -> list[str]:
        """Match packets; return the ids of subscriptions that were found."""
        ids: list[str] = []
        for number, packet, header in packets:
            worker = self.workers[number]
            for piece in worker.name([worker.match(packet, header, horizon)]):
                ids += piece.column("subscription_id").to_pylist()
        return sorted(ids)

    def publish(self, position: int, text: str = "tea") -> list[str]:
        return self.deliver(self.packets(position, text=text))

    def owners(self) -> set[int]:
        """Return the workers that store anything."""
        return {
            worker.worker_id
            for worker in self.workers
            if any(each.index.counts().n_subscriptions for each in worker.workers)
        }


def _region() -> dict[str, float]:
    return dict(zip(("min_lon", "min_lat", "max_lon", "max_lat"), WORLD, strict=True))
