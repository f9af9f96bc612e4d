"""The border: what comes in is checked here, once, and nowhere behind.

A bad record is data. It leaves by the rejected output with its reason, and the rest of the
batch goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Array, Float64s, Int64s, frozen
from ps2stream.arrow import Spans, offsets_of, spans_of, strings_of
from ps2stream.errors import EXCERPT, SchemaError, quoted
from ps2stream.kernels import kernel
from ps2stream.model.limits import MAX_ID_BYTES, MAX_TEXT_BYTES, check_n_bytes, max_bytes
from ps2stream.model.schemas import (
    AFTER_ALL_SEQS,
    EVENTS,
    EVENTS_WITHOUT_SEQ,
    OPERATIONS,
    PUBLICATIONS,
    PUBLISH,
    REJECTED,
    SUBSCRIBE,
    UPDATES,
    empty,
)
from ps2stream.model.space import MAX_LAT, MAX_LON, check_point, check_region
from ps2stream.model.update_checks import UpdateColumns, capacity_for, check

_Mask = npt.NDArray[np.bool_]
_NOTHING_REJECTED = empty(REJECTED)
_BOOL = pa.bool_()


class Publications(NamedTuple):
    """Valid publications, in columns."""

    seq: Int64s
    ids: pa.Array
    lon: Float64s
    lat: Float64s
    texts: pa.Array


class Updates(NamedTuple):
    """Valid subscribe and unsubscribe events, in columns; expressions are not parsed yet."""

    seq: pa.Array
    is_subscribe: pa.Array
    ids: pa.Array
    expressions: pa.Array
    corners: list[pa.Array]  # min_lon, min_lat, max_lon, max_lat; anything for unsubscribe
    begins: Int64s  # the rows that subscribe
    spans: Spans  # their expressions


def conform(events: pa.Table | pa.RecordBatch, schema: pa.Schema = EVENTS, where: str = "events") -> Any:
    """Select and cast the columns of a schema; say which one is missing or of the wrong type."""
    check_columns(events.schema, schema, where)
    columns = []
    for field in schema:
        column = events.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as error:
                raise SchemaError(f"{where}: column {field.name!r}: {error}") from error
        columns.append(column)
    return type(events).from_arrays(columns, schema=schema)


def check_columns(found: pa.Schema, wanted: pa.Schema = EVENTS, where: str = "events") -> None:
    """Raise unless the columns of a schema are there, once, and of types that can be cast to its own."""
    for field in wanted:
        indices = found.get_all_field_indices(field.name)
        if not indices:
            raise SchemaError(
                f"{where}: column {field.name!r} ({field.type}) is missing; found {found.names}"
            )
        if len(indices) > 1:
            raise SchemaError(
                f"{where}: column {field.name!r} must be there once; got it {len(indices)} times"
            )
        came = found.field(indices[0]).type
        if came != field.type and not _castable(came, field.type):
            raise SchemaError(f"{where}: column {field.name!r} must be {field.type}; got {came}")


def _castable(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_string(wanted):
        return bool(
            pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
        )
    if pa.types.is_float64(wanted):
        return bool(pa.types.is_floating(found) or pa.types.is_integer(found))
    return bool(pa.types.is_integer(found))


def numbered(events: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Give seqs to events that may come without: from ``first`` on, in the order of rows."""
    bare = conform(events, EVENTS_WITHOUT_SEQ)
    return pa.RecordBatch.from_arrays([_seqs(first, bare.num_rows), *bare.columns], schema=EVENTS)


def renumbered(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Replace the seqs of events of any kind: from ``first`` on, in the order of rows."""
    column = batch.schema.get_field_index("seq")
    return batch.set_column(column, batch.schema.field(column), _seqs(first, batch.num_rows))


def _seqs(first: int, n: int) -> pa.Array:
    return pa.array(np.arange(first, first + n, dtype=np.int64))


def split(events: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Part publications from the rest; an unknown op goes with the updates, which reject it."""
    is_publish = pc.fill_null(pc.equal(events.column("op"), PUBLISH), False)
    publications = events.filter(is_publish).select(PUBLICATIONS.names)
    updates = events.filter(pc.invert(is_publish)).select(UPDATES.names)
    return publications, updates


def as_events(half: pa.RecordBatch, op: str | None = None) -> pa.RecordBatch:
    """Return publications or updates as whole events; ``op`` where they have no such column."""
    columns = []
    for field in EVENTS:
        if field.name in half.schema.names:
            columns.append(half.column(field.name))
        elif field.name == "op":
            columns.append(pa.repeat(pa.scalar(op, pa.string()), half.num_rows))
        else:
            columns.append(pa.nulls(half.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def in_order(events: pa.RecordBatch, high_water: int) -> tuple[pa.RecordBatch, pa.RecordBatch, int]:
    """Keep the events whose seq is above all before it; return (kept, rejected, new high-water mark)."""
    seq = events.column("seq")
    if seq.null_count == 0 and events.num_rows:
        values = seq.to_numpy()
        if high_water < values[0] and values[-1] < AFTER_ALL_SEQS and np.all(values[1:] > values[:-1]):
            return events, nothing_rejected(), int(values[-1])
    kept, reasons = [], {}
    for row, value in enumerate(seq.to_pylist()):
        if reason := _why_not_after(value, high_water, "the one before it"):
            reasons[row] = reason
        else:
            high_water = value
            kept.append(row)
    taken = events.take(pa.array(kept, pa.int64()))
    return taken, rejection(events, reasons), high_water


def not_late(events: pa.RecordBatch, high_water: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Keep the events whose seq is above the high-water mark, in whatever order; return (kept, rejected)."""
    seq = events.column("seq")
    in_time = pc.and_(pc.greater(seq, high_water), pc.less(seq, AFTER_ALL_SEQS))
    late = ~pc.fill_null(in_time, False).to_numpy(zero_copy_only=False)
    if not late.any():
        return events, nothing_rejected()
    reasons = {
        int(row): _why_not_after(seq[int(row)].as_py(), high_water, "the last of the batch before") or "late"
        for row in np.flatnonzero(late)
    }
    return events.filter(pa.array(~late)), rejection(events, reasons)


def _why_not_after(seq: int | None, high_water: int, what: str) -> str | None:
    if seq is None:
        return "seq is missing"
    if seq <= high_water:
        return f"seq must be above {high_water}, {what}; got {seq}"
    return None if seq < AFTER_ALL_SEQS else f"seq must be below {AFTER_ALL_SEQS}; got {seq}"


def check_publications(batch: pa.RecordBatch) -> tuple[Publications, pa.RecordBatch]:
    """Part the valid publications of a batch from the rejected ones."""
    ids, texts = batch.column("id"), batch.column("text")
    lat, lon = frozen(_floats(batch.column("lat"))), frozen(_floats(batch.column("lon")))
    bad = np.empty(len(ids), np.bool_)
    n_bad = _mark_bad((lon, lat), offsets_of(ids), offsets_of(texts), bad)
    for strings in (ids, texts):
        if strings.null_count or not _is_valid(strings):
            unreadable = strings.is_null().to_numpy(zero_copy_only=False) | _not_utf8(strings)
            bad |= unreadable
            n_bad += int(np.count_nonzero(unreadable))
    rejected = nothing_rejected()
    if n_bad:
        reasons = {int(row): _why_not_publish(batch, int(row)) for row in np.flatnonzero(bad)}
        rejected = rejection(batch, reasons, op=PUBLISH)
        good = pa.array(~bad)
        batch, ids, texts = batch.filter(good), ids.filter(good), texts.filter(good)
        lat, lon = frozen(lat[~bad]), frozen(lon[~bad])
    return Publications(batch.column("seq").to_numpy(), ids, lon, lat, texts), rejected


@kernel
def _mark_bad(
    points: tuple[Float64s, Float64s], id_offsets: Array, text_offsets: Array, bad: npt.NDArray[np.bool_]
) -> int:
    """Mark the publications that are nowhere, or have an id or a text that is too short or too long."""
    lon, lat = points
    n_bad = 0
    for row in range(len(bad)):
        n_id = id_offsets[row + 1] - id_offsets[row]
        n_text = text_offsets[row + 1] - text_offsets[row]
        # Written so that NaN, for which every comparison is false, counts as nowhere.
        is_somewhere = -MAX_LON <= lon[row] <= MAX_LON and -MAX_LAT <= lat[row] <= MAX_LAT
        bad[row] = not (is_somewhere and 1 <= n_id <= MAX_ID_BYTES and 0 <= n_text <= MAX_TEXT_BYTES)
        n_bad += bad[row]
    return n_bad


def check_updates(batch: pa.RecordBatch) -> tuple[Updates, pa.RecordBatch]:
    """Part the valid subscribe and unsubscribe events of a batch from the rejected ones."""
    rejected = nothing_rejected()
    updates, is_bad = _checked(batch)
    if is_bad is not None:
        reasons = {int(row): _why_not_update(batch, int(row)) for row in np.flatnonzero(is_bad)}
        rejected = rejection(batch, reasons)
        updates, _ = _checked(batch.filter(pa.array(~is_bad)))
    return updates, rejected


def _checked(batch: pa.RecordBatch) -> tuple[Updates, _Mask | None]:
    """Check updates; return also which are bad, or None if none is."""
    ids, expressions = batch.column("id"), batch.column("expression")
    corners = [batch.column(name) for name in ("min_lon", "min_lat", "max_lon", "max_lat")]
    strings = strings_of(expressions)
    floats = [frozen(_floats(corner)) for corner in corners]
    columns = UpdateColumns(strings_of(batch.column("op")), strings_of(ids), strings, *floats)
    n = batch.num_rows
    found = capacity_for(n)
    n_bad, n_begins, n_idle, n_between = check(columns, found)
    is_subscribe, begins = found.is_subscribe[:n], found.begins[:n_begins]
    if n_idle:
        # Of an unsubscribe nothing was checked here, so nothing of it goes on.
        expressions = pc.if_else(pa.array(is_subscribe), expressions, pa.scalar(None, pa.string()))
    if n_between:
        spans = spans_of(expressions.take(pa.array(begins)))
    else:
        ends = found.ends[: n_begins + 1]
        first = int(ends[0])
        spans = Spans(strings.data[first : int(ends[-1])], frozen(ends - first))
    flags = pa.Array.from_buffers(_BOOL, n, [None, pa.py_buffer(found.subscribe_bits)])
    updates = Updates(batch.column("seq"), flags, ids, expressions, corners, begins, spans)
    return updates, found.is_bad[:n] if n_bad else None


def rejection(batch: pa.RecordBatch, reasons: dict[int, str], op: str | None = None) -> pa.RecordBatch:
    """Build rejected records for some rows of a batch; ``op`` where the batch has no such column."""
    if not reasons:
        return nothing_rejected()
    rows = pa.array(list(reasons), pa.int64())
    ops = pa.array([op] * len(reasons), pa.string())
    if op is None:
        ops = _shortened(_readable(batch.column("op").take(rows)))
    ids = _shortened(_readable(batch.column("id").take(rows)))
    columns = [batch.column("seq").take(rows), ops, ids, pa.array(list(reasons.values()), pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=REJECTED)


def rejected_records(records: Sequence[tuple[int | None, str | None, str | None, str]]) -> pa.RecordBatch:
    """Build rejected records from (seq, op, id, reason) rows."""
    if not records:
        return nothing_rejected()
    columns: list[Sequence[object]] = list(zip(*records, strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, REJECTED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=REJECTED)


def nothing_rejected() -> pa.RecordBatch:
    return _NOTHING_REJECTED


def _floats(column: pa.Array) -> Float64s:
    """Return numbers, with nan for null."""
    values: Float64s = column.to_numpy(zero_copy_only=False)
    return values


def _out_of(values: Float64s, bound: float) -> _Mask:
    # Written so that NaN, for which every comparison is false, counts as out.
    mask: _Mask = ~(np.abs(values) <= bound)
    return mask


def _n_bytes(strings: pa.Array) -> npt.NDArray[np.number[Any]]:
    """Return the lengths of strings, nan for null."""
    lengths: npt.NDArray[np.number[Any]] = pc.binary_length(strings).to_numpy(zero_copy_only=False)
    return lengths


def _is_bad(batch: pa.RecordBatch, name: str, n_bytes: npt.NDArray[np.number[Any]], least: int = 1) -> _Mask:
    """Mark the strings that are null, too short, too long or no UTF-8."""
    mask: _Mask = ~((n_bytes >= least) & (n_bytes <= max_bytes(name))) | _not_utf8(batch.column(name))
    return mask


def _not_utf8(strings: pa.Array) -> _Mask:
    """Mark the strings whose bytes are no UTF-8: Arrow takes them over from a file unread."""
    if _is_valid(strings):
        return np.zeros(len(strings), np.bool_)
    values = strings.cast(pa.binary()).to_pylist()
    return np.array([value is not None and not _is_utf8(value) for value in values], np.bool_)


def _is_valid(strings: pa.Array) -> bool:
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _readable(strings: pa.Array) -> pa.Array:
    """Replace what is no UTF-8, so that the record of a rejection can be read."""
    if not _not_utf8(strings).any():
        return strings
    values = strings.cast(pa.binary()).to_pylist()
    return pa.array([value and value.decode(errors="replace") for value in values], pa.string())


def _shortened(strings: pa.Array) -> pa.Array:
    """Keep only the beginning of strings that are too long for an id, as ``limits.shortened`` does."""
    is_too_long = pc.greater(pc.binary_length(strings), MAX_ID_BYTES)
    if not pc.any(is_too_long).as_py():
        return strings
    beginnings = pc.binary_join_element_wise(pc.utf8_slice_codeunits(strings, 0, EXCERPT), "\u2026", "")
    return pc.if_else(is_too_long, beginnings, strings)


def _value(batch: pa.RecordBatch, name: str, row: int) -> object:
    column = batch.column(name).slice(row, 1)
    return (_readable(column) if pa.types.is_string(column.type) else column)[0].as_py()


def _why_not_strings(batch: pa.RecordBatch, row: int, names: Sequence[str]) -> str | None:
    n_bytes = {name: pc.binary_length(batch.column(name)[row]).as_py() or 0 for name in names}
    if n_bytes["id"] == 0:
        return "id must be a non-empty string"
    for name in names:
        if reason := check_n_bytes(name, n_bytes[name]):
            return reason
        if _not_utf8(batch.column(name).slice(row, 1))[0]:
            return f"{name} is not valid UTF-8"
    return None


def _why_not_publish(batch: pa.RecordBatch, row: int) -> str:
    if reason := _why_not_strings(batch, row, ("id", "text")):
        return reason
    reason = check_point(batch.column("lon")[row].as_py(), batch.column("lat")[row].as_py())
    return reason or "text is missing"


def _why_not_update(batch: pa.RecordBatch, row: int) -> str:
    op = _value(batch, "op", row)
    if op not in OPERATIONS:
        return f"op must be one of {', '.join(OPERATIONS)}; got {quoted(op)}"
    checked = ("id", "expression") if op == SUBSCRIBE else ("id",)
    if reason := _why_not_strings(batch, row, checked):
        return reason
    if batch.column("expression")[row].as_py() is None:
        return "expression is missing"
    corners = (batch.column(name)[row].as_py() for name in ("min_lon", "min_lat", "max_lon", "max_lat"))
    return check_region(*corners) or "not a valid update"
