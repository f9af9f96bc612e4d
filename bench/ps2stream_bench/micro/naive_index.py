"""The naive version of GI2, to measure what its layout is worth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ps2stream.arrays import Int64s, Storage, n_bytes, ragged_rows
from ps2stream.matching.contract import (
    CELL_COUNTERS,
    FOREVER,
    WORK_COUNTERS,
    Found,
    IndexCounts,
    IndexSettings,
    Probes,
    Subscriptions,
)
from ps2stream.model.space import Grid
from ps2stream_bench.micro.naive_kernels import (
    GONE,
    N_CANDIDATES,
    N_LISTS,
    N_NODES,
    N_REMOVED,
    POSTED,
    TABLE_FULL,
    NaiveArrays,
    count_contents,
    end,
    fill_cells,
    insert,
    probe,
    rehash,
)


class NaiveIndex:
    """Do what GI2 does (``matching.contract.WorkerIndex``) with none of its care."""

    def __init__(self, settings: IndexSettings) -> None:
        self.settings = settings
        self._found = Found(np.empty(4096, np.int64), np.empty(4096, np.int64))
        self._arrays = _empty_arrays()
        self._work = {name: np.zeros(settings.counters.n_cells, np.int64) for name in WORK_COUNTERS}
        self._n_publications = self._n_matches = 0

    def insert(self, subs: Subscriptions, rows: Int64s | None = None) -> None:
        """Store subscriptions; one that is stored already stays as it is."""
        rows = np.arange(len(subs.seq_from)) if rows is None else np.asarray(rows)
        if len(self._arrays.seq_from):
            rows = rows[~np.isin(subs.seq_from[rows], self._stored_seqs()[0])]
        _, first = np.unique(subs.seq_from[rows], return_index=True)
        if len(first) < len(rows):
            rows = rows[np.sort(first)]
        is_all = len(rows) == len(subs.seq_from)
        self._append(subs if is_all else _rows_of(subs, rows))

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        """End subscriptions; return how many of them are stored."""
        seqs, rows = self._stored_seqs()
        return end(self._arrays.seq_to, seqs, rows, seq_from, seq_to)

    def drop(self, seq_from: Int64s) -> int:
        """Forget subscriptions; probes take their nodes out of the chains."""
        rows = self._find(seq_from)
        self._arrays.seq_to[rows] = GONE
        return len(rows)

    def stored(self, seq_from: Int64s) -> Subscriptions:
        return _rows_of(self._columns(), self._find(seq_from))

    def probe(self, probes: Probes, horizon: int) -> Found:
        """Return all matches, as GI2 does."""
        parts: list[Found] = []
        n_candidates = np.zeros(len(probes.seq), np.int64)
        row = 0
        while True:
            row, n = probe(self._arrays, self.settings.grid, probes, row, horizon, self._found, n_candidates)
            parts.append(Found(*(column[:n].copy() for column in self._found)))
            if row == len(probes.seq):
                break
            if n == 0:
                size = 2 * len(self._found.publication)
                self._found = Found(np.empty(size, np.int64), np.empty(size, np.int64))
        found = Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        self._count(probes, n_candidates, found)
        return found

    def counts(self) -> IndexCounts:
        arrays = self._arrays
        n_live = int(np.count_nonzero(arrays.seq_to == FOREVER))
        return IndexCounts(
            n_subscriptions=n_live,
            n_ended=len(arrays.seq_to) - n_live,
            n_postings=int(arrays.head[N_NODES] - arrays.head[N_REMOVED]),
            n_lists=int(arrays.head[N_LISTS]),
            n_bytes=n_bytes(arrays),
            n_publications=self._n_publications,
            n_candidates=int(arrays.head[N_CANDIDATES]),
            n_matches=self._n_matches,
        )

    def cell_counters(self, names: Iterable[str] = CELL_COUNTERS) -> dict[str, Int64s]:
        """Copy the counters of work, and count anew what lives in every cell."""
        n_cells = self.settings.counters.n_cells
        contents = {name: np.zeros(n_cells, np.int64) for name in ("subscriptions", "bytes")}
        count_contents(self._arrays, self.settings.counters, contents["subscriptions"], contents["bytes"])
        counters = self._work | contents
        return {name: counters[name].copy() for name in names}

    def counted_in(self, counters: Grid) -> NaiveIndex:
        counted = NaiveIndex(replace(self.settings, counters=counters))
        counted._arrays = self._arrays
        return counted

    def should_compact(self) -> bool:
        counts = self.counts()
        return counts.n_ended > max(1024, counts.n_subscriptions // 2)

    def compacted(self, horizon: int, storage: Storage | None = None) -> NaiveIndex:
        """Build the index of what is left; it lies on the heap whatever storage there is."""
        compacted = NaiveIndex(self.settings)
        compacted._append(_rows_of(self._columns(), np.flatnonzero(self._arrays.seq_to > max(horizon, GONE))))
        compacted._work = {name: counted.copy() for name, counted in self._work.items()}
        compacted._n_publications, compacted._n_matches = self._n_publications, self._n_matches
        compacted._arrays.head[N_CANDIDATES] = self._arrays.head[N_CANDIDATES]
        return compacted

    def _append(self, subs: Subscriptions) -> None:
        arrays = _joined(self._arrays, subs)
        while (full := insert(arrays, self.settings.grid, 7 * len(arrays.list_key) // 10)) != POSTED:
            arrays = _grown(arrays, full)
        self._arrays = arrays

    def _stored_seqs(self) -> tuple[Int64s, Int64s]:
        """Return the seqs of what is stored in order, and where each is."""
        arrays = self._arrays
        rows = np.flatnonzero(arrays.seq_to != GONE)
        seqs = arrays.seq_from[rows]
        if not np.all(seqs[1:] > seqs[:-1]):
            order = np.argsort(seqs)
            rows, seqs = rows[order], seqs[order]
        return seqs, rows

    def _find(self, seq_from: Int64s) -> Int64s:
        """Return where those of some subscriptions are that are stored."""
        seqs, rows = self._stored_seqs()
        slots = np.searchsorted(seqs, seq_from)
        is_found = np.zeros(len(seq_from), np.bool_)
        inside = slots < len(seqs)
        is_found[inside] = seqs[slots[inside]] == seq_from[inside]
        return rows[slots[is_found]]

    def _columns(self) -> Subscriptions:
        arrays = self._arrays
        offsets = (arrays.clause_offsets.astype(np.int64), arrays.term_offsets.astype(np.int64))
        return Subscriptions(arrays.seq_from, arrays.seq_to, arrays.bounds, *offsets, arrays.terms)

    def _count(self, probes: Probes, n_candidates: Int64s, found: Found) -> None:
        grid = self.settings.counters
        cells = np.empty(len(probes.seq), np.int64)
        fill_cells(grid, probes.lon, probes.lat, cells)
        n_owned = np.concatenate([[0], np.cumsum(probes.owned != 0)])
        last = len(probes.seq)
        work = {
            "publications": np.ones(last, np.int64),
            "lookups": np.diff(n_owned[probes.term_offsets[: last + 1]]),
            "candidates": n_candidates,
            "matches": np.bincount(found.publication, minlength=last),
        }
        for name, counted in work.items():
            np.add.at(self._work[name], cells, counted)
        self._n_publications += last
        self._n_matches += len(found.publication)


def _empty_arrays() -> NaiveArrays:
    size = 1 << 10
    return NaiveArrays(
        head=np.zeros(5, np.int64),
        seq_from=np.zeros(0, np.int64),
        seq_to=np.zeros(0, np.int64),
        bounds=np.zeros(0),
        clause_offsets=np.zeros(1, np.uint32),
        clause_sub=np.zeros(0, np.uint32),
        term_offsets=np.zeros(1, np.uint32),
        terms=np.zeros(0, np.uint64),
        list_key=np.zeros(size, np.uint64),
        list_first=np.zeros(size, np.uint32),
        node_next=np.zeros(size, np.uint32),
        node_clause=np.zeros(size, np.uint32),
    )


def _joined(arrays: NaiveArrays, subs: Subscriptions) -> NaiveArrays:
    """Put subscriptions behind those that are there; they are not posted yet."""
    n_clauses = len(subs.term_offsets) - 1
    clause_offsets = subs.clause_offsets[1:].astype(np.uint32) + arrays.clause_offsets[-1]
    term_offsets = subs.term_offsets[1:].astype(np.uint32) + arrays.term_offsets[-1]
    return arrays._replace(
        seq_from=np.concatenate([arrays.seq_from, subs.seq_from]),
        seq_to=np.concatenate([arrays.seq_to, subs.seq_to]),
        bounds=np.concatenate([arrays.bounds, subs.bounds]),
        clause_offsets=np.concatenate([arrays.clause_offsets, clause_offsets]),
        clause_sub=np.concatenate([arrays.clause_sub, np.zeros(n_clauses, np.uint32)]),
        term_offsets=np.concatenate([arrays.term_offsets, term_offsets]),
        terms=np.concatenate([arrays.terms, subs.terms]),
    )


def _rows_of(subs: Subscriptions, rows: Int64s) -> Subscriptions:
    """Copy some subscriptions."""
    clauses = ragged_rows(subs.clause_offsets, rows)
    terms = ragged_rows(subs.term_offsets, clauses.values)
    return Subscriptions(
        subs.seq_from[rows],
        subs.seq_to[rows],
        subs.bounds.reshape(-1, 4)[rows].reshape(-1),
        clauses.offsets,
        terms.offsets,
        subs.terms[terms.values],
    )


def _grown(arrays: NaiveArrays, full: int) -> NaiveArrays:
    """Double the table of chains or lengthen the nodes by half, whichever is full."""
    if full == TABLE_FULL:
        size = 2 * len(arrays.list_key)
        list_key, list_first = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        rehash(arrays, list_key, list_first)
        return arrays._replace(list_key=list_key, list_first=list_first)
    more = len(arrays.node_next) // 2
    return arrays._replace(
        node_next=np.concatenate([arrays.node_next, np.zeros(more, np.uint32)]),
        node_clause=np.concatenate([arrays.node_clause, np.zeros(more, np.uint32)]),
    )
