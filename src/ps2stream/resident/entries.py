"""Entries of the log: what the registrar decided, in the order in which it holds.

An entry is a segment (``registry/segments.py``) and what to know with it. It may be longer than a record of
Kafka can be; then it is cut into parts, and counts when its last part is there. A snapshot is an entry, too:
it stands for all entries before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Flags, Int64s
from ps2stream.arrow import concat
from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.registry.segments import SEGMENT
from ps2stream.resident.positions import NOTHING_YET
from ps2stream.roles.packets import decode, encode, fitting
from ps2stream.routing.routing import Routing

_HEADER = b"entry"


class EntryKind(StrEnum):
    """What came to pass."""

    UPDATES = auto()
    RELOCATE = auto()  # a plan differs from the one before in who owns what in some cells
    SWITCH = auto()  # later subscriptions go by another plan
    UNITE = auto()  # all subscriptions go by the newest plan
    SNAPSHOT = auto()
    STOP = auto()  # the roles of a run shall end


class PlanPlace(NamedTuple):
    """A plan by its number, and where it is in the store."""

    number: int
    key: str


@dataclass(frozen=True, slots=True)
class Entry:
    """``upto``: all with a seq up to it is decided. ``routing`` holds for positions beyond ``since``.

    ``generation`` counts the switches to new plans: the subscriptions of a routing's older part are those of
    the generation before. ``run``: whom a stop is meant for. ``horizon``: of a snapshot; a publication below
    it would not find what ended before.
    """

    kind: EntryKind
    upto: int
    routing: Routing[PlanPlace]
    since: int = BEFORE_ALL_SEQS
    generation: int = 0
    segment: pa.RecordBatch = field(default_factory=lambda: empty(SEGMENT))
    run: str = ""
    horizon: int = BEFORE_ALL_SEQS

    @property
    def older_generation(self) -> int | None:
        return None if self.routing.older is None else self.generation - 1

    def by_generation(self, seqs: Int64s) -> list[tuple[int, Flags]]:
        """Say for each generation of plans which of some subscriptions, by their beginnings, go by it."""
        older = self.older_generation
        if older is None:
            return [(self.generation, np.ones(len(seqs), np.bool_))]
        is_older = seqs <= self.routing.switch_seq
        return [(self.generation, ~is_older), (older, is_older)]


def first_entry(plan: PlanPlace) -> Entry:
    """Return the snapshot of a log that has nothing in it yet."""
    return Entry(EntryKind.SNAPSHOT, NOTHING_YET, Routing(plan))


def to_records(entry: Entry) -> Iterator[bytes]:
    """Cut an entry into parts that brokers take."""
    parts = list(fitting(entry.segment)) or [entry.segment]
    for number, part in enumerate(parts, 1):
        yield to_bytes(replace(entry, segment=part), is_last=number == len(parts))


def to_bytes(entry: Entry, *, is_last: bool = True) -> bytes:
    routing = entry.routing
    header = {
        "kind": entry.kind,
        "upto": entry.upto,
        "newest": routing.newest,
        "older": routing.older,
        "switch_seq": routing.switch_seq,
        "since": entry.since,
        "generation": entry.generation,
        "run": entry.run,
        "horizon": entry.horizon,
        "is_last": is_last,
    }
    return encode(entry.segment.replace_schema_metadata({_HEADER: json.dumps(header)}))


@dataclass(slots=True)
class EntryReader:
    """Put entries together from records."""

    _parts: list[pa.RecordBatch] = field(default_factory=list)

    def take(self, record: bytes | pa.Buffer) -> Entry | None:
        """Return an entry when its last part has come."""
        try:
            segment = decode(record)
            header = json.loads((segment.schema.metadata or {})[_HEADER])
            older = header["older"]
            routing = Routing(
                PlanPlace(*header["newest"]), older and PlanPlace(*older), int(header["switch_seq"])
            )
            self._parts.append(segment.replace_schema_metadata(None))
            if not header["is_last"]:
                return None
            parts, self._parts = self._parts, []
            return Entry(
                EntryKind(header["kind"]),
                int(header["upto"]),
                routing,
                int(header["since"]),
                int(header["generation"]),
                concat(parts),
                str(header["run"]),
                int(header["horizon"]),
            )
        except (KeyError, TypeError, ValueError, StopIteration, pa.ArrowException) as error:
            raise StateError(f"an entry of the log cannot be read: {error!r}") from error
