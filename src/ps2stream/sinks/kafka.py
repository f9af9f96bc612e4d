"""The Kafka sink: matches and rejected records as records of topics, each once for ``read_committed``
readers.

Matches go to a partition by the id of their subscription, as packets of Arrow (schema MATCHES) or, where
asked for, as a JSON object each with the id as its key. Unlike files, records cannot be replaced: what is
written first counts, and whoever writes the same part of a batch again writes nothing. Both sinks come to the
same, since a part is always the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.errors import StateError
from ps2stream.kafka.claims import claim
from ps2stream.kafka.delivering import deliver, forget
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from ps2stream.roles.packets import encode, fitting
from ps2stream.sinks.partitions import partitions_of

MatchFormat = Literal["arrow", "json"]


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Topics of a deployment; a process may send it to another, on any host."""

    topics: Topics
    n_partitions: int  # of the matches
    match_format: MatchFormat = "arrow"

    @classmethod
    def of(cls, topics: Topics, match_format: MatchFormat = "arrow") -> KafkaSink:
        """Return the sink of topics that exist."""
        n_partitions = topics.n_partitions(topics.matches)
        if not n_partitions:
            raise StateError(f"there is no topic {topics.matches} at Kafka {topics.kafka.servers}")
        return cls(topics, n_partitions, match_format)

    def claim(self, job_id: str) -> None:
        claim(self.topics, job_id)

    def write_matches(self, batch_id: int, merger: int, pieces: Iterable[pa.RecordBatch]) -> int:
        # All of them first: a transaction should not be open while they are made, and may be tried again.
        made = [piece for piece in pieces if piece.num_rows]
        if made:
            records = _Records(self, made)
            deliver(self.topics, f"matches-{merger:03}", batch_id, records)
        return sum(piece.num_rows for piece in made)

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        if rejected.num_rows:
            records = [
                Outgoing(self.topics.rejected, 0, json.dumps(row).encode()) for row in rejected.to_pylist()
            ]
            deliver(self.topics, f"rejected-{source}", batch_id, records)

    def finish(self) -> None:
        """Do nothing: a topic can be read as it is."""

    def clear(self) -> None:
        """Delete what an earlier job delivered and wrote down, and its claim."""
        forget(self.topics)
        ends, looked = {}, Ends(self.topics.kafka)
        for topic in (self.topics.matches, self.topics.rejected, self.topics.positions, self.topics.job):
            # Also what readers do not see yet.
            for number, end in enumerate(looked.acknowledged(topic, self.topics.n_partitions(topic))):
                ends[topic, number] = end
        self.topics.trim(ends)


@dataclass(frozen=True, slots=True)
class _Records:
    """Matches as records; they are made anew each time somebody asks for them."""

    sink: KafkaSink
    pieces: list[pa.RecordBatch]

    def __iter__(self) -> Iterator[Outgoing]:
        for piece in self.pieces:
            partitions = partitions_of(piece.column("subscription_id"), self.sink.n_partitions)
            if self.sink.match_format == "json":
                yield from self._objects(piece, partitions)
            else:
                yield from self._packets(piece, partitions)

    def _objects(self, piece: pa.RecordBatch, partitions: Int64s) -> Iterator[Outgoing]:
        for row, partition in zip(piece.to_pylist(), partitions.tolist(), strict=True):
            key = row["subscription_id"].encode()
            yield Outgoing(self.sink.topics.matches, partition, json.dumps(row).encode(), key)

    def _packets(self, piece: pa.RecordBatch, partitions: Int64s) -> Iterator[Outgoing]:
        for partition in np.unique(partitions).tolist():
            rows = piece.filter(pa.array(partitions == partition))
            for part in fitting(rows):
                yield Outgoing(self.sink.topics.matches, partition, encode(part))
