"""Read the matches of a deployment's topics as they come, each once: what was committed, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ps2stream.deployment.match_reader import POLL_S, Wanted, followed
from ps2stream.errors import StateError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Record, Span, read
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import conform
from ps2stream.model.schemas import MATCHES
from ps2stream.roles.packets import decode


class KafkaMatchReader:
    """Read each record of the matches' topic once."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._ends = Ends(topics.kafka)
        self._next: list[int] = []

    def has_any(self) -> bool:
        """Say whether there is anything to read, now or before."""
        return any(self._last())

    def skip(self) -> None:
        """Leave out what is there now."""
        self._next = self._last()

    def read(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield the matches that came since the last time, in the order of publications.

        Each partition is in order by itself; what one call gives is put in order as a whole.
        """
        parts = [MATCHES.empty_table()]
        last = self._last()
        first = self._ends.first(self._topics.matches, len(last))
        starts = [*self._next, *first[len(self._next) :]]
        for partition, (start, kept, end) in enumerate(zip(starts, first, last, strict=True)):
            span = Span(self._topics.matches, partition, max(start, kept), end)
            for records in read(self._topics.kafka, span):
                parts.append(pa.Table.from_batches(map(wanted.of, self._decoded(records)), MATCHES))
        self._next = last
        found = pa.concat_tables(parts).sort_by(
            [("publication_seq", "ascending"), ("subscription_seq", "ascending")]
        )
        yield from (batch for batch in found.to_batches() if batch.num_rows)

    def follow(
        self, wanted: Wanted, *, timeout_s: float | None = None, poll_s: float = POLL_S
    ) -> Iterator[pa.RecordBatch]:
        """Yield matches as they come, until none came for ``timeout_s``."""
        return followed(lambda: self.read(wanted), timeout_s, poll_s)

    def _last(self) -> list[int]:
        topic = self._topics.matches
        return self._ends.last(topic, self._ends.n_partitions(topic))

    def _decoded(self, records: Sequence[Record]) -> Iterator[pa.RecordBatch]:
        """Decode packets as they are, and objects a run at a time."""
        objects = []
        for record in records:
            value = record.value or b""
            try:
                if value.startswith(b"{"):
                    objects.append(json.loads(value))
                    continue
                matches = conform(decode(value), MATCHES)
            except (ValueError, pa.ArrowException, OSError, StopIteration) as error:
                raise StateError(
                    f"record {record.offset} of {self._topics.matches} cannot be read: {error}"
                ) from error
            yield matches
        if objects:
            try:
                yield pa.RecordBatch.from_pylist(objects, schema=MATCHES)
            except (pa.ArrowException, TypeError) as error:
                raise StateError(f"a record of {self._topics.matches} cannot be read: {error}") from error
