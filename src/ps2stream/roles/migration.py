"""Migration: which workers take over which subscriptions, as rows of the log (Sec. V).

A migration takes effect between two batches. Its rows stand in the log before the updates of the batch
that follows, in one file with them and with the new routing; so all of it happens, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s, UInt64s, frozen
from ps2stream.arrow import large_lists
from ps2stream.errors import StateError
from ps2stream.kernels import kernel
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.model.schemas import empty
from ps2stream.model.space import NO_LIMIT, Grid, cover
from ps2stream.registry.index import Registry
from ps2stream.registry.segments import DROP, SEGMENT, bare_rows, move_rows
from ps2stream.routing.update import Destinations, group
from ps2stream.text.frequencies import Frequencies, rarest_first

#: Ask a worker's index for subscriptions by seq.
Fetch = Callable[[int, Int64s], Subscriptions]


class Migrated(NamedTuple):
    """Rows for the log, and how much they move."""

    rows: pa.RecordBatch
    n_subscriptions: int
    n_bytes: int


def nothing_migrated() -> Migrated:
    return Migrated(empty(SEGMENT), 0, 0)


class Stored(NamedTuple):
    """Subscriptions by seq, and the workers (a column each) that store them."""

    seqs: Int64s
    workers: Destinations


def migrate(
    before: Stored,
    taken_by: Destinations,
    dropped_by: Destinations,
    fetch: Fetch,
    registry: Registry,
    frequencies: Frequencies,
) -> Migrated:
    """Build the rows that bring subscriptions to those who take them and away from those who drop them.

    Each is fetched from the first worker that stores it; ``frequencies`` say under which term of a
    clause it is posted from now on.
    """
    moving = np.flatnonzero(taken_by.any(axis=1))
    moved = fetched(Stored(before.seqs[moving], before.workers[moving]), fetch)
    terms = moved.terms.copy()
    rarest_first(terms, frozen(moved.term_offsets), frequencies)
    # Sources come one after the other; the workers that take over have to follow the same order.
    takers = taken_by[moving[np.searchsorted(before.seqs[moving], moved.seq_from)]]
    moves = move_rows(moved._replace(terms=terms), registry.ids(moved.seq_from), workers_column(takers))
    leaving = np.flatnonzero(dropped_by.any(axis=1))
    seqs = before.seqs[leaving]
    drops = bare_rows(
        DROP, seqs, np.full(len(seqs), FOREVER), registry.ids(seqs), workers_column(dropped_by[leaving])
    )
    return Migrated(pa.concat_batches([drops, moves]), moves.num_rows, moves.nbytes if moves.num_rows else 0)


def fetched(stored: Stored, fetch: Fetch) -> Subscriptions:
    """Copy subscriptions out of the indexes, source by source."""
    source = stored.workers.argmax(axis=1)
    parts = [fetch(int(worker), frozen(stored.seqs[source == worker])) for worker in np.unique(source)]
    found = joined(parts)
    if len(found.seq_from) != len(stored.seqs):
        raise StateError(
            f"workers must hold the {len(stored.seqs):,} subscriptions they hand over; "
            f"found {len(found.seq_from):,}"
        )
    return found


def joined(parts: list[Subscriptions]) -> Subscriptions:
    """Put subscriptions of several indexes one after the other."""
    n_clauses = np.cumsum([0, *(len(part.term_offsets) - 1 for part in parts)])
    n_terms = np.cumsum([0, *(len(part.terms) for part in parts)])
    start: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
    clause_offsets = [part.clause_offsets[1:] + n for part, n in zip(parts, n_clauses, strict=False)]
    term_offsets = [part.term_offsets[1:] + n for part, n in zip(parts, n_terms, strict=False)]
    return Subscriptions(
        seq_from=np.concatenate([start[0][:0], *(part.seq_from for part in parts)]),
        seq_to=np.concatenate([start[0][:0], *(part.seq_to for part in parts)]),
        bounds=np.concatenate([np.empty(0), *(part.bounds for part in parts)]),
        clause_offsets=np.concatenate(start + clause_offsets),
        term_offsets=np.concatenate(start + term_offsets),
        terms=np.concatenate([np.empty(0, np.uint64), *(part.terms for part in parts)]),
    )


def workers_column(marks: Destinations) -> pa.Array:
    """Turn a table of marks into lists of worker numbers."""
    offsets = np.zeros(len(marks) + 1, np.int64)
    values = np.empty(np.count_nonzero(marks), np.int32)
    group(marks, offsets, values)
    return large_lists(pa.array(values), offsets)


def touching_cells(grid: Grid, bounds: Float64s, cells: Int64s) -> Int64s:
    """List the regions (four numbers each) that touch one of some cells."""
    side = 1 << grid.bits
    chosen = np.zeros(grid.n_cells, np.int32)
    chosen[cells] = 1
    sums = np.zeros((side + 1, side + 1), np.int32)
    sums[1:, 1:] = chosen.reshape(side, side).cumsum(axis=0).cumsum(axis=1)
    touched = np.empty(len(bounds) // 4, np.bool_)
    _touch(grid, frozen(bounds), sums, touched)
    return np.flatnonzero(touched)


@kernel
def _touch(grid: Grid, bounds: Float64s, sums: npt.NDArray[np.int32], touched: npt.NDArray[np.bool_]) -> None:
    """Count chosen cells under every region by prefix sums; columns may wrap round."""
    side = 1 << grid.bits
    for i in range(len(touched)):
        area = cover(grid, bounds, 4 * i, NO_LIMIT)
        top, bottom = area.row + area.n_rows, area.row
        first, stop = area.column, area.column + area.n_columns
        n = 0
        if stop > side:
            n += sums[top, stop - side] - sums[bottom, stop - side] - sums[top, 0] + sums[bottom, 0]
            stop = side
        n += sums[top, stop] - sums[bottom, stop] - sums[top, first] + sums[bottom, first]
        touched[i] = n > 0


def first_terms(subs: Subscriptions) -> UInt64s:
    """Pick the first term of every clause: the one that it is posted under."""
    return frozen(subs.terms[subs.term_offsets[:-1]])
