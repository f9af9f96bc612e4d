"""Segments of the subscription log: what one batch changed about subscriptions, and where.

A row says what happens to one version of a subscription, and which workers it concerns:

    BEGIN   it begins; with its region and its clauses, rarest term first
    END     it ends; with its region and, as clauses, the terms it was posted under, to count it out
    MOVE    it goes on as before, and these workers store it from now on; as complete as BEGIN
    DROP    it goes on as before, and these workers do not store it any more

The last two come from load adjustment. Within a segment a worker drops first, so that it can
store the same version in another form. A snapshot is a segment that begins everything alive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s, frozen
from ps2stream.arrow import large_lists, nested_of, numbers_of, pick, ragged_of
from ps2stream.kernels import kernel
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.routing.layout import Postings

BEGIN, END, MOVE, DROP = range(4)

SEGMENT = pa.schema(
    [
        ("change", pa.int8()),
        ("seq_from", pa.int64()),
        ("seq_to", pa.int64()),  # FOREVER but in a row that ends a version
        ("id", pa.string()),
        ("expression", pa.string()),
        ("min_lon", pa.float64()),
        ("min_lat", pa.float64()),
        ("max_lon", pa.float64()),
        ("max_lat", pa.float64()),
        ("clauses", pa.large_list(pa.large_list(pa.uint64()))),
        ("workers", pa.large_list(pa.int32())),
    ]
)
BOUNDS = ("min_lon", "min_lat", "max_lon", "max_lat")
_CLAUSES, _WORKERS = SEGMENT.get_field_index("clauses"), SEGMENT.get_field_index("workers")


def changes(segment: pa.RecordBatch, change: int) -> pa.RecordBatch:
    """Pick the rows of one kind."""
    return pick(segment, segment.column("change").to_numpy() == change)


def begin_rows(
    subs: Subscriptions, ids: pa.Array, expressions: pa.Array, workers: pa.Array
) -> pa.RecordBatch:
    """Lay subscriptions out as rows that begin them."""
    n = len(subs.seq_from)
    bounds = subs.bounds.reshape(-1, 4)
    columns = [
        pa.array(np.full(n, BEGIN, np.int8)),
        pa.array(subs.seq_from),
        pa.array(np.full(n, FOREVER)),
        ids,
        expressions,
        *(pa.array(bounds[:, i]) for i in range(4)),
        large_lists(pa.array(subs.terms), subs.term_offsets, subs.clause_offsets),
        workers,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEGMENT)


def move_rows(subs: Subscriptions, ids: pa.Array, workers: pa.Array) -> pa.RecordBatch:
    """Lay subscriptions out as rows that tell workers to store them."""
    n = len(subs.seq_from)
    rows = begin_rows(subs, ids, pa.nulls(n, pa.string()), workers)
    return rows.set_column(0, SEGMENT.field("change"), pa.repeat(pa.scalar(MOVE, pa.int8()), n))


def bare_rows(
    change: int, seq_from: Int64s, seq_to: Int64s, ids: pa.Array, workers: pa.Array
) -> pa.RecordBatch:
    """Lay out rows that need nothing but seqs."""
    n = len(seq_from)
    columns = [
        pa.repeat(pa.scalar(change, pa.int8()), n),
        pa.array(seq_from),
        pa.array(seq_to),
        ids,
        pa.nulls(n, pa.string()),
        *(pa.nulls(n, pa.float64()) for _ in BOUNDS),
        large_lists(pa.array([], pa.uint64()), np.zeros(1, np.int64), np.zeros(n + 1, np.int64)),
        workers,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEGMENT)


def end_rows(
    seq_from: Int64s, seq_to: Int64s, ids: pa.Array, postings: Postings, workers: pa.Array
) -> pa.RecordBatch:
    """Lay out rows that end subscriptions."""
    n = len(seq_from)
    bounds = postings.bounds.reshape(-1, 4)
    each = np.arange(len(postings.terms) + 1)
    columns = [
        pa.array(np.full(n, END, np.int8)),
        pa.array(seq_from),
        pa.array(seq_to),
        ids,
        pa.nulls(n, pa.string()),
        *(pa.array(bounds[:, i]) for i in range(4)),
        large_lists(pa.array(postings.terms), each, postings.offsets),
        workers,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEGMENT)


def ended_rows(begun: pa.RecordBatch, seq_to: Int64s) -> pa.RecordBatch:
    """Lay out rows that end subscriptions whose beginnings are given as they are stored."""
    ids, workers = begun.column("id"), begun.column("workers")
    return end_rows(begun.column("seq_from").to_numpy(), seq_to, ids, postings_of(begun), workers)


def postings_of(segment: pa.RecordBatch) -> Postings:
    """Pick the first, rarest, term of every clause: the one that it is posted under."""
    clauses = ragged_of(segment.column("clauses"), flat=False)
    terms = ragged_of(clauses.values)
    firsts = terms.values[terms.offsets[:-1]]
    return Postings(frozen(bounds_of(segment)), frozen(clauses.offsets), frozen(firsts))


def rows_of(segment: pa.RecordBatch, worker: int) -> Int64s:
    """List the rows that concern a worker."""
    workers = ragged_of(segment.column("workers"))
    rows = np.empty(segment.num_rows, np.int64)
    return rows[: _rows_of(workers.values, workers.offsets, worker, rows)]


class Concerned(NamedTuple):
    """What a segment says to one worker, in the order in which it does it."""

    dropped: Int64s  # seqs
    stored: Int64s  # rows
    ended: Int64s  # seqs, and where they end
    seq_to: Int64s

    @property
    def n_rows(self) -> int:
        return len(self.dropped) + len(self.stored) + len(self.ended)


def concerning(segment: pa.RecordBatch, worker: int) -> Concerned:
    """Pick what concerns a worker."""
    change = frozen(segment.column(0).to_numpy())
    seq_from, seq_to = (numbers_of(segment.column(number), np.int64) for number in (1, 2))
    workers = ragged_of(segment.column(_WORKERS))
    out = np.empty((4, segment.num_rows), np.int64)
    n_dropped, n_stored, n_ended = _concerning(
        (change, seq_from, seq_to), frozen(workers.values), frozen(workers.offsets), worker, out
    )
    return Concerned(
        frozen(out[0, :n_dropped]),
        frozen(out[1, :n_stored]),
        frozen(out[2, :n_ended]),
        frozen(out[3, :n_ended]),
    )


def subscriptions_of(segment: pa.RecordBatch) -> Subscriptions:
    """View the rows of a segment as a worker's index takes them."""
    clauses = nested_of(segment.column(_CLAUSES))
    return Subscriptions(
        frozen(segment.column("seq_from").to_numpy()),
        frozen(segment.column("seq_to").to_numpy()),
        frozen(bounds_of(segment)),
        clauses.outer,
        clauses.inner,
        clauses.values,
    )


def bounds_of(batch: pa.RecordBatch) -> Float64s:
    """Return the regions of a batch, four numbers a row."""
    bounds = np.empty(4 * batch.num_rows, np.float64)
    west, south, east, north = (frozen(batch.column(name).to_numpy(zero_copy_only=False)) for name in BOUNDS)
    _interleave(west, south, east, north, bounds)
    return bounds


@kernel
def _interleave(west: Float64s, south: Float64s, east: Float64s, north: Float64s, bounds: Float64s) -> None:
    for row in range(len(west)):
        bounds[4 * row], bounds[4 * row + 1] = west[row], south[row]
        bounds[4 * row + 2], bounds[4 * row + 3] = east[row], north[row]


@kernel
def _rows_of(workers: np.ndarray, offsets: Int64s, worker: int, rows: Int64s) -> int:
    n = 0
    for row in range(len(offsets) - 1):
        if _concerns(workers, offsets, worker, row):
            rows[n] = row
            n += 1
    return n


@kernel
def _concerns(workers: np.ndarray, offsets: Int64s, worker: int, row: int) -> bool:
    for i in range(offsets[row], offsets[row + 1]):
        if workers[i] == worker:
            return True
    return False


@kernel
def _concerning(
    rows: tuple[np.ndarray, Int64s, Int64s],
    workers: np.ndarray,
    offsets: Int64s,
    worker: int,
    out: np.ndarray,
) -> tuple[int, int, int]:
    """Write what is dropped, stored and ended; return how many of each."""
    change, seq_from, seq_to = rows
    n_dropped = n_stored = n_ended = 0
    for row in range(len(change)):
        if not _concerns(workers, offsets, worker, row):
            continue
        if change[row] == DROP:
            out[0, n_dropped] = seq_from[row]
            n_dropped += 1
        elif change[row] == END:
            out[2, n_ended], out[3, n_ended] = seq_from[row], seq_to[row]
            n_ended += 1
        else:
            out[1, n_stored] = row
            n_stored += 1
    return n_dropped, n_stored, n_ended
