"""From records of topics to events with a place in the order.

Two orders. *Arrival*: updates are numbered by where they lie in their topic, and a publication gets its
position when it is routed. *Given*: packets bring seqs, and say how far they are complete; a replay uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Flags, Int64s
from ps2stream.arrow import concat
from ps2stream.kafka.decoding import Decoded, decode_publications, decode_updates
from ps2stream.kafka.numbering import ROW_BITS, NumberedSpan
from ps2stream.kafka.reading import Span
from ps2stream.model.events import nothing_rejected, rejection
from ps2stream.model.schemas import (
    BEFORE_ALL_SEQS,
    PLACED_PUBLICATIONS,
    PUBLICATIONS,
    PUBLISH,
    UPDATES,
    empty,
)
from ps2stream.resident.positions import last_update_seq, position_after, position_as_of
from ps2stream.resident.wire import Received
from ps2stream.roles.packets import decode, encode

_UPTO = b"upto"


class ReadUpdates(NamedTuple):
    """Updates (schema UPDATES), what could not be read, and the seq up to which they are complete."""

    updates: pa.RecordBatch
    rejected: pa.RecordBatch
    upto: int


class ReadPublications(NamedTuple):
    """Publications of one partition, in its order.

    ``needs``: the log has to be applied up to here before they have a position. ``upto``: later ones of the
    partition stand behind this seq; None where that is not known.
    """

    publications: pa.RecordBatch
    rejected: pa.RecordBatch
    needs: int
    upto: int | None = None


class Order(Protocol):
    """How events get their places."""

    @property
    def is_given(self) -> bool: ...

    def updates(self, records: Sequence[Received]) -> ReadUpdates: ...

    def publications(self, records: Sequence[Received]) -> ReadPublications: ...

    def placed(
        self, publications: pa.RecordBatch, applied: int, horizon: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Give publications their positions as ``seq``; return also those that are rejected.

        ``applied``: the log is known up to here. Below ``horizon`` nothing can be asked for any more.
        """
        ...


class Arrival:
    """Updates in the order of their topic; publications as they are routed."""

    is_given = False

    def updates(self, records: Sequence[Received]) -> ReadUpdates:
        decoded = decode_updates(records, _span(records))
        return ReadUpdates(
            _renumbered(decoded.events), _renumbered(decoded.rejected), last_update_seq(records[-1].offset)
        )

    def publications(self, records: Sequence[Received]) -> ReadPublications:
        decoded: Decoded = decode_publications(records, _span(records), PLACED_PUBLICATIONS)
        events = decoded.events
        needs = BEFORE_ALL_SEQS
        for name in ("after", "as_of"):
            if _has_any(events, name):
                needs = max(needs, int(events.column(name).drop_null().to_numpy().max()) & ~1)
        rejected = decoded.rejected
        return ReadPublications(events, _without_seq(rejected), needs)

    def placed(
        self, publications: pa.RecordBatch, applied: int, horizon: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        positions = np.full(publications.num_rows, position_after(applied), np.int64)
        if not any(_has_any(publications, name) for name in ("after", "as_of")):
            return _at(publications, positions), nothing_rejected()
        reasons: dict[int, str] = {}
        after, is_after = _demand(publications, "after")
        for row in np.flatnonzero(is_after & (after > position_after(applied))).tolist():
            reasons[row] = f"after {after[row]}: no update up to there has come; the newest was {applied}"
        as_of, is_as_of = _demand(publications, "as_of")
        positions[is_as_of] = [position_as_of(seq) for seq in as_of[is_as_of].tolist()]
        for row in np.flatnonzero(is_as_of & (positions > position_after(applied))).tolist():
            reasons[row] = f"as_of {as_of[row]}: no update up to there has come; the newest was {applied}"
        for row in np.flatnonzero(is_as_of & (positions < horizon)).tolist():
            reasons[row] = f"as_of {as_of[row]} lies before {horizon}, the first position that is kept"
        if not reasons:
            return _at(publications, positions), nothing_rejected()
        keep = np.ones(len(positions), np.bool_)
        keep[list(reasons)] = False
        rejected = _without_seq(rejection(publications, reasons, op=PUBLISH))
        return _at(publications.filter(pa.array(keep)), positions[keep]), rejected


class Given:
    """Events that bring their seqs, in packets of ours."""

    is_given = True

    def updates(self, records: Sequence[Received]) -> ReadUpdates:
        packets = [decode(record.value or b"") for record in records]
        batch = concat([packet.replace_schema_metadata(None) for packet in packets])
        return ReadUpdates(batch, nothing_rejected(), _upto(packets[-1]))

    def publications(self, records: Sequence[Received]) -> ReadPublications:
        packets = [decode(record.value or b"") for record in records]
        batch = concat([packet.replace_schema_metadata(None) for packet in packets])
        # All updates up to the last of these are needed, whether any is there or not.
        needs = int(batch.column("seq").to_numpy().max()) - 1 if batch.num_rows else BEFORE_ALL_SEQS
        return ReadPublications(batch, nothing_rejected(), needs, _upto(packets[-1]))

    def placed(
        self, publications: pa.RecordBatch, applied: int, horizon: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        return publications, nothing_rejected()


def given_packet(events: pa.RecordBatch, upto: int) -> bytes:
    """Return updates or publications as a record; later ones of the partition stand behind a seq."""
    return encode(events.replace_schema_metadata({_UPTO: str(upto)}))


def no_updates() -> ReadUpdates:
    return ReadUpdates(empty(UPDATES), nothing_rejected(), BEFORE_ALL_SEQS)


def _has_any(publications: pa.RecordBatch, name: str) -> bool:
    column = publications.column(name)
    return bool(column.null_count < len(column))


def _demand(publications: pa.RecordBatch, name: str) -> tuple[Int64s, Flags]:
    """Return what publications demand, and which of them do."""
    column = publications.column(name)
    return column.fill_null(0).to_numpy(), column.is_valid().to_numpy(zero_copy_only=False)


def _upto(packet: pa.RecordBatch) -> int:
    return int(packet.schema.metadata[_UPTO])


def _at(publications: pa.RecordBatch, positions: Int64s) -> pa.RecordBatch:
    columns = [
        pa.array(positions) if name == "seq" else publications.column(name) for name in PUBLICATIONS.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PUBLICATIONS)


def _span(received: Sequence[Received]) -> NumberedSpan:
    """Number records by their offsets: seqs of ours are made of that."""
    first, last = received[0], received[-1]
    return NumberedSpan(
        Span(first.place.topic, first.place.partition, first.offset, last.offset + 1), first.offset
    )


def _renumbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn offset and row of updates into seqs (``positions.update_seq``)."""
    if not batch.num_rows:
        return batch
    numbers = batch.column("seq").to_numpy(zero_copy_only=False)
    offsets, rows = numbers >> ROW_BITS, numbers & ((1 << ROW_BITS) - 1)
    seqs = (offsets + 1 << 18) | rows << 1
    index = batch.schema.get_field_index("seq")
    return batch.set_column(index, batch.schema.field(index), pa.array(seqs.astype(np.int64)))


def _without_seq(rejected: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out seqs that are none: what could not be read has no position."""
    if not rejected.num_rows:
        return rejected
    index = rejected.schema.get_field_index("seq")
    return rejected.set_column(index, rejected.schema.field(index), pa.nulls(rejected.num_rows, pa.int64()))
