"""What a worker needs of its index, and the columns that go in and come out.

GI2 is the index of the system. The naive one of the benchmarks does the same without its layout; both pass
the same contract tests (tests/matching/test_contract.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np

from ps2stream.arrays import Float64s, Int64s, Storage, UInt8s, UInt64s
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS
from ps2stream.model.space import Grid

#: seq_to of a subscription that nobody has ended.
FOREVER = AFTER_ALL_SEQS


class Subscriptions(NamedTuple):
    """Subscriptions to insert, in columns; each clause's rarest term comes first."""

    seq_from: Int64s
    seq_to: Int64s
    bounds: Float64s
    clause_offsets: Int64s
    term_offsets: Int64s
    terms: UInt64s


#: Bits of ``Probes.owned``; their order is that of the plans of a Routing, newest first.
OWNED_NOW, OWNED_BEFORE = 1, 2


class Probes(NamedTuple):
    """Publications to match, in columns.

    ``owned`` marks the terms that this worker owns: OWNED_NOW by the newest plan, OWNED_BEFORE by the one
    before it, which subscriptions that began up to ``switch_seq`` are still stored under.
    """

    seq: Int64s
    lon: Float64s
    lat: Float64s
    term_offsets: Int64s
    terms: UInt64s  # of each publication sorted and distinct
    owned: UInt8s
    switch_seq: int = BEFORE_ALL_SEQS


class Found(NamedTuple):
    """Capacity for matches: row of the publication, seq_from of the subscription."""

    publication: Int64s
    subscription: Int64s


def joined(parts: Sequence[Found]) -> Found:
    """Put matches one behind the other."""
    return parts[0] if len(parts) == 1 else Found(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The two grids of an index and how many cells a subscription may be posted in.

    ``counters`` is the grid^t grid: loads are counted in its cells, because they are what
    load adjustment moves. A list as long as ``split_at`` is divided by the quarters of its cell. Defaults are
    measured (docs/performance.md).
    """

    grid: Grid
    counters: Grid
    max_cells: int = 16
    split_at: int = 128


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """The size of an index and the work it has done."""

    n_subscriptions: int
    n_ended: int
    n_postings: int
    n_lists: int
    n_bytes: int
    n_publications: int
    n_candidates: int
    n_matches: int


#: Counters of cells that only grow while an index is used, and those that say what is stored.
WORK_COUNTERS = ("publications", "lookups", "candidates", "matches")
CELL_COUNTERS = (*WORK_COUNTERS, "subscriptions", "bytes")


class WorkerIndex(Protocol):
    """Store subscriptions and match publications with them; one writer at a time.

    Every change may be made twice without harm, because a batch may run again after a crash: what is stored
    stays as it is when it is inserted again, an end never moves to a later seq, and what is not stored is not
    ended or dropped. Which subscriptions a publication sees is decided by seqs alone
    (``seq_from < seq < seq_to``), so changes may come before publications that must not see them.
    """

    settings: IndexSettings

    def insert(self, subs: Subscriptions, rows: Int64s | None = None) -> None:
        """Store subscriptions, all or some rows of them."""
        ...

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        """End subscriptions; return how many of them are stored here."""
        ...

    def drop(self, seq_from: Int64s) -> int:
        """Forget subscriptions at once; return how many were stored. They may come back in another form."""
        ...

    def probe(self, probes: Probes, horizon: int) -> Found:
        """Return all matches, by publication; the arrays belong to the caller.

        A match is reported where its subscription's first satisfied clause has a first term that this worker
        owns. ``horizon``: subscriptions that ended at or before this seq may be forgotten for good.
        """
        ...

    def stored(self, seq_from: Int64s) -> Subscriptions:
        """Copy those of some subscriptions that are stored here, with the ends there are now."""
        ...

    def counts(self) -> IndexCounts: ...

    def cell_counters(self, names: Iterable[str] = CELL_COUNTERS) -> dict[str, Int64s]:
        """Copy some or all counters of every cell of ``settings.counters``.

        ``publications``, ``lookups``, ``candidates`` and ``matches`` count work and only grow;
        ``subscriptions`` and ``bytes`` tell what lives there now.
        """
        ...

    def counted_in(self, counters: Grid) -> Self:
        """Return the index with its cells counted in another grid; it takes over, and work counts from 0."""
        ...

    def should_compact(self) -> bool:
        """Say whether what is dead outweighs half of what lives."""
        ...

    def compacted(self, horizon: int, storage: Storage | None = None) -> Self:
        """Copy what can still match into an index of its own, with the same counters of work."""
        ...
