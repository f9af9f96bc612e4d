"""From records of Kafka to events: JSON or GeoJSON of any producer, and packets of Arrow.

A value is a packet if it begins as an Arrow IPC stream does, else it is JSON. Plain JSON objects, the usual
case, are read all at once (``kafka/plain_json.py``); what cannot be (GeoJSON, ids that are numbers, what is
no JSON) is read one by one, by the rules of ``model/records.py``. Both ways come to the same: which of them a
record goes depends on what else has come with it, and whoever reads it again must find the same events. What
cannot be read is rejected with the place of the record, and the others go on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrow import concat
from ps2stream.errors import SchemaError
from ps2stream.kafka.numbering import MAX_ROWS, NumberedSpan
from ps2stream.kafka.plain_json import may_all_be_plain, may_be_plain, read_publications, read_updates
from ps2stream.model.events import conform, rejected_records
from ps2stream.model.records import (
    BadRecordError,
    Row,
    demands_of,
    objects_in,
    publication_row,
    subscription_row,
    unsubscription_row,
)
from ps2stream.model.schemas import (
    PUBLICATIONS,
    PUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPDATES,
    empty,
)

#: How an Arrow IPC stream begins; no JSON text does.
_ARROW = b"\xff\xff\xff\xff"
#: This many records are read one by one, where Arrow's reader does not like one of them or would take longer.
_FEW = 32
_DEMANDS = ("after", "as_of")

#: What one packet of many may be to blame for.
_NOT_ALL = (BadRecordError, SchemaError, pa.ArrowException, OSError, ValueError)

_Rejected = tuple[int | None, str | None, str | None, str]
_RowOf = Callable[[object], Row]


class Record(Protocol):
    """As much of a record as its events are made of."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


class Decoded(NamedTuple):
    """Events (PUBLICATIONS or UPDATES) in the order of their seq, and what could not be read (REJECTED)."""

    events: pa.RecordBatch
    rejected: pa.RecordBatch


class _Parts(NamedTuple):
    """What is decoded so far."""

    batches: list[pa.RecordBatch]
    rejected: list[_Rejected]


class _Form(Enum):
    """How a record may be read."""

    PACKET = auto()
    PLAIN = auto()  # by Arrow's reader of JSON, as far as can be told from outside
    OTHER = auto()


def decode_publications(
    records: Sequence[Record], place: NumberedSpan, schema: pa.Schema = PUBLICATIONS
) -> Decoded:
    """Decode records of the publications' topic; one without an id is named after its place.

    ``schema``: PLACED_PUBLICATIONS where it matters which position they ask for.
    """
    return _named(_decoded(_parts_of(records, place, schema), schema, PUBLISH), place)


def decode_updates(records: Sequence[Record], place: NumberedSpan) -> Decoded:
    """Decode records of the updates' topic; one with a key and without a value ends the subscription."""
    return _decoded(_parts_of(records, place, UPDATES), UPDATES, None)


def _parts_of(records: Sequence[Record], place: NumberedSpan, schema: pa.Schema) -> _Parts:
    """Read records, each as it can be read, in their order."""
    parts = _Parts([], [])
    if len(records) > _FEW and may_all_be_plain([record.value for record in records]):
        _add_plain(records, place, schema, parts)
        return parts
    for form, run in itertools.groupby(records, lambda record: _form_of(record.value)):
        if form is _Form.PACKET:
            _add_packets(list(run), place, schema, parts)
        elif form is _Form.PLAIN:
            _add_plain(list(run), place, schema, parts)
        else:
            _add_objects(run, place, schema, parts)
    return parts


def _form_of(value: bytes | None) -> _Form:
    """Say how a value may be read."""
    if value is None:
        return _Form.OTHER
    if may_be_plain(value):
        return _Form.PLAIN
    return _Form.PACKET if value.startswith(_ARROW) else _Form.OTHER


def _decoded(parts: _Parts, schema: pa.Schema, op: str | None) -> Decoded:
    rejected = [(seq, op, id, reason) for seq, _, id, reason in parts.rejected]
    return Decoded(concat(parts.batches or [empty(schema)]), rejected_records(rejected))


def _named(decoded: Decoded, place: NumberedSpan) -> Decoded:
    """Give publications without an id one that is the same whenever they are read."""
    ids = decoded.events.column("id")
    if not ids.null_count:
        return decoded
    seqs = decoded.events.column("seq").to_pylist()
    names = [
        f"{place.span.partition}-{place.offset(seq)}" + (f"-{row}" if (row := seq % MAX_ROWS) else "")
        for seq in seqs
    ]
    index = PUBLICATIONS.get_field_index("id")
    columns = decoded.events.columns
    columns[index] = pc.coalesce(ids, pa.array(names, pa.string()))
    return decoded._replace(events=pa.RecordBatch.from_arrays(columns, schema=decoded.events.schema))


def _add_packets(records: list[Record], place: NumberedSpan, schema: pa.Schema, parts: _Parts) -> None:
    """Add the events of packets: all at once if they are alike: each alone has a fixed cost."""
    try:
        tables = [_read_packet(record.value) for record in records]
        seqs = [place.seq(record.offset) for record in records]
        joined = pa.concat_tables(tables)  # refuses those that differ
        _add_table(joined, _numbers(seqs, [table.num_rows for table in tables]), schema, parts)
    except _NOT_ALL:
        for record in records:
            _add_packet(record, place, schema, parts)


def _add_packet(record: Record, place: NumberedSpan, schema: pa.Schema, parts: _Parts) -> None:
    try:
        table = _read_packet(record.value)
        _add_table(table, _numbers([place.seq(record.offset)], [table.num_rows]), schema, parts)
    except (BadRecordError, SchemaError) as error:
        _reject(record, place, str(error), parts)
    except (pa.ArrowException, OSError, ValueError) as error:
        _reject(record, place, f"must be an Arrow IPC stream; {error}", parts)


def _read_packet(value: bytes | None) -> pa.Table:
    with pa.ipc.open_stream(value) as reader:
        table = reader.read_all()
    table.validate(full=True)  # what is read of a false one would be any memory of the process
    if table.num_rows > MAX_ROWS:
        raise BadRecordError(f"a packet must have at most {MAX_ROWS:,} rows; got {table.num_rows:,}")
    return table


def _numbers(firsts: list[int], counts: list[int]) -> pa.Array:
    """Return the seqs of the rows of packets, whose first ones are given."""
    starts = np.cumsum([0, *counts[:-1]])
    return pa.array(np.repeat(np.array(firsts, np.int64) - starts, counts) + np.arange(sum(counts)))


def _add_table(table: pa.Table, seqs: pa.Array, schema: pa.Schema, parts: _Parts) -> None:
    if "seq" in table.schema.names:
        table = table.drop_columns("seq")
    if "op" in schema.names and "op" not in table.schema.names:
        table = table.append_column("op", pa.repeat(pa.scalar(SUBSCRIBE, pa.string()), table.num_rows))
    for name in _DEMANDS:
        if name in schema.names and name not in table.schema.names:
            table = table.append_column(name, pa.nulls(table.num_rows, pa.int64()))
    numbered = conform(table.append_column("seq", seqs), schema, "a packet")
    parts.batches.extend(numbered.combine_chunks().to_batches())


def _add_plain(records: Sequence[Record], place: NumberedSpan, schema: pa.Schema, parts: _Parts) -> None:
    """Add events in JSON: all at once, or those halves of them that can be."""
    few = len(records) <= _FEW  # Arrow's reader takes as long to begin
    read = read_updates if "op" in schema.names else read_publications
    rows = None if few else read([record.value or b"" for record in records])
    if rows is not None:
        offsets = np.array([record.offset for record in records], np.int64)
        columns = [
            pa.array(place.seqs(offsets)) if name == "seq" else rows.column(name) for name in schema.names
        ]
        parts.batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    elif not few:
        half = len(records) // 2
        _add_plain(records[:half], place, schema, parts)
        _add_plain(records[half:], place, schema, parts)
    else:
        _add_objects(records, place, schema, parts)


def _add_objects(records: Iterable[Record], place: NumberedSpan, schema: pa.Schema, parts: _Parts) -> None:
    """Add the events of records in JSON or GeoJSON, one record after the other."""
    rows = [row for record in records for row in _rows_of(record, place, schema, parts)]
    if rows:
        parts.batches.append(pa.RecordBatch.from_pylist(rows, schema=schema))


def _rows_of(record: Record, place: NumberedSpan, schema: pa.Schema, parts: _Parts) -> list[Row]:
    row_of: _RowOf = _publication_row if "text" in schema.names else update_row
    rows: list[Row] = []
    try:
        if record.value is None:
            return [{**_without_value(record, schema), "seq": place.seq(record.offset)}]
        for number, (origin, value) in enumerate(objects_in(record.value, None)):
            if number == MAX_ROWS:
                raise BadRecordError(f"a record must have at most {MAX_ROWS:,} features")
            try:
                rows.append({**row_of(value), "seq": place.seq(record.offset, number)})
            except BadRecordError as error:
                _reject(record, place, f"{origin}: {error}" if str(origin) else str(error), parts, number)
    except BadRecordError as error:
        _reject(record, place, str(error), parts)
    return rows


def _publication_row(value: object) -> Row:
    return {**publication_row(value), **demands_of(value)}


def update_row(value: object) -> Row:
    """Read a subscription, or ``{"op": "unsubscribe", "id"}``; without an ``op`` it is the former."""
    op: Any = SUBSCRIBE
    if isinstance(value, dict):
        properties = value.get("properties")
        holder = properties if value.get("type") == "Feature" and isinstance(properties, dict) else value
        op = holder.get("op", SUBSCRIBE)
    if op == SUBSCRIBE:
        return {"op": SUBSCRIBE, **subscription_row(value)}
    if op != UNSUBSCRIBE:
        raise BadRecordError(f"op must be {SUBSCRIBE} or {UNSUBSCRIBE}; got {str(op)[:60]!r}")
    id = value.get("id") if isinstance(value, dict) else None
    if not isinstance(id, str):
        raise BadRecordError("the id of an unsubscribe must be a string")
    return {"op": UNSUBSCRIBE, **unsubscription_row(id)}


def _without_value(record: Record, schema: pa.Schema) -> Row:
    if "text" in schema.names or record.key is None:
        raise BadRecordError("the record has no value")
    try:
        return {"op": UNSUBSCRIBE, "id": record.key.decode()}
    except UnicodeDecodeError:
        raise BadRecordError("the key of a record without a value must be an id in UTF-8") from None


def _reject(record: Record, place: NumberedSpan, reason: str, parts: _Parts, row: int = 0) -> None:
    where = f"record {record.offset} of partition {place.span.partition} of {place.span.topic}"
    parts.rejected.append((place.seq(record.offset, row), None, None, f"{where}: {reason}"))
