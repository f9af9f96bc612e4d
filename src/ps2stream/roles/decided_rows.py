"""The rows of a segment, laid out at once: what began in a batch, and then what ended.

As pieces of Arrow, joined afterwards, they cost a small batch more than all that is decided in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ps2stream.arrays import Flags, Float64s, Int32s, Int64s, UInt8s, UInt64s, frozen
from ps2stream.arrow import (
    Nested,
    Spans,
    Strings,
    array_of,
    lists_of,
    nested_of,
    numbers_of,
    spans_of,
    string_array,
    string_buffer,
    strings_of,
)
from ps2stream.kernels import kernel
from ps2stream.matching.contract import FOREVER
from ps2stream.registry.segments import BEGIN, BOUNDS, END, SEGMENT
from ps2stream.registry.versions import Ended
from ps2stream.routing.layout import Postings
from ps2stream.routing.update import Destinations
from ps2stream.text.frequencies import Frequencies, rarest_first

_CLAUSES, _WORKERS = SEGMENT.field("clauses").type, SEGMENT.field("workers").type
_CLAUSE = _CLAUSES.value_type
_INT8, _INT64, _FLOAT64 = pa.int8(), pa.int64(), pa.float64()


class CompiledColumns(NamedTuple):
    """Compiled updates as they lie in memory."""

    seq: Int64s
    is_subscribe: Flags
    ids: Spans
    expressions: Strings
    west: Float64s
    south: Float64s
    east: Float64s
    north: Float64s
    clauses: Nested


class Begun(NamedTuple):
    """Subscriptions that begin: rows of the updates, clauses with their rarest terms first."""

    rows: Int64s
    clause_offsets: Int64s
    terms: UInt64s


class Ids(NamedTuple):
    """Where the ids of what ended lie, and capacity for those of all rows."""

    data: UInt8s
    out: UInt8s


class _Rows(NamedTuple):
    """The columns of a segment, but for the bytes of its ids."""

    change: npt.NDArray[np.int8]
    seq_from: Int64s
    seq_to: Int64s
    id_offsets: Int32s
    expression_offsets: Int32s
    expressions: UInt8s
    expression_bits: UInt8s
    bounds: Float64s  # four columns, one behind the other
    clause_offsets: Int64s
    term_offsets: Int64s
    terms: UInt64s
    worker_offsets: Int64s
    workers: Int32s


def columns_of(compiled: pa.RecordBatch) -> CompiledColumns:
    """View compiled updates."""
    seq, is_subscribe, ids, expressions, *corners, clauses = compiled.columns
    # Where one is null nothing begins, so nobody looks.
    west, south, east, north = [numbers_of(corner, np.float64) for corner in corners]
    return CompiledColumns(
        numbers_of(seq, np.int64),
        frozen(is_subscribe.to_numpy(zero_copy_only=False)),
        spans_of(ids),
        strings_of(expressions),
        west,
        south,
        east,
        north,
        nested_of(clauses),
    )


@kernel
def begun_by(updates: CompiledColumns, frequencies: Frequencies) -> tuple[Begun, Postings, int]:
    """List what updates begin, and how it is posted; return also the bytes of its ids."""
    n = n_bytes = 0
    for row in range(len(updates.seq)):
        n += int(updates.is_subscribe[row])
    outer, inner, values = updates.clauses
    rows, offsets = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    bounds, firsts = np.empty(4 * n, np.float64), np.empty(len(inner) - 1, np.uint64)
    terms = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        terms[i] = values[i]
    rarest_first(terms, inner, frequencies)
    for clause in range(len(firsts)):
        firsts[clause] = terms[inner[clause]]
    n = 0
    for row in range(len(updates.seq)):
        if updates.is_subscribe[row]:
            # Updates that unsubscribe have no clauses: those of the others lie side by side.
            rows[n], offsets[n + 1] = row, outer[row + 1]
            bounds[4 * n], bounds[4 * n + 1] = updates.west[row], updates.south[row]
            bounds[4 * n + 2], bounds[4 * n + 3] = updates.east[row], updates.north[row]
            n_bytes += updates.ids.offsets[row + 1] - updates.ids.offsets[row]
            n += 1
    return Begun(rows, offsets, terms), Postings(bounds, offsets, firsts), n_bytes


def segment_of(
    updates: CompiledColumns,
    begun: tuple[Begun, Postings, int],
    ended: tuple[Ended, Postings, int],
    id_data: UInt8s,
    marks: Destinations,
) -> pa.RecordBatch:
    """Lay out what began and what ended; with each the bytes of its ids, ``id_data`` of what ended."""
    n_id_bytes = begun[2] + ended[2]
    ids = string_buffer(n_id_bytes)
    rows = _lay_out(updates, begun[:2], ended[:2], Ids(id_data, ids), marks)
    n = len(rows.change)
    clauses = lists_of(_CLAUSE, rows.term_offsets, array_of(rows.terms, _CLAUSE.value_type))
    columns = [
        array_of(rows.change, _INT8),
        array_of(rows.seq_from, _INT64),
        array_of(rows.seq_to, _INT64),
        string_array(rows.id_offsets, ids, n_id_bytes),
        string_array(
            rows.expression_offsets,
            rows.expressions,
            int(rows.expression_offsets[-1]),
            rows.expression_bits,
        ),
        *(array_of(rows.bounds[i * n : (i + 1) * n], _FLOAT64) for i in range(len(BOUNDS))),
        lists_of(_CLAUSES, rows.clause_offsets, clauses),
        lists_of(_WORKERS, rows.worker_offsets, array_of(rows.workers, _WORKERS.value_type)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEGMENT)


@kernel
def _lay_out(
    updates: CompiledColumns,
    begun: tuple[Begun, Postings],
    ended: tuple[Ended, Postings],
    ids: Ids,
    marks: Destinations,
) -> _Rows:
    rows = _empty_rows(updates, begun, ended[1], marks)
    _lay_begun(updates, begun[0], begun[1], ids.out, rows)
    _lay_ended(len(begun[0].rows), ended[0], ended[1], ids, rows)
    _lay_clauses(begun[0], updates.clauses.inner, ended[1], rows)
    at = 0
    for row in range(marks.shape[0]):
        for worker in range(marks.shape[1]):
            if marks[row, worker]:
                rows.workers[at] = worker
                at += 1
        rows.worker_offsets[row + 1] = at
    return rows


@kernel
def _empty_rows(
    updates: CompiledColumns, begun: tuple[Begun, Postings], ends: Postings, marks: Destinations
) -> _Rows:
    n, offsets = len(marks), updates.expressions.offsets
    n_bytes = n_marks = 0
    for row in begun[0].rows:
        n_bytes += offsets[row + 1] - offsets[row]
    for row in range(marks.shape[0]):
        for worker in range(marks.shape[1]):
            n_marks += int(marks[row, worker])
    n_clauses, n_terms = len(begun[1].terms) + len(ends.terms), len(begun[0].terms) + len(ends.terms)
    return _Rows(
        np.empty(n, np.int8),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n + 1, np.int32),
        np.zeros(n + 1, np.int32),
        np.empty(n_bytes, np.uint8),
        np.zeros(n // 8 + 1, np.uint8),
        np.empty(4 * n, np.float64),
        np.zeros(n + 1, np.int64),
        np.empty(n_clauses + 1, np.int64),
        np.empty(n_terms, np.uint64),
        np.zeros(n + 1, np.int64),
        np.empty(n_marks, np.int32),
    )


@kernel
def _copy(source: UInt8s, start: int, stop: int, target: UInt8s, to: int) -> int:
    for at in range(start, stop):
        target[to + at - start] = source[at]
    return to + stop - start


@kernel
def _lay_begun(
    updates: CompiledColumns, begun: Begun, postings: Postings, id_data: UInt8s, rows: _Rows
) -> None:
    n, id_end, expression_end = len(rows.change), 0, 0
    ids, expressions = updates.ids, updates.expressions
    for i in range(len(begun.rows)):
        row = begun.rows[i]
        rows.change[i], rows.seq_from[i], rows.seq_to[i] = BEGIN, updates.seq[row], FOREVER
        id_end = _copy(ids.data, ids.offsets[row], ids.offsets[row + 1], id_data, id_end)
        start, stop = expressions.offsets[row], expressions.offsets[row + 1]
        expression_end = _copy(expressions.data, start, stop, rows.expressions, expression_end)
        rows.expression_bits[i >> 3] |= np.uint8(1 << (i & 7))
        rows.id_offsets[i + 1], rows.expression_offsets[i + 1] = id_end, expression_end
        for corner in range(4):
            rows.bounds[corner * n + i] = postings.bounds[4 * i + corner]


@kernel
def _lay_ended(first: int, ended: Ended, postings: Postings, ids: Ids, rows: _Rows) -> None:
    n, id_end = len(rows.change), rows.id_offsets[first]
    for i in range(len(ended.versions)):
        row = first + i
        rows.change[row], rows.seq_from[row], rows.seq_to[row] = END, ended.seq_from[i], ended.seq_to[i]
        id_end = _copy(ids.data, ended.id_starts[i], ended.id_stops[i], ids.out, id_end)
        rows.id_offsets[row + 1], rows.expression_offsets[row + 1] = id_end, rows.expression_offsets[first]
        for corner in range(4):
            rows.bounds[corner * n + row] = postings.bounds[4 * i + corner]


@kernel
def _lay_clauses(begun: Begun, term_offsets: Int64s, ends: Postings, rows: _Rows) -> None:
    """Put behind the clauses of what began one for each term that what ended was posted under."""
    n_begun, n_clauses, n_terms = len(begun.rows), len(term_offsets) - 1, len(begun.terms)
    for i in range(n_begun + 1):
        rows.clause_offsets[i] = begun.clause_offsets[i]
    for i in range(1, len(ends.offsets)):
        rows.clause_offsets[n_begun + i] = n_clauses + ends.offsets[i]
    for clause in range(n_clauses + 1):
        rows.term_offsets[clause] = term_offsets[clause]
    for i in range(n_terms):
        rows.terms[i] = begun.terms[i]
    for i in range(len(ends.terms)):
        rows.terms[n_terms + i] = ends.terms[i]
        rows.term_offsets[n_clauses + i + 1] = n_terms + i + 1
