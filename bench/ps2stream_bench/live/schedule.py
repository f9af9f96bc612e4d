"""Events as records that are due at times known before anything is sent.

Every event has a time at which it is due. A gateway gathers what was due in the last few milliseconds: the
publications become one packet (an Arrow IPC stream), each update a JSON record of its own. Latency counts
from when a publication was due, so gathering is part of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Flags, Float64s, Int64s
from ps2stream.kafka.encoding import records_of
from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import PUBLISH
from ps2stream.roles.packets import encode

#: A gateway sends so often what has come to it.
GATHER_S = 0.005
#: Of a flood nothing is due: packets have this many publications.
FLOOD_PACKET = 200

_PACKET = ["id", "lat", "lon", "text"]
_UPDATES = ["op", "id", "expression", "min_lon", "min_lat", "max_lon", "max_lat"]


class Tick(NamedTuple):
    """What a gateway sends at a time, in seconds from the start."""

    at_s: float
    records: list[Outgoing]


class Schedule(NamedTuple):
    """Ticks in order. ``due_s``: of each publication, whose id is ``NAME-row``."""

    name: str
    ticks: list[Tick]
    due_s: Float64s
    n_events: int


def scheduled(
    name: str, topics: Topics, events: pa.RecordBatch, due_s: Float64s, n_partitions: int
) -> Schedule:
    """Gather events by when they are due."""
    number = np.ceil(due_s / GATHER_S).astype(np.int64)
    bounds = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), events.num_rows]
    return _gathered(
        name,
        topics,
        events,
        due_s,
        (bounds, (number[bounds[:-1]] * GATHER_S).astype(np.float64)),
        n_partitions,
    )


def flood(
    name: str, topics: Topics, events: pa.RecordBatch, n_partitions: int, *, is_packed: bool = False
) -> Schedule:
    """Let all events be due at once; ``is_packed``: updates are in packets, too."""
    bounds = [*range(0, events.num_rows, FLOOD_PACKET), events.num_rows]
    at_s = np.zeros(len(bounds) - 1)
    groups = (bounds, at_s)
    due_s = np.zeros(events.num_rows)
    return _gathered(name, topics, events, due_s, groups, n_partitions, is_packed=is_packed)


def _gathered(
    name: str,
    topics: Topics,
    events: pa.RecordBatch,
    due_s: Float64s,
    groups: tuple[list[int], Float64s],
    n_partitions: int,
    *,
    is_packed: bool = False,
) -> Schedule:
    is_publication = pa.compute.equal(events.column("op"), PUBLISH).to_numpy(zero_copy_only=False)
    rows = np.cumsum(is_publication) - 1
    named = _named(events, name, rows)
    ticks = []
    bounds, at_s = groups
    for turn, (start, stop) in enumerate(itertools.pairwise(bounds)):
        part, mask = named.slice(start, stop - start), is_publication[start:stop]
        records = list(_records(topics, part, mask, turn % n_partitions, is_packed=is_packed))
        ticks.append(Tick(float(at_s[turn]), records))
    return Schedule(name, ticks, due_s[is_publication], events.num_rows)


def _named(events: pa.RecordBatch, name: str, rows: Int64s) -> pa.RecordBatch:
    """Give publications ids that tell where they are in the schedule."""
    ids = pa.array([f"{name}-{row}" for row in rows.tolist()])
    is_publication = pa.compute.equal(events.column("op"), PUBLISH)
    index = events.schema.get_field_index("id")
    return events.set_column(
        index, events.schema.field(index), pa.compute.if_else(is_publication, ids, events.column("id"))
    )


def _records(
    topics: Topics, part: pa.RecordBatch, mask: Flags, partition: int, *, is_packed: bool
) -> Iterator[Outgoing]:
    if mask.any():
        packet = part.filter(pa.array(mask)).select(_PACKET)
        yield Outgoing(topics.publications, partition, encode(packet))
    if not mask.all() and is_packed:
        updates = part.filter(pa.array(~mask)).select(_UPDATES)
        yield Outgoing(topics.updates, 0, encode(updates))
    elif not mask.all():
        yield from records_of(topics, part.filter(pa.array(~mask)))
