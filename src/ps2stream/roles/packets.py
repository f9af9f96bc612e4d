"""Packets: what crosses from one role to the next.

A packet is a record batch for one destination. Engines that cross processes carry it as an Arrow
IPC stream, so a shuffle moves a few large values and not every tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum, auto
from typing import NamedTuple

import pyarrow as pa

from ps2stream.arrow import read_batch

#: Brokers of Kafka take a megabyte unless they are told otherwise; what compression saves nobody can tell.
MAX_PACKET_BYTES = 900_000
#: What a packet takes beside its rows, at the most: names, lengths, padding.
_OVERHEAD_BYTES = 4_096

#: Publications on their way from a dispatcher to a worker; `probes` is ``Probes.owned``.
ROUTED = pa.schema(
    [
        ("seq", pa.int64()),
        ("id", pa.string()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("terms", pa.large_list(pa.uint64())),
        ("probes", pa.large_list(pa.uint8())),
    ]
)

#: Publications as load adjustment looks at them.
SAMPLED = pa.schema([("lon", pa.float64()), ("lat", pa.float64()), ("terms", pa.large_list(pa.uint64()))])

#: Work and contents of a worker's grid^t cells in one batch; cells without a publication are left out.
CELL_LOADS = pa.schema(
    [
        ("cell", pa.int32()),
        ("publications", pa.int32()),
        ("lookups", pa.int64()),
        ("candidates", pa.int64()),
        ("matches", pa.int64()),
        ("subscriptions", pa.int64()),
        ("bytes", pa.int64()),
    ]
)

#: Matches on their way from a worker to the merger, which knows the ids of subscriptions: a row for each
#: publication that has any, with the ascending seqs of the subscriptions.
FOUND = pa.schema(
    [
        ("publication_seq", pa.int64()),
        ("publication_id", pa.string()),
        ("subscription_seqs", pa.large_list(pa.int64())),
    ]
)

#: In the metadata of cell loads: whose they are.
WORKER = b"worker"


class PacketKind(StrEnum):
    """What a packet holds."""

    ROUTED_PUBLICATIONS = auto()
    REJECTED_RECORDS = auto()
    REPORT = auto()
    COMPILED = auto()
    LOADS = auto()
    SAMPLE = auto()
    ANCHOR = auto()  # nothing: it keeps a worker where it is


class Packet(NamedTuple):
    """A packet on its way to another process."""

    kind: PacketKind
    payload: bytes


#: Made once: pyarrow asks the environment for options otherwise, each time.
_WRITING = pa.ipc.IpcWriteOptions()


def encode(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITING) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode(payload: pa.Buffer | bytes) -> pa.RecordBatch:
    """Read the one batch of a packet; its columns view the payload."""
    return read_batch(payload)


def fitting(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut rows into packets that brokers take; a single one always fits.

    They are slices where that is enough: ``encode`` writes of most buffers what a slice shows, and a copy
    would cost more than that.
    """
    n_bytes = pa.ipc.get_record_batch_size(rows)
    if n_bytes <= MAX_PACKET_BYTES:
        if rows.num_rows:
            yield rows
        return
    n_each = max(1, int(MAX_PACKET_BYTES * rows.num_rows / n_bytes))
    for start in range(0, rows.num_rows, n_each):
        part = _alone(rows.slice(start, n_each))
        if pa.ipc.get_record_batch_size(part) > MAX_PACKET_BYTES and part.num_rows > 1:
            half = part.num_rows // 2
            yield from fitting(part.slice(0, half))
            yield from fitting(part.slice(half))
        else:
            yield part


def _alone(part: pa.RecordBatch) -> pa.RecordBatch:
    """Copy a slice that Arrow would write with more than it shows.

    Where the outer lists of a slice are all empty, as in rows that only drop subscriptions, it writes the
    offsets of all inner lists of the whole batch.
    """
    if pa.ipc.get_record_batch_size(part) <= 1.1 * part.nbytes + _OVERHEAD_BYTES:
        return part
    return part.take(pa.array(range(part.num_rows), pa.int64()))
