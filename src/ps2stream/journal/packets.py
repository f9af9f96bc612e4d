"""Packets: events as two Arrow IPC streams, publications and updates, each with a checksum."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrow import concat, read_batch
from ps2stream.errors import JournalError
from ps2stream.model.events import as_events
from ps2stream.model.schemas import PUBLICATIONS, PUBLISH, UPDATES

_NO_PUBLICATIONS = pa.RecordBatch.from_pylist([], schema=PUBLICATIONS)
_NO_UPDATES = pa.RecordBatch.from_pylist([], schema=UPDATES)

#: An append of more is split. Small enough that a range divides well over several readers; larger
#: packets were not faster.
MAX_PACKET_EVENTS = 20_000

#: The same for long texts; SQLite takes blobs of up to 1 GB.
MAX_PACKET_BYTES = 32 * 1024 * 1024

# One append is written by one thread; Arrow's pool would only cost the hand-over.
_IPC_OPTIONS = pa.ipc.IpcWriteOptions(use_threads=False)

_HEADER = struct.Struct("<6q")


@dataclass(frozen=True, slots=True)
class EncodedPacket:
    """Events as bytes, without a position in a journal; an empty half is None."""

    first_seq: int
    last_seq: int
    n_publications: int
    n_updates: int
    updates: bytes | None
    publications: bytes | None

    def at_position(self, position: int, appended_us: int) -> JournalPacket:
        """Give the packet its position in a journal."""
        return JournalPacket(
            position=position,
            first_seq=self.first_seq,
            last_seq=self.last_seq,
            appended_us=appended_us,
            n_publications=self.n_publications,
            n_updates=self.n_updates,
            updates=self.updates,
            publications=self.publications,
        )


@dataclass(frozen=True, slots=True)
class PacketSpan:
    """The size of a packet, known without reading its payload."""

    position: int
    n_publications: int
    n_updates: int
    last_seq: int
    appended_us: int

    @property
    def n_events(self) -> int:
        return self.n_publications + self.n_updates


@dataclass(frozen=True, slots=True)
class JournalPacket:
    """A packet as read from a journal.

    A half is None when it has no events, was not asked for, or fails its checksum; in the last
    case ``damage`` names the packet and the half.
    """

    position: int
    first_seq: int
    last_seq: int
    appended_us: int
    n_publications: int
    n_updates: int
    updates: bytes | None
    publications: bytes | None
    damage: str | None = None


def cut_to_packets(events: pa.Table) -> Iterator[pa.RecordBatch]:
    """Cut events into batches that fit a packet, in order; a single event always fits."""
    start = 0
    while start < events.num_rows:
        part = events.slice(start, MAX_PACKET_EVENTS)
        while part.nbytes > MAX_PACKET_BYTES and part.num_rows > 1:
            part = part.slice(0, part.num_rows // 2)
        yield part.combine_chunks().to_batches()[0]
        start += part.num_rows


def encode_packet(events: pa.RecordBatch) -> EncodedPacket:
    """Encode at least one event, with increasing seqs, as a packet.

    Each kind keeps only its own columns: what a publish event says under ``expression`` is dropped.
    """
    published = pc.fill_null(pc.equal(events.column("op"), PUBLISH), False)
    n_publications = published.true_count
    n_updates = events.num_rows - n_publications
    return EncodedPacket(
        first_seq=events.column("seq")[0].as_py(),
        last_seq=events.column("seq")[-1].as_py(),
        n_publications=n_publications,
        n_updates=n_updates,
        updates=_half(events, UPDATES, pc.invert(published), n_updates),
        publications=_half(events, PUBLICATIONS, published, n_publications),
    )


def _half(events: pa.RecordBatch, schema: pa.Schema, chosen: pa.BooleanArray, n_chosen: int) -> bytes | None:
    if n_chosen == 0:
        return None
    half = events.select(schema.names)
    if n_chosen < events.num_rows:
        half = half.filter(chosen)
    # A caller's field may be "not null" or carry metadata; what is stored has our schema.
    stored = pa.RecordBatch.from_arrays(half.columns, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_IPC_OPTIONS) as writer:
        writer.write_batch(stored)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def decode_publications(blob: bytes | None) -> pa.RecordBatch:
    """Decode the publications of a packet without copying; none give an empty batch."""
    return _NO_PUBLICATIONS if blob is None else _decode(blob, PUBLICATIONS, "publications")


def decode_updates(blob: bytes | None) -> pa.RecordBatch:
    """Decode the updates of a packet without copying; none give an empty batch."""
    return _NO_UPDATES if blob is None else _decode(blob, UPDATES, "updates")


def decode_events(packet: JournalPacket) -> pa.RecordBatch:
    """Decode both halves of a packet as whole events, in the order of their seq."""
    publications, updates = decode_publications(packet.publications), decode_updates(packet.updates)
    events = concat([as_events(publications, PUBLISH), as_events(updates)])
    return events.sort_by("seq") if publications.num_rows and updates.num_rows else events


def _decode(blob: bytes, schema: pa.Schema, name: str) -> pa.RecordBatch:
    try:
        batch = read_batch(blob)
    except (pa.ArrowException, OSError) as error:
        raise JournalError(
            f"{name} of a packet must be an Arrow IPC stream with one batch; got {error!r}"
        ) from error
    if not batch.schema.equals(schema):
        came = ", ".join(f"{field.name} {field.type}" for field in batch.schema)
        raise JournalError(f"{name} of a packet must have the columns {schema.names}; got {came}")
    return batch


def checksum(packet: JournalPacket, payload: bytes | None) -> int:
    """Return the CRC-32 of one half of a packet together with the packet's own numbers.

    So a wrong number counts as damage too, and a payload does not pass under another packet.
    """
    header = _HEADER.pack(
        packet.position,
        packet.first_seq,
        packet.last_seq,
        packet.appended_us,
        packet.n_publications,
        packet.n_updates,
    )
    return zlib.crc32(payload or b"", zlib.crc32(header))


def verify(packet: JournalPacket, *, updates_crc32: int, publications_crc32: int | None) -> JournalPacket:
    """Return the packet with every half removed that fails its checksum; None skips that half."""
    updates, publications = packet.updates, packet.publications
    damaged = []
    if not _intact(packet, updates, updates_crc32):
        damaged.append("updates")
        updates = None
    if publications_crc32 is not None and not _intact(packet, publications, publications_crc32):
        damaged.append("publications")
        publications = None
    if not damaged:
        return packet
    damage = f"packet {packet.position} of the journal is damaged: wrong checksum of {' and '.join(damaged)}"
    return replace(packet, updates=updates, publications=publications, damage=damage)


def _intact(packet: JournalPacket, payload: bytes | None, expected: int) -> bool:
    try:
        return checksum(packet, payload) == expected
    except (struct.error, TypeError):
        # SQLite stores any type in any column: a damaged value may not even be a number or bytes.
        return False
