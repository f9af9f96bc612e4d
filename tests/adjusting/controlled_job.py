"""A deployment of two workers, and a controller that is told whatever loads a test says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from engines.deployments import Deployment
from engines.streams import events_of, subscribe
from ps2stream.adjusting.controller import Adjusted, LoadController, Observed
from ps2stream.adjusting.repartitioning import Considered
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.partitioning.sample import Sample
from ps2stream.roles.packets import CELL_LOADS, SAMPLED

GRID = Grid.over(WORLD, 2)
#: Two columns in the west for worker 0, two in the east for worker 1.
PLAN = Plan(1, "by hand", 2, GRID, owners_of_cells(np.array([0, 0, 1, 1] * 4, np.int32)))
EAST_AND_WEST = replace(PLAN, h1=owners_of_cells(np.array([1, 1, 0, 0] * 4, np.int32)))
#: Publications of cells.
Published = dict[int, int]
EVEN: Published = {0: 25, 1: 25, 2: 25, 3: 25}
UNEVEN: Published = {**dict.fromkeys((0, 1, 4, 5, 8, 9, 12, 13), 10), 2: 20}


def chosen_settings(**changed: Any) -> Settings:
    usual: dict[str, Any] = {"scope": "local", "window": 300, "sigma": 1.3, "target": 1.1}
    return Settings(n_workers=2, adjustment=AdjustmentSettings(**{**usual, **changed}))


def subscribers() -> pa.RecordBatch:
    """Let four people ask for something in the middle of each cell."""
    rows: list[dict[str, Any]] = []
    for cell in range(GRID.n_cells):
        west, south, east, north = GRID.bounds_of(cell)
        lon, lat = (west + east) / 2, (south + north) / 2
        for number in range(4):
            bounds = {"min_lon": lon, "min_lat": lat, "max_lon": lon + 1, "max_lat": lat + 1}
            rows.append(subscribe(len(rows) + 1, f"s{cell}-{number}", f"word{number}", **bounds))
    return events_of(*rows)


N_SUBSCRIBERS = 64


@dataclass(slots=True)
class Job:
    """A deployment whose loads are whatever a test says."""

    controller: LoadController
    deployment: Deployment = field(default_factory=lambda: Deployment(PLAN))
    made: list[Adjusted] = field(default_factory=list)
    known: list[Adjustment] = field(default_factory=list)
    n_batches: int = 0

    def __post_init__(self) -> None:
        self.deployment.process(subscribers())

    def batch(self, published: Published, events: pa.RecordBatch | None = None) -> Adjusted | None:
        """Ask the controller before a batch, process it, and report it."""
        registrar = self.deployment.registrar
        adjusted = self.controller.adjust(self.n_batches, registrar, self.deployment.hosts)
        self.deployment.plans.setdefault(registrar.plan.number, registrar.plan)
        if adjusted is not None:
            self.made.append(adjusted)
            self.deployment._migrated.append(adjusted.migrated.rows)
        self.deployment.process(empty(EVENTS) if events is None else events)
        if adjusted is not None:
            self.controller.completed(replace(adjusted.record, migration_s=0.25))
        known = self.controller.observe(observed(registrar.plan, published))
        if known is not None:
            self.known.append(known)
        self.n_batches += 1
        return adjusted

    def kinds(self) -> list[str]:
        return [adjusted.record.kind for adjusted in self.made]


def observed(plan: Plan, published: Published) -> Observed:
    """Give the publications to the workers that own their cells."""
    n = sum(published.values())
    owners = plan.h1.cell_owner
    parts = [{cell: n for cell, n in published.items() if owners[cell] == worker} for worker in range(2)]
    return Observed(
        n,
        n // 5,
        {worker: _report(part) for worker, part in enumerate(parts) if part},
        {worker: 0.001 * sum(part.values()) for worker, part in enumerate(parts)},
        [pa.RecordBatch.from_pylist([{"lon": 1.0, "lat": 1.0, "terms": [1, 2]}], SAMPLED)],
    )


def _report(cells: Published) -> pa.RecordBatch:
    rows = [
        dict.fromkeys(CELL_LOADS.names, 0)
        | {"cell": cell, "publications": n, "lookups": n, "bytes": 400, "subscriptions": 4}
        for cell, n in cells.items()
    ]
    return pa.RecordBatch.from_pylist(rows, CELL_LOADS)


class Considering:
    """Stand in for the search of a new plan; count how often it is asked for."""

    def __init__(self, gain: float = 0.5) -> None:
        self.asked: list[tuple[Sample, Plan]] = []
        self.gain = gain

    def __call__(self, sample: Sample, running: Plan, settings: Settings) -> Considered:
        self.asked.append((sample, running))
        loads = np.array([10.0, 10.0])
        return Considered(replace(EAST_AND_WEST, number=77), loads, (1.0 - self.gain) * loads)
