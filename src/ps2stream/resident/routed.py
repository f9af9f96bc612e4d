"""Routed packets: publications on their way from a dispatcher to a worker, with what the worker must know.

A packet without publications is a heartbeat: it says how far its dispatcher is. Where roles write without
transactions, one that was replaced may write some more: its packets are of an older incarnation than those of
its successor, who reads the same publications, so workers pass over them.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.roles.packets import decode, encode

_HEADER = b"routed"


class RoutedHeader(NamedTuple):
    """``horizon``: no later packet of this dispatcher has a publication at a lower position.

    ``needs``: the log has to be applied up to here. ``generation``: of the plans that routed the packet, with
    ``switch_seq`` as in their Routing. ``appended``: when its publications were appended, in milliseconds
    since the epoch, and how many at each. ``incarnation``: of the dispatcher.
    """

    dispatcher: int
    horizon: int
    needs: int
    generation: int = 0
    has_older: bool = False
    switch_seq: int = BEFORE_ALL_SEQS
    appended: tuple[tuple[int, int], ...] = ()
    incarnation: int = 0


def to_record(packet: pa.RecordBatch, header: RoutedHeader) -> bytes:
    return encode(packet.replace_schema_metadata({_HEADER: json.dumps(header)}))


def from_record(record: bytes) -> tuple[pa.RecordBatch, RoutedHeader]:
    try:
        packet = decode(record)
        said = RoutedHeader(*json.loads((packet.schema.metadata or {})[_HEADER]))
        header = said._replace(appended=tuple((int(at), int(n)) for at, n in said.appended))
    except (KeyError, TypeError, ValueError, StopIteration, pa.ArrowException) as error:
        raise StateError(f"a routed packet cannot be read: {error!r}") from error
    return packet, header
