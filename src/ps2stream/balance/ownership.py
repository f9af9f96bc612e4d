"""Change who owns what: H1 as something that can be edited, and a plan made of the result (Sec. V-A)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.partitioning.plan import H1, Plan, owner


class _Table:
    """A text table: terms ascending with their workers, and the workers of all other terms."""

    __slots__ = ("defaults", "terms", "workers")

    def __init__(self, terms: UInt64s, workers: Int32s, defaults: Int32s) -> None:
        self.terms, self.workers, self.defaults = terms, workers, defaults


class Ownership:
    """Edit the owners of a plan cell by cell."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        h1 = plan.h1
        self._cell_owner = h1.cell_owner.copy()
        self._tables = [
            _Table(
                h1.table_terms[h1.table_offsets[i] : h1.table_offsets[i + 1]],
                h1.table_workers[h1.table_offsets[i] : h1.table_offsets[i + 1]],
                h1.default_workers[h1.default_offsets[i] : h1.default_offsets[i + 1]],
            )
            for i in range(len(h1.table_offsets) - 1)
        ]
        self._renamed: dict[tuple[int, int, int], int] = {}
        self._changed = np.zeros(len(self._cell_owner), np.bool_)

    @property
    def changed_cells(self) -> Int64s:
        return np.flatnonzero(self._changed)

    def is_divided(self, cell: int) -> bool:
        """Say whether the terms of a cell have several owners."""
        return bool(self._cell_owner[cell] < 0)

    def are_divided(self, cells: Int64s) -> npt.NDArray[np.bool_]:
        divided: npt.NDArray[np.bool_] = self._cell_owner[cells] < 0
        return divided

    def owners(self, cell: int) -> set[int]:
        """Return the workers that own something in a cell."""
        at = int(self._cell_owner[cell])
        if at >= 0:
            return {at}
        table = self._tables[-1 - at]
        return {*np.unique(table.workers).tolist(), *table.defaults.tolist()}

    def hand_over(self, cells: Int64s, source: int, destination: int) -> None:
        """Give all that a worker owns in some cells to another."""
        for cell in cells.tolist():
            at = int(self._cell_owner[cell])
            if at == source:
                self._cell_owner[cell] = destination
            elif at < 0:
                self._cell_owner[cell] = self._rename(-1 - at, source, destination)
        self._changed[cells] = True

    def divide(self, cell: int, terms: UInt64s, destination: int) -> None:
        """Give some terms of a cell that one worker owns to another; all others stay with it."""
        source = int(self._cell_owner[cell])
        workers = np.full(len(terms), destination, np.int32)
        self._tables.append(_Table(np.sort(terms), workers, np.array([source], np.int32)))
        self._cell_owner[cell] = -len(self._tables)
        self._changed[cell] = True

    def owners_of(self, cell: int, terms: UInt64s) -> Int32s:
        """Return the owner of each of some terms in a cell."""
        owners = np.empty(len(terms), np.int32)
        _owners_of(self.h1(), cell, terms, owners)
        return owners

    def plan(self, version: int) -> Plan:
        """Make a plan of the owners as they are now; what it was grown as and expected to do is the past."""
        return replace(self._plan, version=version, h1=self.h1(), estimate=None, tree=None)

    def h1(self) -> H1:
        """Lay the tables that are still in use out flat."""
        is_divided = self._cell_owner < 0
        used, numbers = np.unique(-1 - self._cell_owner[is_divided], return_inverse=True)
        cell_owner = self._cell_owner.copy()
        cell_owner[is_divided] = -1 - numbers
        tables = [self._tables[number] for number in used.tolist()]
        return H1(
            cell_owner,
            np.cumsum([0, *(len(table.terms) for table in tables)], dtype=np.int64),
            np.concatenate([np.empty(0, np.uint64), *(table.terms for table in tables)]),
            np.concatenate([np.empty(0, np.int32), *(table.workers for table in tables)]),
            np.cumsum([0, *(len(table.defaults) for table in tables)], dtype=np.int64),
            np.concatenate([np.empty(0, np.int32), *(table.defaults for table in tables)]),
        )

    def _rename(self, number: int, source: int, destination: int) -> int:
        """Return the entry of a cell for a table with another worker in it, which its cells share."""
        key = (number, source, destination)
        if key not in self._renamed:
            table = self._tables[number]
            workers = np.where(table.workers == source, destination, table.workers).astype(np.int32)
            defaults = np.where(table.defaults == source, destination, table.defaults).astype(np.int32)
            everyone = np.unique(np.concatenate([workers, defaults]))
            if len(everyone) == 1:  # the halves have come together again
                self._renamed[key] = int(everyone[0])
            else:
                self._tables.append(_Table(table.terms, workers, defaults))
                self._renamed[key] = -len(self._tables)
        return self._renamed[key]


@kernel
def _owners_of(h1: H1, cell: int, terms: UInt64s, owners: Int32s) -> None:
    for i in range(len(terms)):
        owners[i] = owner(h1, cell, terms[i])
