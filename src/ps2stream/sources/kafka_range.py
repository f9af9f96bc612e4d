"""A range of a partition of Kafka as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ps2stream.kafka.decoding import Decoded, decode_publications, decode_updates
from ps2stream.kafka.numbering import NumberedSpan
from ps2stream.kafka.reading import Record, first_offset, read
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import rejected_records
from ps2stream.model.schemas import PUBLICATIONS, UPDATES, empty
from ps2stream.sources.source import SourceBatch, UpdateBatch

_Decode = Callable[[Sequence[Record], NumberedSpan], Decoded]


@dataclass(frozen=True, slots=True)
class KafkaRange:
    """Records of publications or of updates; how many *events* they hold is known to those who read them.

    ``last_seq``: of the whole batch. ``unseen_at``: a time at which these records were not seen yet.
    """

    topics: Topics
    place: NumberedSpan
    last_seq: int
    unseen_at: float

    @property
    def is_local(self) -> bool:
        return False

    @property
    def n_publications(self) -> int:
        return 0 if self._has_updates else self.place.span.n_offsets

    @property
    def n_updates(self) -> int:
        return self.place.span.n_offsets if self._has_updates else 0

    def updates(self) -> Iterator[UpdateBatch]:
        if self._has_updates:
            for decoded in self._decoded(decode_updates, UPDATES):
                yield UpdateBatch(*decoded)

    def publications(self) -> Iterator[SourceBatch]:
        if not self._has_updates:
            for decoded in self._decoded(decode_publications, PUBLICATIONS):
                yield SourceBatch(*decoded)

    def waits(self, now: float) -> list[tuple[float, int]]:
        """Return how long ago these were not there yet, which is at least how long they have waited."""
        return [(max(0.0, now - self.unseen_at), self.place.span.n_offsets)]

    def forget(self) -> None:
        self.topics.trim({(self.place.span.topic, self.place.span.partition): self.place.span.end})

    @property
    def _has_updates(self) -> bool:
        return self.place.span.topic == self.topics.updates

    def _decoded(self, decode: _Decode, schema: pa.Schema) -> Iterator[Decoded]:
        kafka, span = self.topics.kafka, self.place.span
        first = first_offset(kafka, span)
        if first > span.start:
            # Nobody can bring them back; that they are gone must not hold up the others, nor pass unnoticed.
            upto = min(first, span.end) - 1
            reason = (
                f"records {span.start} to {upto} of partition {span.partition} of {span.topic} were deleted "
                "before they were read"
            )
            lost = rejected_records([(self.place.seq(span.start), None, None, reason)])
            yield Decoded(empty(schema), lost)
        for records in read(kafka, span._replace(start=max(first, span.start))):
            yield decode(records, self.place)
