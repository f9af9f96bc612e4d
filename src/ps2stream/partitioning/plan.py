"""The plan: which worker owns which (cell, term). Immutable and numbered.

A partitioner turns a sample of the stream into a plan; grid^t routes by it. Everything that
decides where a subscription goes is in the plan (grid, owners, term frequencies), so inserts
and deletes of one subscription always go the same way.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.errors import StateError
from ps2stream.files import AnyPath, absolute, whole_file
from ps2stream.kernels import kernel, signed
from ps2stream.model.space import Grid
from ps2stream.partitioning.kdt_tree import KdtTree
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.sample import Sample
from ps2stream.text.frequencies import Frequencies, no_frequencies

#: What reading arrays from a damaged file may end in, besides zip's own error.
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError)


_NOT_RENAMED = np.empty(0, np.int32)
_NO_RENAMES = np.empty((0, 0), np.int32)


class H1(NamedTuple):
    """Owners of cells and terms: the paper's H1 for all cells at once (Sec. IV-C).

    ``cell_owner[cell]`` is a worker, or ``-1 - t`` where text table ``t`` decides: the worker
    of the term in it, and for terms it does not hold a stable hash over its default workers.
    Numbers beyond the tables stand for tables that name other workers for some: what load adjustment
    leaves behind when it moves a cell. A whole table each would soon be more than all subscriptions.
    """

    cell_owner: Int32s
    table_offsets: Int64s
    table_terms: UInt64s  # ascending within a table
    table_workers: Int32s
    default_offsets: Int64s
    default_workers: Int32s
    renamed_tables: Int32s = _NOT_RENAMED
    renames: Int32s = _NO_RENAMES  # a row a renamed table: worker in the table -> worker


@kernel
def owner(h1: H1, cell: int, term: np.uint64) -> int:
    """Return the worker that owns a term in a cell."""
    table = h1.cell_owner[cell]
    if table >= 0:
        return signed(table)
    table = -1 - table
    renamed = table - (len(h1.table_offsets) - 1)
    if renamed >= 0:
        table = h1.renamed_tables[renamed]
    worker = _listed(h1, table, term)
    return signed(h1.renames[renamed, worker]) if renamed >= 0 else worker


@kernel
def _listed(h1: H1, table: int, term: np.uint64) -> int:
    """Return the worker of a term in a table."""
    low, stop = h1.table_offsets[table], h1.table_offsets[table + 1]
    slot = find_term(h1.table_terms, low, stop, term)
    if slot < stop and h1.table_terms[slot] == term:
        return signed(h1.table_workers[slot])
    first, last = h1.default_offsets[table], h1.default_offsets[table + 1]
    return signed(h1.default_workers[default_slot(term, first, last)])


@kernel
def find_term(terms: UInt64s, low: int, high: int, term: np.uint64) -> int:
    """Return the first position between two others, the latter left out, where a term is not above."""
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def default_slot(term: np.uint64, first: int, stop: int) -> int:
    """Pick one of some default workers for a term that a table does not hold."""
    # The low bits of a hash pick its slot in tables; the high ones decide here.
    return first + signed((term >> np.uint64(32)) % np.uint64(stop - first))


def workers_of(h1: H1, table: int) -> Int64s:
    """Return the workers that share the terms of a table, or of a renamed one."""
    renamed = table - (len(h1.table_offsets) - 1)
    if renamed >= 0:
        return np.unique(h1.renames[renamed][workers_of(h1, int(h1.renamed_tables[renamed]))]).astype(
            np.int64
        )
    terms = h1.table_workers[h1.table_offsets[table] : h1.table_offsets[table + 1]]
    others = h1.default_workers[h1.default_offsets[table] : h1.default_offsets[table + 1]]
    return np.unique(np.concatenate([terms, others])).astype(np.int64)


def owners_of_terms(n_cells: int, terms: UInt64s, workers: Int32s, n_workers: int) -> H1:
    """Build an H1 that divides terms only, in the same way everywhere; ``terms`` are ascending."""
    return H1(
        np.full(n_cells, -1, np.int32),
        np.array([0, len(terms)], np.int64),
        terms.astype(np.uint64),
        workers.astype(np.int32),
        np.array([0, n_workers], np.int64),
        np.arange(n_workers, dtype=np.int32),
    )


def owners_of_cells(cell_owner: Int32s) -> H1:
    """Build an H1 that divides space only."""
    none = np.zeros(1, np.int64)
    return H1(
        cell_owner.astype(np.int32),
        none,
        np.empty(0, np.uint64),
        np.empty(0, np.int32),
        none.copy(),
        np.empty(0, np.int32),
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a partitioner expected of its plan: the load of each worker, and the bound it aimed at."""

    loads: tuple[float, ...]
    costs: Costs
    sigma: float

    @property
    def balance(self) -> float:
        """Return L_max / L_min; infinite where a worker has nothing to do."""
        return balance_of(self.loads)

    @property
    def keeps_sigma(self) -> bool:
        return self.balance <= self.sigma


def balance_of(loads: Sequence[float]) -> float:
    """Return the largest load over the smallest: 1 where all are nothing, infinite where one is."""
    if max(loads) == 0:
        return 1.0
    return float(max(loads) / min(loads)) if min(loads) > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Plan:
    """Who owns what; ``tree`` and ``estimate`` say how a partitioner came to it."""

    number: int
    partitioner: str
    n_workers: int
    grid: Grid
    h1: H1
    frequencies: Frequencies = field(default_factory=no_frequencies)
    estimate: Estimate | None = None
    tree: KdtTree | None = None

    def owner(self, lon: float, lat: float, term: int) -> int:
        """Return the worker that owns a term at a point."""
        return int(owner(self.h1, self.grid.cell(lon, lat), np.uint64(term)))

    def save(self, path: AnyPath) -> None:
        """Write the plan so that a crash leaves the old file or the new one."""
        with whole_file(absolute(path)) as file:
            self.write(file)

    def write(self, file: BinaryIO) -> None:
        """Write the plan to an open file; the same plan gives the same bytes."""
        about = {
            "number": self.number,
            "partitioner": self.partitioner,
            "n_workers": self.n_workers,
            "grid": self.grid._asdict(),
            "estimate": asdict(self.estimate) if self.estimate else None,
            "tree": self.tree.as_dict() if self.tree else None,
        }
        arrays = {**self.h1._asdict(), **self.frequencies._asdict()}
        np.savez(file, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: AnyPath) -> Plan:
        path = absolute(path)
        try:
            with path.open("rb") as file:
                return cls.read(file, str(path))
        except OSError as error:
            raise StateError(f"plan {path} cannot be read: {error}") from error

    @classmethod
    def read(cls, data: BinaryIO, where: str) -> Plan:
        """Read a plan from an open file; errors say where it is."""
        try:
            with np.load(data, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                estimate, tree = about["estimate"], about["tree"]
                plan = cls(
                    about["number"],
                    about["partitioner"],
                    int(about["n_workers"]),
                    Grid(**about["grid"]),
                    H1(*(file[name] for name in H1._fields)),
                    Frequencies(*(file[name] for name in Frequencies._fields)),
                    _estimate_of(estimate) if estimate else None,
                    KdtTree.from_dict(tree) if tree else None,
                )
            _check(plan)
        except (*_UNREADABLE, zipfile.BadZipFile) as error:
            # numpy takes what is no zip file for a pickle, and advises to trust it.
            reason = "it is not a plan" if "pickle" in str(error) else error
            raise StateError(f"plan {where} cannot be read: {reason}") from error
        return plan


def _check(plan: Plan) -> None:
    """Refuse a plan whose parts do not fit each other: kernels check nothing and would read beyond arrays."""
    h1, n = plan.h1, plan.n_workers
    n_tables = len(h1.table_offsets) - 1
    n_renamed = len(h1.renamed_tables)
    owners = np.concatenate(
        [h1.table_workers, h1.default_workers, h1.renames.reshape(-1), h1.cell_owner[h1.cell_owner >= 0]]
    )
    fits = {
        "n_workers": n > 0,
        "cell_owner": len(h1.cell_owner) == plan.grid.n_cells
        and h1.cell_owner.min(initial=0) >= -n_tables - n_renamed,
        "renames": h1.renames.shape == (n_renamed, n if n_renamed else h1.renames.shape[1])
        and bool(((h1.renamed_tables >= 0) & (h1.renamed_tables < n_tables)).all()),
        "workers": bool(((owners >= 0) & (owners < n)).all()),
        "table_offsets": _are_offsets(h1.table_offsets, len(h1.table_terms)),
        "table_workers": len(h1.table_workers) == len(h1.table_terms),
        "default_offsets": _are_offsets(h1.default_offsets, len(h1.default_workers))
        and len(h1.default_offsets) == len(h1.table_offsets)
        and bool(np.all(np.diff(h1.default_offsets) > 0)),
        "frequencies": len(plan.frequencies.terms) == len(plan.frequencies.counts),
    }
    for name, is_fit in fits.items():
        if not is_fit:
            raise ValueError(f"its {name} do not fit the rest of it")


def _are_offsets(offsets: Int64s, n: int) -> bool:
    return len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == n and bool(np.all(np.diff(offsets) >= 0))


def _estimate_of(values: dict[str, Any]) -> Estimate:
    return Estimate(tuple(values["loads"]), Costs(**values["costs"]), values["sigma"])


class Partitioner(Protocol):
    """Turn a sample into a plan; the same sample, costs and seed give the same plan."""

    name: str

    def __init__(self, costs: Costs) -> None: ...

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan: ...
