"""Routed packets: publications on their way from a dispatcher to a worker, with what the worker must know.

A packet without publications is a heartbeat: it says how far its dispatcher is. Dispatchers write without
transactions, so one that was replaced may write some more: its packets are of an older incarnation than
those of its successor, who greets all workers first, and workers pass over them. What the last step before
that had sent to some workers only comes again, to all of them (``handover.py``): packets say which records
they are made of, and workers pass over those that they have.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.roles.packets import decode, encode

_HEADER = b"routed"


class Source(NamedTuple):
    """Records ``[start, stop)`` of a partition of publications, all routed in one step.

    ``upto``: where events bring their order, later ones of the partition stand behind this.
    """

    partition: int
    start: int
    stop: int
    upto: int | None = None


class RoutedHeader(NamedTuple):
    """``horizon``: no later packet of this dispatcher has a publication at a lower position.

    ``needs``: the log has to be applied up to here. ``generation``: of the plans that routed the packet, with
    ``switch_seq`` as in their Routing. ``appended``: when its publications were appended, in milliseconds
    since the epoch, and how many at each. ``incarnation``: of the dispatcher. ``step``: of the incarnation,
    each later than the one before; ``sources``: what all its packets were made of. ``noted``: no successor of
    the dispatcher has to read what lies before this offset of the worker's partition.
    """

    dispatcher: int
    horizon: int
    needs: int
    generation: int = 0
    has_older: bool = False
    switch_seq: int = BEFORE_ALL_SEQS
    appended: tuple[tuple[int, int], ...] = ()
    incarnation: int = 0
    step: int = 0
    sources: tuple[Source, ...] = ()
    noted: int = 0


def to_record(packet: pa.RecordBatch, header: RoutedHeader) -> bytes:
    return encode(packet.replace_schema_metadata({_HEADER: json.dumps(header)}))


def from_record(record: bytes) -> tuple[pa.RecordBatch, RoutedHeader]:
    try:
        packet = decode(record)
        return packet, _header_in(packet.schema)
    except (KeyError, TypeError, ValueError, StopIteration, pa.ArrowException) as error:
        raise StateError(f"a routed packet cannot be read: {error!r}") from error


def header_of(record: bytes) -> RoutedHeader:
    """Read the header alone."""
    try:
        with pa.ipc.open_stream(record) as reader:
            return _header_in(reader.schema)
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise StateError(f"the header of a routed packet cannot be read: {error!r}") from error


def _header_in(schema: pa.Schema) -> RoutedHeader:
    said = RoutedHeader(*json.loads((schema.metadata or {})[_HEADER]))
    return said._replace(
        appended=tuple((int(at), int(n)) for at, n in said.appended),
        sources=tuple(Source(*each) for each in said.sources),
    )
