"""Who wrote which record of a topic: no client is told, but the files of the broker say it.

A batch of records begins with the id of its producer, which a transactional id keeps from one process to the
next. Those that write notes to the same partition are clients of one role: the first of them stands for it,
whoever ran it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kafka.produced import records_of, spans
from ps2stream.kafka.topics import Topics

#: The head of a batch (format 2): its first offset and its length; the epoch of its leader, the format, a
#: check sum, attributes, how many offsets it has but one, two times; and its producer.
_HEAD = struct.Struct(">qi iBIhi qq q")
_LENGTH_FROM = 12


class Written(NamedTuple):
    """A row of a record, and who wrote it: a role, or a producer of no role."""

    row: dict[str, Any]
    writer: int


def producers(log: Path) -> Iterator[tuple[range, int]]:
    """Yield the offsets of each batch in the directory of a partition, and the id of its producer."""
    for segment in sorted(log.glob("*.log")):
        with segment.open("rb") as file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                first, length, _, _, _, _, more, _, _, producer = _HEAD.unpack(head)
                yield range(first, first + more + 1), producer
                file.seek(_LENGTH_FROM + length - _HEAD.size, 1)


def written(topics: Topics, topic: str, data: Path) -> list[Written]:
    """Return the rows of all committed records of a topic, in the order of each partition."""
    rows: list[Written] = []
    roles = _roles(topics, data)
    for span in spans(topics, topic):
        batches = producers(data / f"{topic}-{span.partition}")
        who = {offset: producer for offsets, producer in batches for offset in offsets}
        for offset, found in records_of(topics, span):
            rows += [Written(row, roles.get(who[offset], who[offset])) for row in found]
    return rows


def _roles(topics: Topics, data: Path) -> dict[int, int]:
    """Return which producer stands for the role of each that has written notes."""
    found: dict[int, int] = {}
    for notes in data.glob(f"{topics.prefix}.notes-*"):
        clients = {producer for _, producer in producers(notes)}
        found |= dict.fromkeys(clients, min(clients, default=0))
    return found
