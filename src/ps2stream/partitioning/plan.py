"""The plan: which worker owns which (cell, term). Immutable and numbered.

A partitioner turns a sample of the stream into a plan; grid^t routes by it. Everything that
decides where a subscription goes is in the plan (grid, owners, term frequencies), so inserts
and deletes of one subscription always go the same way.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s, Ragged, UInt64s
from ps2stream.errors import StateError
from ps2stream.files import whole_file
from ps2stream.kernels import kernel, signed
from ps2stream.model.space import Grid
from ps2stream.text.frequencies import Frequencies, no_frequencies

#: What reading arrays from a damaged file may end in, besides zip's own error.
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError)


class H1(NamedTuple):
    """Owners of cells and terms: the paper's H1 for all cells at once (Sec. IV-C).

    ``cell_owner[cell]`` is a worker, or ``-1 - t`` where text table ``t`` decides: the worker
    of the term in it, and for terms it does not hold a stable hash over its default workers.
    """

    cell_owner: Int32s
    table_offsets: Int64s
    table_terms: UInt64s  # ascending within a table
    table_workers: Int32s
    default_offsets: Int64s
    default_workers: Int32s


@kernel
def owner(h1: H1, cell: int, term: np.uint64) -> int:
    """Return the worker that owns a term in a cell."""
    table = h1.cell_owner[cell]
    if table >= 0:
        return signed(table)
    table = -1 - table
    low, stop = h1.table_offsets[table], h1.table_offsets[table + 1]
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if h1.table_terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    if low < stop and h1.table_terms[low] == term:
        return signed(h1.table_workers[low])
    first = h1.default_offsets[table]
    n = np.uint64(h1.default_offsets[table + 1] - first)
    # The low bits of a hash pick its place in tables; the high ones decide here.
    return signed(h1.default_workers[first + signed((term >> np.uint64(32)) % n)])


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
class Plan:
    """One version of the routing."""

    version: int
    partitioner: str
    n_workers: int
    grid: Grid
    h1: H1
    frequencies: Frequencies = field(default_factory=no_frequencies)

    def owner(self, lon: float, lat: float, term: int) -> int:
        """Return the worker that owns a term at a point."""
        return int(owner(self.h1, self.grid.cell(lon, lat), np.uint64(term)))

    def save(self, path: Path) -> None:
        """Write the plan so that a crash leaves the old file or the new one."""
        about = {
            "version": self.version,
            "partitioner": self.partitioner,
            "n_workers": self.n_workers,
            "grid": self.grid._asdict(),
        }
        arrays = {**self.h1._asdict(), **self.frequencies._asdict()}
        with whole_file(path) as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: Path) -> Plan:
        try:
            with path.open("rb") as data, np.load(data, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                return cls(
                    about["version"],
                    about["partitioner"],
                    about["n_workers"],
                    Grid(**about["grid"]),
                    H1(*(file[name] for name in H1._fields)),
                    Frequencies(*(file[name] for name in Frequencies._fields)),
                )
        except (*_UNREADABLE, zipfile.BadZipFile) as error:
            raise StateError(f"plan {path} cannot be read: {error}") from error


class Sample(NamedTuple):
    """What a plan is built from: some publications and some subscriptions of the stream."""

    lon: Float64s
    lat: Float64s
    terms: Ragged
    bounds: Float64s  # four a subscription
    clause_offsets: Int64s
    term_offsets: Int64s
    clause_terms: UInt64s

    @property
    def n_publications(self) -> int:
        return len(self.lon)

    @property
    def n_subscriptions(self) -> int:
        return len(self.bounds) // 4


class Partitioner(Protocol):
    """Turn a sample into a plan; the same sample and seed give the same plan."""

    name: str

    def plan(self, sample: Sample, n_workers: int, *, version: int = 1, seed: int = 0) -> Plan: ...
