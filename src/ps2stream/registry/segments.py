"""Segments of the subscription log: the begins and ends that one batch decided on.

A row begins a version (its clauses, rarest term first, and its region) or ends one; either
way it names the workers that it concerns. A snapshot is a segment that begins everything alive.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, Ragged, frozen
from ps2stream.kernels import kernel
from ps2stream.matching.layout import FOREVER, Subscriptions

SEGMENT = pa.schema(
    [
        ("seq_from", pa.int64()),
        ("seq_to", pa.int64()),  # FOREVER in a row that begins a version
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


def large_lists(values: pa.Array, *offsets: Int64s) -> pa.Array:
    """Nest ``values`` in lists, innermost offsets first."""
    for level in offsets:
        values = pa.LargeListArray.from_arrays(pa.array(level, pa.int64()), values)
    return values


def begins(segment: pa.RecordBatch) -> np.ndarray:
    return np.flatnonzero(segment.column("seq_to").to_numpy() == FOREVER)


def rows_of(segment: pa.RecordBatch, worker: int) -> Int64s:
    """List the rows that concern a worker."""
    workers = ragged_of(segment.column("workers"))
    rows = np.empty(segment.num_rows, np.int64)
    return rows[: _rows_of(workers.values, workers.offsets, worker, rows)]


def subscriptions_of(segment: pa.RecordBatch) -> Subscriptions:
    """View the rows of a segment as a worker's index takes them."""
    clauses = ragged_of(segment.column("clauses"), flat=False)
    terms = ragged_of(clauses.values)
    return Subscriptions(
        frozen(segment.column("seq_from").to_numpy()),
        frozen(segment.column("seq_to").to_numpy()),
        frozen(bounds_of(segment)),
        frozen(clauses.offsets),
        frozen(terms.offsets),
        frozen(terms.values),
    )


def bounds_of(batch: pa.RecordBatch) -> np.ndarray:
    """Return the regions of a batch, four numbers a row."""
    columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in BOUNDS]
    return np.column_stack(columns).reshape(-1) if batch.num_rows else np.empty(0)


def ragged_of(lists: pa.Array, flat: bool = True) -> Ragged:
    """View a list array as values and offsets; offsets start at 0 whatever slice it is."""
    if len(lists) == 0:
        values = lists.values[:0]
        return Ragged(values.to_numpy() if flat else values, np.zeros(1, np.int64))
    offsets = lists.offsets.to_numpy()
    values = lists.values[int(offsets[0]) : int(offsets[-1])]
    shifted = offsets.astype(np.int64) - int(offsets[0])
    return Ragged(values.to_numpy(zero_copy_only=True) if flat else values, shifted)


@kernel
def _rows_of(workers: np.ndarray, offsets: Int64s, worker: int, rows: Int64s) -> int:
    n = 0
    for row in range(len(offsets) - 1):
        for i in range(offsets[row], offsets[row + 1]):
            if workers[i] == worker:
                rows[n] = row
                n += 1
                break
    return n
