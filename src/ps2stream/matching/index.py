"""GI2, the worker's index (Sec. IV-D): a thin class around the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import HeapStorage, Int64s, MappedStorage, Storage, create_struct, n_bytes, open_struct
from ps2stream.matching.insert import end, insert, refill_map, rehash_lists
from ps2stream.matching.layout import (
    DTYPES,
    LEVELS,
    N_CLAUSES,
    N_ENDED,
    N_LISTS,
    N_SUBS,
    N_TERMS,
    Found,
    GI2Arrays,
    Probes,
    Subscriptions,
    initial_sizes,
    needed_sizes,
)
from ps2stream.matching.probe import live_rows, probe
from ps2stream.model.space import Grid


@dataclass(frozen=True, slots=True)
class GI2Settings:
    """The two grids of an index and how many cells a subscription may be posted in.

    ``counters`` is the grid^t grid: loads are counted in its cells, because they are what
    load adjustment moves. The default of ``max_cells`` is measured (docs/performance.md).
    """

    grid: Grid
    counters: Grid
    max_cells: int = 16


@dataclass(frozen=True, slots=True)
class GI2Counts:
    """The size of an index and the work it has done."""

    n_subscriptions: int
    n_ended: int
    n_postings: int
    n_lists: int
    n_bytes: int
    n_publications: int
    n_candidates: int
    n_matches: int


class GI2:
    """Match publications with stored subscriptions; one writer at a time."""

    def __init__(self, settings: GI2Settings, storage: Storage, arrays: GI2Arrays) -> None:
        self.settings = settings
        self._storage = storage
        self._arrays = arrays
        self._found = Found(np.empty(4096, np.int64), np.empty(4096, np.int64))

    @classmethod
    def create(cls, settings: GI2Settings, storage: Storage | None = None, n_subs: int = 1024) -> GI2:
        """Make an empty index with room for about ``n_subs`` subscriptions."""
        storage = storage or HeapStorage()
        sizes = initial_sizes(n_subs, settings.counters.n_cells)
        return cls(settings, storage, create_struct(GI2Arrays, DTYPES, sizes, storage))

    @classmethod
    def open(cls, settings: GI2Settings, storage: MappedStorage) -> GI2:
        """Map an index that another process made; the caller holds its lock."""
        n_cells = settings.counters.n_cells
        arrays = open_struct(GI2Arrays, DTYPES, storage, lambda struct: needed_sizes(struct, n_cells), shared=True)
        return cls(settings, storage, arrays)

    def insert(self, subs: Subscriptions, rows: Int64s | None = None) -> None:
        """Store subscriptions (all, or some rows of them); one that is stored already stays as it is."""
        rows = np.arange(len(subs.seq_from)) if rows is None else rows
        if not len(rows):
            return
        self._reserve(subs, rows)
        position = 0
        grids = (self.settings.grid, self.settings.counters)
        while True:
            position = insert(self._arrays, grids, self.settings.max_cells, subs, rows, position)
            if position == len(rows):
                return
            self._make_room_for_postings()

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        """End subscriptions; return how many of them are stored here."""
        return end(self._arrays, self.settings.counters, seq_from, seq_to)

    def probe(self, probes: Probes, horizon: int) -> Found:
        """Return all matches; the arrays belong to the caller.

        ``horizon``: subscriptions that ended at or before this seq are forgotten for good.
        """
        parts: list[Found] = []
        grids = (self.settings.grid, self.settings.counters)
        row = 0
        while True:
            row, n = probe(self._arrays, grids, probes, row, horizon, self._found)
            parts.append(Found(*(column[:n].copy() for column in self._found)))
            if row == len(probes.seq):
                return Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
            if n == 0:  # one publication has more matches than fit
                size = 2 * len(self._found.publication)
                self._found = Found(np.empty(size, np.int64), np.empty(size, np.int64))

    def should_compact(self) -> bool:
        """Say whether what is dead outweighs half of what lives."""
        counts = self.counts()
        return counts.n_ended > max(1024, counts.n_subscriptions // 2)

    def compacted(self, horizon: int, storage: Storage | None = None) -> GI2:
        """Build an index of what can still match, with the same counters of work."""
        old = self._arrays
        n_subs = int(old.head[N_SUBS])
        rows = np.empty(n_subs, np.int64)
        rows = rows[: live_rows(old, n_subs, horizon, rows)]
        new = GI2.create(self.settings, storage, max(1024, len(rows)))
        ended = self._stored(n_subs)
        new.insert(ended, rows)
        new._arrays.head[N_ENDED] = np.count_nonzero(ended.seq_to[rows] != np.iinfo(np.int64).max)
        for name in ("cell_publications", "cell_candidates", "cell_matches", "cell_subscriptions", "cell_bytes"):
            getattr(new._arrays, name)[:] = getattr(old, name)
        return new

    def moved(self, storage: Storage) -> GI2:
        """Return the same index with its storage under another name."""
        return GI2(self.settings, storage, self._arrays)

    def counts(self) -> GI2Counts:
        arrays, head = self._arrays, self._arrays.head
        return GI2Counts(
            n_subscriptions=int(head[N_SUBS] - head[N_ENDED]),
            n_ended=int(head[N_ENDED]),
            n_postings=int(arrays.list_length.sum()),
            n_lists=int(head[N_LISTS]),
            n_bytes=n_bytes(arrays),
            n_publications=int(arrays.cell_publications.sum()),
            n_candidates=int(arrays.cell_candidates.sum()),
            n_matches=int(arrays.cell_matches.sum()),
        )

    def cell_counters(self) -> dict[str, Int64s]:
        """Copy the counters of every grid^t cell: publications, candidates, matches, subscriptions, bytes."""
        names = [name for name in GI2Arrays._fields if name.startswith("cell_")]
        return {name.removeprefix("cell_"): getattr(self._arrays, name).copy() for name in names}

    def levels_in_use(self) -> list[int]:
        levels = self._arrays.head[LEVELS : LEVELS + self.settings.grid.bits + 1]
        return [int(level) for level in np.flatnonzero(levels)]

    def _reserve(self, subs: Subscriptions, rows: Int64s) -> None:
        """Make room for everything but postings and lists, whose number is not known yet."""
        head = self._arrays.head
        n_subs = int(head[N_SUBS]) + len(rows)
        clauses = subs.clause_offsets
        n_clauses = int(head[N_CLAUSES] + (clauses[rows + 1] - clauses[rows]).sum())
        n_terms = subs.term_offsets[clauses[rows + 1]] - subs.term_offsets[clauses[rows]]
        self._grow("sub_seq_from", n_subs)
        self._grow("sub_seq_to", n_subs)
        self._grow("sub_bounds", 4 * n_subs)
        self._grow("sub_first_clause", n_subs + 1)
        self._grow("clause_sub", n_clauses)
        self._grow("clause_first_term", n_clauses + 1)
        self._grow("terms", int(head[N_TERMS] + n_terms.sum()))
        if 10 * n_subs > 7 * len(self._arrays.map_seq):
            size = 1 << int(2 * n_subs).bit_length()
            self._arrays = self._arrays._replace(
                map_seq=self._storage.create("map_seq", np.int64, size),
                map_slot=self._storage.create("map_slot", np.uint32, size),
            )
            refill_map(self._arrays)

    def _make_room_for_postings(self) -> None:
        arrays = self._arrays
        if 10 * (arrays.head[N_LISTS] + 1) > 7 * len(arrays.list_key):
            size = 2 * len(arrays.list_key)
            names = ("list_key", "list_start", "list_length")
            table = {name: self._storage.create(name, DTYPES[name], size) for name in names}
            rehash_lists(arrays, *table.values())
            self._arrays = arrays._replace(**table)
        else:
            # The largest list may need to move to twice its room, whatever the pool's size.
            longest = int(arrays.list_length.max())
            self._grow("postings", len(arrays.postings) + 4 * longest + 2)

    def _grow(self, name: str, size: int) -> None:
        """Make an array at least ``size`` long, by half more than it was to keep growth rare."""
        array = getattr(self._arrays, name)
        if size > len(array):
            longer = self._storage.grow(name, array, max(size, len(array) + len(array) // 2))
            self._arrays = self._arrays._replace(**{name: longer})

    def _stored(self, n_subs: int) -> Subscriptions:
        """View what is stored as input for another index."""
        arrays = self._arrays
        n_clauses = int(arrays.head[N_CLAUSES])
        return Subscriptions(
            seq_from=arrays.sub_seq_from[:n_subs],
            seq_to=arrays.sub_seq_to[:n_subs],
            bounds=arrays.sub_bounds[: 4 * n_subs],
            clause_offsets=arrays.sub_first_clause[: n_subs + 1].astype(np.int64),
            term_offsets=arrays.clause_first_term[: n_clauses + 1].astype(np.int64),
            terms=arrays.terms[: int(arrays.head[N_TERMS])],
        )
