"""Local adjustment: relieve the busiest worker at the expense of the least busy one (Sec. V-A).

Loads are those of a window. They are moved on paper first, pair by pair, until all workers are
within the target; what comes of it is one new plan and one migration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from ps2stream.arrays import Float64s, Int64s
from ps2stream.balance.halves import divide_terms, merged_load, of_owner
from ps2stream.balance.loads import CellTable
from ps2stream.balance.ownership import Ownership
from ps2stream.balance.selection import MovableCells, Selector
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan, balance_of
from ps2stream.partitioning.sample import Sample

#: A step has to lower the larger load of its pair by this share, or it is not worth its bytes.
_LEAST_GAIN = 0.01


class Evidence(Protocol):
    """Show what is going on in a cell: its recent publications, and its subscriptions by posting term."""

    def __call__(self, cell: int) -> Sample: ...


#: Say how many bytes of subscriptions a worker stores in each cell, whoever owns the cell.
Contents = Callable[[int], Int64s]


class Step(NamedTuple):
    """One decision: ``cells`` (or some of the terms of one) go from one worker to another."""

    phase: Literal["split", "merge", "move"]
    source: int
    destination: int
    cells: tuple[int, ...]
    load: float
    n_bytes: int


@dataclass(frozen=True, slots=True)
class LocalAdjustment:
    """What to do, and the loads of the workers before and, as far as can be told, after."""

    plan: Plan
    cells: Int64s
    steps: tuple[Step, ...]
    before: Float64s
    after: Float64s


def is_unbalanced(periods: Sequence[Float64s], sigma: float) -> bool:
    """Say whether the constraint is violated in each of some periods: a passing peak is no reason to move."""
    return all(balance_of(loads.tolist()) > sigma for loads in periods)


def adjust(
    plan: Plan,
    tables: Sequence[CellTable],
    settings: AdjustmentSettings,
    selector: Selector,
    evidence: Evidence,
    costs: Costs,
    contents: Contents | None = None,
) -> LocalAdjustment | None:
    """Plan an adjustment; None where nothing that can be moved makes a difference."""
    adjusting = _Adjusting(plan, tables, settings, selector, evidence, costs)
    if contents is not None:
        adjusting.know(contents)
    before = adjusting.totals()
    adjusting.run()
    if not adjusting.steps:
        return None
    return LocalAdjustment(
        adjusting.ownership.plan(plan.number + 1),
        adjusting.ownership.changed_cells,
        tuple(adjusting.steps),
        before,
        adjusting.totals(),
    )


class _Adjusting:
    """Loads and owners while they are being changed."""

    def __init__(
        self,
        plan: Plan,
        tables: Sequence[CellTable],
        settings: AdjustmentSettings,
        selector: Selector,
        evidence: Evidence,
        costs: Costs,
    ) -> None:
        self.ownership = Ownership(plan)
        self.steps: list[Step] = []
        self._settings, self._selector = settings, selector
        self._evidence, self._costs = evidence, costs
        n_cells, n_workers = len(plan.h1.cell_owner), plan.n_workers
        self._loads = np.zeros((n_workers, n_cells))
        self._sizes = np.zeros((n_workers, n_cells), np.int64)
        for worker, table in enumerate(tables):
            self._loads[worker, table.cells] = table.loads
            self._sizes[worker, table.cells] = table.sizes

    def know(self, contents: Contents) -> None:
        """Take all that is stored into account, not only what is stored where publications came."""
        for worker in range(len(self._sizes)):
            self._sizes[worker] = contents(worker)

    def totals(self) -> Float64s:
        totals: Float64s = self._loads.sum(axis=1)
        return totals

    def run(self) -> None:
        for _ in range(2 * len(self._loads)):
            totals = self.totals()
            source, destination = int(totals.argmax()), int(totals.argmin())
            if balance_of(totals.tolist()) <= self._settings.target:
                return
            n_before = len(self.steps)
            self._phase_1(source, destination)
            self._phase_2(source, destination)
            if len(self.steps) == n_before and not self._divide_hottest(source, destination):
                return

    def _phase_1(self, source: int, destination: int) -> None:
        """Divide or merge cells where that lowers the load of both workers together."""
        for cell in self._hottest(source):
            if self._is_within_target(source, destination):
                return
            if not self.ownership.is_divided(cell):
                self._divide(cell, source, destination, only_if_total_falls=True)
            elif self._shares(cell, destination):
                self._merge(cell, source, destination)

    def _phase_2(self, source: int, destination: int) -> None:
        """Solve Minimum Cost Migration with the selector (Definition 4)."""
        most, least = self._pair(source, destination)
        target = self._settings.target
        # What brings the two within the target of each other, and what makes them equal.
        wanted, gap = (most - target * least) / (1.0 + target), most - least
        if wanted <= 0.0:
            return
        # The paper sets no upper bound. A cell with more load than lies between the two would only
        # carry the problem over; and a choice that overshoots is made again with smaller cells.
        limit = gap
        while limit > wanted / 1024:
            cells = np.flatnonzero((self._loads[source] > 0.0) & (self._loads[source] < limit))
            cells = self._additive(cells, destination)
            loads, sizes = self._loads[source, cells], self._to_move(cells, source, destination)
            if loads.sum() < _LEAST_GAIN * most:
                return
            chosen = cells[self._selector.select(MovableCells(loads, sizes), wanted)]
            moved = float(self._loads[source, chosen].sum())
            if max(most - moved, least + moved) <= (1.0 - _LEAST_GAIN) * most:
                self._move("move", chosen, source, destination)
                return
            limit /= 2.0

    def _additive(self, cells: Int64s, destination: int) -> Int64s:
        """Leave out the cells whose load would not just be added to the destination's.

        By the paper's load two halves at one worker cost more than apart; :meth:`_merge` looks into that.
        """
        if self._costs.load != "paper":
            return cells
        return np.array([cell for cell in cells.tolist() if not self._shares(cell, destination)], np.int64)

    def _shares(self, cell: int, worker: int) -> bool:
        return self.ownership.is_divided(cell) and worker in self.ownership.owners(cell)

    def _divide_hottest(self, source: int, destination: int) -> bool:
        """Divide a cell that is too busy to be moved; the total may rise by what is sent to both.

        The paper divides only where the total falls. Where all the load of a worker is in one cell
        nothing else would ever relieve it.
        """
        return any(
            not self._shares(cell, destination)
            and self._divide(cell, source, destination, only_if_total_falls=False)
            for cell in self._hottest(source)
        )

    def _divide(self, cell: int, source: int, destination: int, *, only_if_total_falls: bool) -> bool:
        if only_if_total_falls and self._costs.load == "candidates":
            return False  # it never does: the looks stay the same, and some publications go to both
        sample = self._evidence(cell)
        if self.ownership.is_divided(cell):
            sample = of_owner(sample, self.ownership.owners_of(cell, sample.clause_terms), source)
        halves = divide_terms(sample, self._costs)
        if halves is None or (only_if_total_falls and not halves.lowers_total):
            return False
        load, size = self._loads[source, cell], self._sizes[source, cell]
        most, least = self._pair(source, destination)
        after = max(most - load * (1.0 - halves.stays), least + load * halves.goes)
        if after > (1.0 - _LEAST_GAIN) * most:
            return False
        self.ownership.divide(cell, halves.terms, source, destination)
        self._loads[source, cell] = load * halves.stays
        self._sizes[source, cell] = round(size * (1.0 - halves.size))
        self._loads[destination, cell] += load * halves.goes
        self._sizes[destination, cell] += round(size * halves.size)
        self._note("split", [cell], source, destination, load * halves.goes, round(size * halves.size))
        return True

    def _merge(self, cell: int, source: int, destination: int) -> None:
        sample = self._evidence(cell)
        owners = self.ownership.owners_of(cell, sample.clause_terms)
        share = merged_load(sample, owners, source, destination, self._costs)
        if share is None or share >= 1.0:
            return
        load, there = self._loads[source, cell], self._loads[destination, cell]
        most, least = self._pair(source, destination)
        merged = share * (load + there)
        if max(most - load, least - there + merged) > (1.0 - _LEAST_GAIN) * most:
            return
        self._move("merge", np.array([cell]), source, destination)
        self._loads[destination, cell] = merged

    def _move(self, phase: Literal["merge", "move"], cells: Int64s, source: int, destination: int) -> None:
        loads, sizes = self._loads[source, cells], self._to_move(cells, source, destination)
        self.ownership.hand_over(cells, source, destination)
        self._loads[destination, cells] += loads
        self._sizes[destination, cells] += sizes
        self._loads[source, cells] = 0.0
        self._sizes[source, cells] = 0
        self._note(phase, cells.tolist(), source, destination, float(loads.sum()), int(sizes.sum()))

    def _to_move(self, cells: Int64s, source: int, destination: int) -> Int64s:
        """Return the bytes that would have to move with each cell (S_g).

        The paper takes all that is stored in a cell. A subscription that also touches a cell of the
        destination is there already. So cells at its borders are cheap, and moving those keeps
        territories together: fewer subscriptions end up at many workers.
        """
        sizes = self._sizes[source, cells]
        # In a divided cell the two hold different subscriptions.
        shared = np.where(self.ownership.are_divided(cells), 0, self._sizes[destination, cells])
        to_move: Int64s = np.maximum(sizes - shared, 0)
        return to_move

    def _note(
        self,
        phase: Literal["split", "merge", "move"],
        cells: list[int],
        source: int,
        destination: int,
        load: float,
        n_bytes: int,
    ) -> None:
        self.steps.append(Step(phase, source, destination, tuple(cells), float(load), n_bytes))

    def _hottest(self, worker: int) -> list[int]:
        """Return the busiest cells of a worker, busiest first."""
        loads = self._loads[worker]
        n = min(self._settings.hot_cells, int(np.count_nonzero(loads)))
        cells = np.argsort(-loads, kind="stable")[:n]
        return [int(cell) for cell in cells]

    def _pair(self, source: int, destination: int) -> tuple[float, float]:
        return float(self._loads[source].sum()), float(self._loads[destination].sum())

    def _is_within_target(self, source: int, destination: int) -> bool:
        return balance_of(self._pair(source, destination)) <= self._settings.target
