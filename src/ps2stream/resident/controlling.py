"""What the registrar knows of the others by their reports: their horizons, and loads for the controller."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ps2stream.adjusting.controller import Controller, LoadController, Observed
from ps2stream.arrays import Int64s
from ps2stream.balance.adjustments import Adjustment
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.reporting import FIRST_ROW, N_ROWS, ReportKind
from ps2stream.resident.wire import DISPATCHER, WORKER, Received
from ps2stream.roles.packets import WORKER as WHOSE
from ps2stream.roles.packets import decode


class Controlling:
    """Gather reports, and ask the controller when there is something new to see."""

    def __init__(self, controller: Controller | None, n_workers: int, look_s: float) -> None:
        self.controller = controller
        self.n_updates = 0
        self._n_workers = n_workers
        self._look_s = look_s
        self._measures: dict[tuple[str, int], RoleMeasures] = {}
        self._counted: dict[tuple[str, int, int, str], float] = {}
        self._cells: dict[int, list[pa.RecordBatch]] = {}
        self._contents: dict[int, Int64s] = {}
        self._sampled: list[pa.RecordBatch] = []
        self._look_at = 0.0
        self._began: tuple[Adjustment, int, float] | None = None
        self._known: list[Adjustment] = []

    @property
    def horizon(self) -> int:
        """Return the position below which nothing comes to any worker any more, as far as all have said."""
        said = [self._measures.get((WORKER, number)) for number in range(self._n_workers)]
        return min(int(each.gauges["horizon"]) if each else BEFORE_ALL_SEQS for each in said)

    def take(self, records: Sequence[Received]) -> None:
        """Take in reports."""
        for record in records:
            kind = (record.key or b"").decode()
            if kind == ReportKind.MEASURES:
                measures = RoleMeasures.from_json(record.value or b"")
                self._measures[measures.role, measures.number] = measures
                self._see_migration()
            elif self.controller is not None:
                batch = decode(record.value or b"")
                if kind == ReportKind.SAMPLE:
                    self._sampled.append(batch)
                else:
                    worker = int(batch.schema.metadata[WHOSE])
                    if kind == ReportKind.CELLS:
                        plain = batch.replace_schema_metadata(None)
                        self._cells.setdefault(worker, []).append(plain)
                    else:
                        self._take_contents(worker, batch)

    def _take_contents(self, worker: int, part: pa.RecordBatch) -> None:
        first, n_cells = (int(part.schema.metadata[name]) for name in (FIRST_ROW, N_ROWS))
        known = self._contents.get(worker)
        if known is None or len(known) != n_cells:
            known = self._contents[worker] = np.zeros(n_cells, np.int64)
        known[first : first + part.num_rows] = part.column("bytes").to_numpy()

    def asked(self) -> Controller | None:
        """Return the controller when it has seen something new and may adjust."""
        if self.controller is None or time.monotonic() < self._look_at or not self._cells:
            return None
        self._look_at = time.monotonic() + self._look_s
        cells = {worker: pa.concat_batches(batches) for worker, batches in self._cells.items()}
        busy_s = {number: self._since(WORKER, number, "busy_seconds") for number in range(self._n_workers)}
        n_publications = sum(
            int(self._since(kind, number, "publications"))
            for kind, number in self._measures
            if kind == DISPATCHER
        )
        observed = Observed(n_publications, self.n_updates, cells, busy_s, self._sampled)
        known = self.controller.observe(observed)
        if known is not None:
            self._known.append(known)
        self._cells, self._sampled, self.n_updates = {}, [], 0
        return self.controller if self._began is None else None

    def contents(self, n_cells: int) -> list[Int64s]:
        """Return the bytes in each cell of every worker, as far as it has told since cells are these."""
        nothing = np.zeros(n_cells, np.int64)
        told = [self._contents.get(worker, nothing) for worker in range(self._n_workers)]
        return [each if len(each) == n_cells else nothing for each in told]

    def began(self, record: Adjustment, since: int) -> None:
        """Watch an adjustment until all workers have applied it."""
        self._began = replace(record, pause_s=0.0), since, time.monotonic()

    def completed(self) -> list[Adjustment]:
        """Return adjustments of which more is known now."""
        known, self._known = self._known, []
        return known

    def request_repartition(self) -> None:
        if isinstance(self.controller, LoadController):
            self.controller.request_repartition()

    def _see_migration(self) -> None:
        if self._began is None or self.controller is None:
            return
        record, since, started = self._began
        said = [self._measures.get((WORKER, number)) for number in range(self._n_workers)]
        if all(each is not None and int(each.gauges["position"]) >= since for each in said):
            record = replace(record, migration_s=time.monotonic() - started)
            self.controller.completed(record)
            self._known.append(record)
            self._began = None

    def _since(self, kind: str, number: int, name: str) -> float:
        """Return by how much a counter of a role has risen since it was asked for last.

        Nothing the first time: what it counts may have been before this registrar began.
        """
        measures = self._measures.get((kind, number))
        if measures is None:
            return 0.0
        key = (kind, number, measures.incarnation, name)
        now = measures.counters.get(name, 0.0)
        before, self._counted[key] = self._counted.get(key, now), now
        return now - before
