"""Change who owns what: H1 as something that can be edited, and a plan made of the result (Sec. V-A)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.partitioning.plan import H1, Plan, owner


class _Table(NamedTuple):
    """A text table: terms ascending with their workers, and the workers of all other terms."""

    terms: UInt64s
    workers: Int32s
    defaults: Int32s


class _Entry(NamedTuple):
    """What decides in a divided cell: a table, and who stands in for each of its workers."""

    table: int
    stand_ins: tuple[int, ...]


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
        self._themselves = tuple(range(plan.n_workers))
        self._entries = [_Entry(table, self._themselves) for table in range(len(self._tables))]
        self._entries += [
            _Entry(int(table), tuple(row.tolist()))
            for table, row in zip(h1.renamed_tables, h1.renames, strict=True)
        ]
        self._number_of = {entry: number for number, entry in enumerate(self._entries)}
        self._members: dict[int, set[int]] = {}
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
        return {at} if at >= 0 else self._owners(self._entries[-1 - at])

    def hand_over(self, cells: Int64s, source: int, destination: int) -> None:
        """Give all that a worker owns in some cells to another."""
        for cell in cells.tolist():
            at = int(self._cell_owner[cell])
            if at == source:
                self._cell_owner[cell] = destination
            elif at < 0:
                table, stand_ins = self._entries[-1 - at]
                renamed = tuple(destination if worker == source else worker for worker in stand_ins)
                self._cell_owner[cell] = self._entered(_Entry(table, renamed))
        self._changed[cells] = True

    def divide(self, cell: int, terms: UInt64s, source: int, destination: int) -> None:
        """Give some terms that a worker owns in a cell to another; all others stay with it."""
        at = int(self._cell_owner[cell])
        if at >= 0:
            table = _Table(terms[:0], np.empty(0, np.int32), np.array([at], np.int32))
        else:
            number, stand_ins = self._entries[-1 - at]
            others = np.array(stand_ins, np.int32)
            table = self._tables[number]
            table = _Table(table.terms, others[table.workers], others[table.defaults])
        going = terms[self.owners_of(cell, terms) == source]
        # Of a term that is named twice the first one stays: the one that goes.
        merged, first = np.unique(np.concatenate([going, table.terms]), return_index=True)
        workers = np.concatenate([np.full(len(going), destination, np.int32), table.workers])[first]
        self._tables.append(_Table(merged, workers, table.defaults))
        self._cell_owner[cell] = self._entered(_Entry(len(self._tables) - 1, self._themselves))
        self._changed[cell] = True

    def owners_of(self, cell: int, terms: UInt64s) -> Int32s:
        """Return the owner of each of some terms in a cell."""
        owners = np.empty(len(terms), np.int32)
        _owners_of(self.h1(), cell, terms, owners)
        return owners

    def plan(self, number: int) -> Plan:
        """Make a plan of the owners as they are now; what it was grown as and expected to do is the past."""
        return replace(self._plan, number=number, h1=self.h1(), estimate=None, tree=None)

    def h1(self) -> H1:
        """Lay the tables that are still in use out flat."""
        is_divided = self._cell_owner < 0
        used, rows = np.unique(-1 - self._cell_owner[is_divided], return_inverse=True)
        entries = [self._entries[number] for number in used.tolist()]
        numbers = {table: i for i, table in enumerate(sorted({entry.table for entry in entries}))}
        renamed = [entry for entry in entries if entry.stand_ins != self._themselves]
        positions = {entry: len(numbers) + i for i, entry in enumerate(renamed)}
        entered = [positions.get(entry, numbers[entry.table]) for entry in entries]
        cell_owner = self._cell_owner.copy()
        cell_owner[is_divided] = -1 - np.array(entered, np.int32)[rows]
        tables = [self._tables[table] for table in numbers]
        return H1(
            cell_owner,
            np.cumsum([0, *(len(table.terms) for table in tables)], dtype=np.int64),
            np.concatenate([np.empty(0, np.uint64), *(table.terms for table in tables)]),
            np.concatenate([np.empty(0, np.int32), *(table.workers for table in tables)]),
            np.cumsum([0, *(len(table.defaults) for table in tables)], dtype=np.int64),
            np.concatenate([np.empty(0, np.int32), *(table.defaults for table in tables)]),
            np.array([numbers[entry.table] for entry in renamed], np.int32),
            np.array([entry.stand_ins for entry in renamed], np.int32).reshape(-1, self._plan.n_workers),
        )

    def _entered(self, entry: _Entry) -> int:
        """Return what a cell says that an entry decides in; the worker itself where only one is left."""
        owners = self._owners(entry)
        if len(owners) == 1:  # the halves have come together again
            return next(iter(owners))
        if entry not in self._number_of:
            self._number_of[entry] = len(self._entries)
            self._entries.append(entry)
        return -1 - self._number_of[entry]

    def _owners(self, entry: _Entry) -> set[int]:
        if entry.table not in self._members:
            table = self._tables[entry.table]
            self._members[entry.table] = {*np.unique(table.workers).tolist(), *table.defaults.tolist()}
        return {entry.stand_ins[worker] for worker in self._members[entry.table]}


@kernel
def _owners_of(h1: H1, cell: int, terms: UInt64s, owners: Int32s) -> None:
    for i in range(len(terms)):
        owners[i] = owner(h1, cell, terms[i])
