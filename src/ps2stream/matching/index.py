"""GI2, the worker's index (Sec. IV-D): a thin class around the kernels."""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Self

import numpy as np

from ps2stream.arrays import (
    Flags,
    HeapStorage,
    Int64s,
    MappedStorage,
    Storage,
    create_struct,
    open_struct,
)
from ps2stream.errors import StateError
from ps2stream.matching.contract import (
    CELL_COUNTERS,
    Found,
    IndexCounts,
    IndexSettings,
    Probes,
    Subscriptions,
    joined,
)
from ps2stream.matching.copying import at_once, copied, take_counters
from ps2stream.matching.insert import NOT_BEGUN, drop, end, insert, recount_cells, sum_cells
from ps2stream.matching.layout import (
    DTYPES,
    FINER_LEVELS,
    IS_TABLE_FULL,
    LEVELS,
    MAP_SIZE,
    N_CANDIDATES,
    N_ENDED,
    N_ENDS,
    N_LISTS,
    N_MATCHES,
    N_POSTINGS,
    N_PUBLICATIONS,
    N_RECORDS,
    N_WORDS,
    TABLE_SIZE,
    GI2Arrays,
    initial_sizes,
    needed_sizes,
)
from ps2stream.matching.lists import move_lists
from ps2stream.matching.probe import probe
from ps2stream.matching.records import n_words_of, needed_for, unpack, views_of
from ps2stream.matching.seq_map import are_there, find_records, is_map_full, map_size, refill_seq_map
from ps2stream.model.space import Grid

#: Capacity for matches grows up to this many.
_MATCHES_AT_ONCE = 1 << 17
#: The least that the postings of a small index grow by.
_MORE_POSTINGS = 64
#: Positions have 32 bits in postings, lists and the map of seqs.
_MOST_POSITIONS = (1 << 32) - 1

#: More than an index has of anything.
_ALL = 1 << 62

_COUNTED_AT_CORNERS = ("subscriptions", "bytes")


class GI2:
    """Match publications with stored subscriptions; one writer at a time."""

    def __init__(self, settings: IndexSettings, storage: Storage, arrays: GI2Arrays) -> None:
        self.settings = settings
        self._storage = storage
        self._arrays = arrays
        # As kernels take them: the first with the levels that lists are divided by.
        self._grids = settings.grid.finer(FINER_LEVELS), settings.counters
        self._limits = settings.max_cells, settings.split_at
        self._found = Found(np.empty(4096, np.int64), np.empty(4096, np.int64))

    @classmethod
    def create(cls, settings: IndexSettings, storage: Storage | None = None, n_subs: int = 1024) -> Self:
        """Make an empty index with capacity for about ``n_subs`` subscriptions."""
        storage = storage or HeapStorage()
        sizes = initial_sizes(n_subs, settings.counters.n_cells)
        arrays = create_struct(GI2Arrays, DTYPES, sizes, storage)
        arrays.head[TABLE_SIZE] = len(arrays.list_table)
        arrays.head[MAP_SIZE] = len(arrays.map_record)
        return cls(settings, storage, arrays)

    @classmethod
    def open(cls, settings: IndexSettings, storage: MappedStorage) -> Self:
        """Map an index that another process made; the caller holds its lock."""
        n_cells = settings.counters.n_cells
        needed = functools.partial(needed_sizes, n_cells=n_cells)
        arrays = open_struct(GI2Arrays, DTYPES, storage, needed, shared=True)
        return cls(settings, storage, arrays)

    def insert(self, subs: Subscriptions, rows: Int64s | None = None) -> None:
        """Store subscriptions (all, or some rows of them); one that is stored already stays as it is."""
        rows = np.arange(len(subs.seq_from)) if rows is None else rows
        if not len(rows):
            return
        position = 0
        while True:
            position = insert(self._arrays, self._grids, self._limits, subs, rows, position)
            if position == len(rows):
                return
            if position == NOT_BEGUN:
                self._reserve(subs, rows)
                position = 0
            else:
                self._make_capacity_for_postings()

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        """End subscriptions; return how many of them are stored here."""
        self._grow("ends", 2 * (int(self._arrays.head[N_ENDS]) + len(seq_from)))
        return end(self._arrays, self.settings.counters, seq_from, seq_to)

    def drop(self, seq_from: Int64s) -> int:
        """Forget subscriptions that another worker owns now; return how many of them were stored here."""
        return drop(self._arrays, self.settings.counters, seq_from)

    def stored(self, seq_from: Int64s) -> Subscriptions:
        """Copy those of some subscriptions that are stored here."""
        arrays = self._arrays
        records = views_of(arrays.records, arrays.ends)
        return self._unpacked(find_records(arrays.map_record, records, seq_from))

    def counted_in(self, counters: Grid) -> Self:
        """Return the index with its cells counted in another grid; work counts from 0 again.

        It takes over from this one, whose arrays it goes on with.
        """
        names = [f"cell_{name}" for name in CELL_COUNTERS]
        counted = {name: self._storage.create(name, np.int64, counters.n_cells) for name in names}
        arrays = self._arrays._replace(**counted)
        recount_cells(arrays, counters)
        arrays.head[[N_PUBLICATIONS, N_CANDIDATES, N_MATCHES]] = 0
        return type(self)(replace(self.settings, counters=counters), self._storage, arrays)

    def probe(self, probes: Probes, horizon: int) -> Found:
        """Return all matches; the arrays belong to the caller.

        ``horizon``: subscriptions that ended at or before this seq are forgotten for good.
        """
        parts: list[Found] = []
        row = 0
        while True:
            row, n = probe(self._arrays, self._grids, probes, row, horizon, self._found)
            parts.append(Found(*[column[:n].copy() for column in self._found]))
            if row == len(probes.seq):
                return joined(parts)
            # With more capacity fewer blocks begin in vain; what one publication has must fit in any case.
            if n == 0 or len(self._found.publication) < _MATCHES_AT_ONCE:
                size = 2 * len(self._found.publication)
                self._found = Found(np.empty(size, np.int64), np.empty(size, np.int64))

    def should_compact(self) -> bool:
        """Say whether what is dead outweighs half of what lives."""
        head = self._arrays.head
        return int(head[N_ENDED]) > max(1024, int(head[N_RECORDS] - head[N_ENDED]) // 2)

    def compacted(self, horizon: int, storage: Storage | None = None) -> Self:
        """Copy what can still match into an index of its own, with the same counters of work."""
        storage = storage or HeapStorage()
        arrays = at_once(self._copied(horizon, storage, _ALL))
        take_counters(arrays, self._arrays)
        return type(self)(self.settings, storage, arrays)

    def _copied(self, horizon: int, storage: Storage, n: int) -> Generator[None, None, GI2Arrays]:
        return copied(lambda: self._arrays, self._grids[0], self.settings.max_cells, horizon, storage, n)

    def moved(self, storage: Storage) -> GI2:
        """Return the same index with its storage under another name."""
        return GI2(self.settings, storage, self._arrays)

    def counts(self) -> IndexCounts:
        head = self._arrays.head[:LEVELS].tolist()
        return IndexCounts(
            n_subscriptions=head[N_RECORDS] - head[N_ENDED],
            n_ended=head[N_ENDED],
            n_postings=head[N_POSTINGS],
            n_lists=head[N_LISTS],
            n_bytes=sum([array.nbytes for array in self._arrays]),
            n_publications=head[N_PUBLICATIONS],
            n_candidates=head[N_CANDIDATES],
            n_matches=head[N_MATCHES],
        )

    def record_bytes(self) -> float:
        """Return the mean size of a subscription's record, of what has ended too."""
        head = self._arrays.head
        return 8 * int(head[N_WORDS]) / max(1, int(head[N_RECORDS]))

    def cell_counters(self, names: Iterable[str] = CELL_COUNTERS) -> dict[str, Int64s]:
        """Copy counters of every grid^t cell, by the names of their arrays without ``cell_``."""
        return {name: self._cell_counter(name) for name in names}

    def _cell_counter(self, name: str) -> Int64s:
        counter: Int64s = getattr(self._arrays, f"cell_{name}").copy()
        if name in _COUNTED_AT_CORNERS:
            sum_cells(self.settings.counters.bits, counter, counter)
        return counter

    def levels_in_use(self) -> list[int]:
        first = LEVELS + FINER_LEVELS
        levels = self._arrays.head[first : first + self.settings.grid.bits + 1]
        return [int(level) for level in np.flatnonzero(levels)]

    def _are_stored(self, seqs: Int64s) -> Flags:
        arrays = self._arrays
        return are_there(arrays.map_record, views_of(arrays.records, arrays.ends), seqs)

    def _reserve(self, subs: Subscriptions, rows: Int64s) -> None:
        """Make capacity for everything but postings and lists, whose number is not known yet."""
        head = self._arrays.head
        n_words, n_ends = needed_for(subs, rows)
        n_positions = len(self._arrays.records)
        self._grow("records", int(head[N_WORDS]) + n_words)
        self._grow("ends", 2 * (int(head[N_ENDS]) + n_ends))
        n_records = int(head[N_RECORDS]) + len(rows)
        is_full = is_map_full(n_records, len(self._arrays.map_record))
        # How many bits an entry has for the position depends on how many positions there are.
        if is_full or n_positions.bit_length() != len(self._arrays.records).bit_length():
            size = map_size(n_records) if is_full else len(self._arrays.map_record)
            refilled = self._storage.create("map_record", np.uint32, size)
            self._arrays = arrays = self._arrays._replace(map_record=refilled)
            head[MAP_SIZE] = size
            refill_seq_map(views_of(arrays.records, arrays.ends), refilled, 0, int(head[N_RECORDS]))

    def _make_capacity_for_postings(self) -> None:
        arrays = self._arrays
        if arrays.head[IS_TABLE_FULL]:
            size = len(arrays.list_table)
            while True:
                size += 2 * (size // 16 + 16)
                table = self._storage.create("list_table", np.uint64, size)
                if move_lists(arrays.head, arrays.list_table, table):
                    break
            self._arrays = arrays._replace(list_table=table)
            arrays.head[TABLE_SIZE], arrays.head[IS_TABLE_FULL] = len(table), 0
        else:
            # By an eighth, again and again, until even the largest list can move to a larger chunk.
            self._grow("postings", len(arrays.postings) + _MORE_POSTINGS)

    def _grow(self, name: str, size: int) -> None:
        """Make an array at least ``size`` long, by an eighth more than it was to keep growth rare."""
        array = getattr(self._arrays, name)
        if size > _MOST_POSITIONS:
            raise StateError(
                f"{name} of a worker's index must fit into {_MOST_POSITIONS:,} words; "
                f"{size:,} were needed; use more workers"
            )
        if size > len(array):
            size = min(max(size, len(array) + len(array) // 8), _MOST_POSITIONS)
            longer = self._storage.grow(name, array, size)
            self._arrays = self._arrays._replace(**{name: longer})

    def _unpacked(self, chosen: Int64s) -> Subscriptions:
        """Copy the subscriptions of records as input for another index."""
        records = views_of(self._arrays.records, self._arrays.ends)
        n_rows, n_words = len(chosen), n_words_of(records, chosen)
        out = Subscriptions(
            seq_from=np.empty(n_rows, np.int64),
            seq_to=np.empty(n_rows, np.int64),
            bounds=np.empty(4 * n_rows, np.float64),
            clause_offsets=np.zeros(n_rows + 1, np.int64),
            term_offsets=np.zeros(n_words + 1, np.int64),
            terms=np.empty(n_words, np.uint64),
        )
        n_clauses = unpack(records, chosen, out)
        n_terms = int(out.term_offsets[n_clauses])
        return out._replace(term_offsets=out.term_offsets[: n_clauses + 1], terms=out.terms[:n_terms])
