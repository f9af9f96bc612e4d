"""Where events of Kafka stand in the one order: their seqs.

A batch has some offsets of each partition. Its updates come before its publications, and the publications of
a partition before those of the next: so records are numbered, from how many there were before the batch, by
offsets alone. A record may hold many events (a packet, a FeatureCollection), which nobody can count without
reading it, so a seq is the number of the record and the row in it:

    seq = number of the record * 65,536 + row

It follows from which offsets the batch has (``Ledger.begin``) and from nothing else: whoever reads the batch
again, anywhere, gets the same seqs. With 2^47 records there would be no numbers left: at a million records a
second, after four years.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ps2stream.arrays import Int64s
from ps2stream.kafka.reading import Span
from ps2stream.kafka.topics import Topics

ROW_BITS = 16
#: The most events of one record.
MAX_ROWS = 1 << ROW_BITS

#: The next offset to read of the updates, then of each partition of the publications.
NextOffsets = tuple[int, ...]


class NumberedSpan(NamedTuple):
    """A span of a partition, and the number of its first record."""

    span: Span
    first_number: int

    def seq(self, offset: int, row: int = 0) -> int:
        """Return the seq of an event."""
        return (self.first_number + offset - self.span.start << ROW_BITS) + row

    def seqs(self, offsets: Int64s) -> Int64s:
        """Return the seqs of the first events of some records."""
        return self.first_number + offsets - self.span.start << ROW_BITS

    def offset(self, seq: int) -> int | None:
        """Return the offset of the record that has a seq; None if it is not in this span."""
        offset = (seq >> ROW_BITS) - self.first_number + self.span.start
        return offset if self.span.start <= offset < self.span.end else None


def numbered(topics: Topics, after: NextOffsets, upto: NextOffsets) -> list[NumberedSpan]:
    """Number the records of a batch: those of the updates, then those of the publications by partition."""
    after = padded(after, len(upto))
    number, spans = sum(after) + 1, []
    for place, (start, end) in enumerate(zip(after, upto, strict=True)):
        topic, partition = (topics.publications, place - 1) if place else (topics.updates, 0)
        spans.append(NumberedSpan(Span(topic, partition, start, end), number))
        number += end - start
    return spans


def last_seq(upto: NextOffsets) -> int:
    """Return a seq that no event up to some offsets exceeds, and all later ones do."""
    return (sum(upto) + 1 << ROW_BITS) - 1


def padded(offsets: Sequence[int], n: int) -> NextOffsets:
    """Add the beginnings of partitions that were added since."""
    return (*offsets, *(0,) * (n - len(offsets)))


def cut(place: NumberedSpan, most: int) -> list[NumberedSpan]:
    """Cut a span into pieces of at most so many offsets; numbers stay as they are."""
    span, first_number = place
    return [
        NumberedSpan(
            span._replace(start=start, end=min(start + most, span.end)), first_number + start - span.start
        )
        for start in range(span.start, span.end, most)
    ]
