"""A controller that adjusts for no reason: at random batches, in every way there is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ps2stream.adjusting.controller import Adjusted, Observed, relocate, switch, unite
from ps2stream.adjusting.recent_sample import CellEvidence, RecentSample
from ps2stream.adjusting.repartitioning import Considered
from ps2stream.arrays import Int64s
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.loads import CellTable
from ps2stream.balance.local_adjustment import LocalAdjustment, adjust
from ps2stream.balance.ownership import Ownership
from ps2stream.balance.selection import SELECTORS, selector_named
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.partitioning import PARTITIONERS
from ps2stream.partitioning.load import LOAD_FUNCTIONS, STANDARD_COSTS
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import first_plan
from ps2stream.roles.migration import Fetch
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import WorkerHost, fetching


@dataclass(slots=True)
class Chaos:
    """Make up reasons; ``made`` counts what came of them."""

    seed: int
    events: pa.RecordBatch  # to sample new plans from
    share: float = 0.7
    made: dict[str, int] = field(default_factory=dict)
    recent: RecentSample = field(default_factory=RecentSample)
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def observe(self, observed: Observed) -> Adjustment | None:
        self.recent.add(observed.sampled, observed.n_publications, observed.n_updates)
        return None

    def completed(self, record: Adjustment) -> None:
        assert record.migration_s >= 0

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        # The batch decides, not the history: what a killed job would have done, its successor does.
        self.random.seed(self.seed * 100_003 + batch_id)
        if self.random.random() > self.share:
            return None
        ways = [self._hand_over, self._divide, self._select]
        ways += [self._unite] if registrar.routing.older is not None else [self._switch]
        made = self.random.choice(ways)(registrar, fetching(hosts))
        if made is None:
            return None
        kind = made.record.steps[0].phase if made.record.steps else made.record.kind
        self.made[kind] = self.made.get(kind, 0) + 1
        record = replace(made.record, batch_id=batch_id, at="now")
        return made._replace(record=record)

    def _hand_over(self, registrar: Registrar, fetch: Fetch) -> Adjusted | None:
        """Give some cells, or halves of them, to somebody else: moves, and merges of halves."""
        ownership = Ownership(registrar.plan)
        for _ in range(self.random.randint(1, 4)):
            cells = self._cells(registrar.plan, self.random.choice([1, 10, 1000]))
            owners = sorted(ownership.owners(int(cells[0])))
            ownership.hand_over(cells, self.random.choice(owners), self._worker(registrar.plan))
        return self._relocate(ownership, registrar, fetch)

    def _divide(self, registrar: Registrar, fetch: Fetch) -> Adjusted | None:
        """Divide cells by some of the terms that subscriptions are posted under."""
        ownership = Ownership(registrar.plan)
        postings = registrar.registry.postings(registrar.registry.live_versions())
        terms = np.unique(postings.terms)
        for cell in self._cells(registrar.plan, self.random.choice([1, 30])).tolist():
            chosen = terms[[self.random.random() < 0.5 for _ in terms]]
            source = self.random.choice(sorted(ownership.owners(cell)))
            ownership.divide(cell, chosen, source, self._worker(registrar.plan))
        return self._relocate(ownership, registrar, fetch)

    def _select(self, registrar: Registrar, fetch: Fetch) -> Adjusted | None:
        """Let the real algorithm relieve workers whose loads are made up."""
        plan = registrar.plan
        rng = np.random.default_rng(self.random.getrandbits(32))
        name = self.random.choice(list(SELECTORS))
        tables, ownership = [], Ownership(plan)
        some = range(0, plan.grid.n_cells, 397)
        owners = [ownership.owners(cell) for cell in some]
        for worker in range(plan.n_workers):
            cells = np.array(
                [cell for cell, each in zip(some, owners, strict=True) if worker in each], np.int64
            )
            loads = rng.lognormal(0, 2, len(cells)) * rng.choice([0.1, 10])
            none = np.zeros(len(cells), np.int64)
            sizes = rng.integers(0, 5000, len(cells))
            tables.append(CellTable(cells, loads, sizes, none, none, none, none.astype(float)))
        planned = adjust(
            plan,
            tables,
            AdjustmentSettings(selector=name, sigma=1.01, target=1.0),
            selector_named(name),
            CellEvidence(self.recent, registrar, 0),
            replace(STANDARD_COSTS, load=self.random.choice(LOAD_FUNCTIONS)),
        )
        return relocate(planned, registrar, fetch, "chaos", name, 0.0) if planned else None

    def _switch(self, registrar: Registrar, fetch: Fetch) -> Adjusted:
        settings = Settings(
            n_workers=registrar.plan.n_workers,
            partitioner=self.random.choice(list(PARTITIONERS)),
            sample_events=self.random.choice([2, 100]),
            sample_seed=self.random.randint(0, 9),
        )
        nothing = np.zeros(registrar.plan.n_workers)
        return switch(Considered(first_plan(self.events, settings), nothing, nothing), registrar, "chaos")

    def _unite(self, registrar: Registrar, fetch: Fetch) -> Adjusted:
        return unite(registrar, fetch, "chaos", ())

    def _relocate(self, ownership: Ownership, registrar: Registrar, fetch: Fetch) -> Adjusted:
        plan = ownership.plan(registrar.plan.number + 1)
        loads = np.zeros(plan.n_workers)
        planned = LocalAdjustment(plan, ownership.changed_cells, (), loads, loads)
        return relocate(planned, registrar, fetch, "chaos", "", 0.0)

    def _cells(self, plan: Plan, n: int) -> Int64s:
        first = self.random.randrange(plan.grid.n_cells)
        return np.unique((first + np.arange(n) * self.random.randint(1, 300)) % plan.grid.n_cells)

    def _worker(self, plan: Plan) -> int:
        return self.random.randrange(plan.n_workers)
