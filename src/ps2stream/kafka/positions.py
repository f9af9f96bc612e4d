"""Which batch had a record, and so which seq its events have: what the job has written down.

A record of the topic of positions says which offsets a batch had. Batches follow each other, so one is found
by halving; nobody has to read them all. What is no longer kept, or not yet processed, has no seq that is
known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ps2stream.errors import StateError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.numbering import ROW_BITS, NextOffsets, NumberedSpan, numbered, padded
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.topics import Topics

#: Offsets have gaps of one where the client commits; some more are read at once, and kept.
_AT_ONCE = 64
_MOST_KEPT = 4_096


class SettledBatch(NamedTuple):
    """A batch and the offsets that it has."""

    batch_id: int
    after: NextOffsets
    upto: NextOffsets


@dataclass(slots=True)
class Positions:
    """The batches of a deployment, as far back as its topic of positions goes."""

    topics: Topics
    _ends: Ends = field(init=False)
    _kept: dict[int, SettledBatch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ends = Ends(self.topics.kafka)

    def newest(self) -> SettledBatch | None:
        """Return the newest batch that has begun; None before the first, or if it is not kept."""
        return self._at_or_before(self._ends.last(self.topics.positions, 1)[0] - 1)

    def all(self) -> Iterator[SettledBatch]:
        """Yield all batches that are kept, in order; one that ran again may come again."""
        [first], [last] = (
            self._ends.first(self.topics.positions, 1),
            self._ends.last(self.topics.positions, 1),
        )
        for records in read(self.topics.kafka, Span(self.topics.positions, 0, first, last)):
            for record in records:
                yield _batch_of(record.value or b"", self.topics)

    def place_of(self, topic: str, partition: int, offset: int) -> NumberedSpan | None:
        """Return the numbered span that holds a record; None if that is not known."""
        index = 0 if topic == self.topics.updates else 1 + partition

        def side(batch: SettledBatch) -> int:
            after, upto = padded(batch.after, index + 1), padded(batch.upto, index + 1)
            return -1 if offset < after[index] else int(offset >= upto[index])

        batch = self._found(side)
        return None if batch is None else numbered(self.topics, batch.after, batch.upto)[index]

    def place_with(self, seq: int) -> NumberedSpan | None:
        """Return the numbered span that holds an event; None if that is not known."""
        number = seq >> ROW_BITS

        def side(batch: SettledBatch) -> int:
            return -1 if number <= sum(batch.after) else int(number > sum(batch.upto))

        batch = self._found(side)
        if batch is None:
            return None
        places = numbered(self.topics, batch.after, batch.upto)
        return next((place for place in places if place.offset(seq) is not None), None)

    def _found(self, side: Callable[[SettledBatch], int]) -> SettledBatch | None:
        """Find the batch that is neither too early nor too late, by halving."""
        low = self._ends.first(self.topics.positions, 1)[0]
        high = self._ends.last(self.topics.positions, 1)[0] - 1
        while low <= high:
            middle = (low + high) // 2
            batch = self._at_or_before(middle)
            if batch is None:
                low = middle + 1
                continue
            where = side(batch)
            if where == 0:
                return batch
            low, high = (low, middle - 1) if where < 0 else (middle + 1, high)
        return None

    def _at_or_before(self, offset: int) -> SettledBatch | None:
        """Return the last batch that is written up to an offset."""
        if offset not in self._kept:
            first = max(self._ends.first(self.topics.positions, 1)[0], offset - _AT_ONCE + 1)
            span = Span(self.topics.positions, 0, first, offset + 1)
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            for records in read(self.topics.kafka, span):
                for record in records:
                    self._kept[record.offset] = _batch_of(record.value or b"", self.topics)
        found = [kept for kept in self._kept if offset - _AT_ONCE < kept <= offset]
        return self._kept[max(found)] if found else None


def _batch_of(value: bytes, topics: Topics) -> SettledBatch:
    try:
        said = json.loads(value)
        after, upto = (tuple(map(int, said[name])) for name in ("after", "upto"))
        return SettledBatch(int(said["batch"]), after, upto)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"a record of {topics.positions} cannot be read: {error!r}") from error
