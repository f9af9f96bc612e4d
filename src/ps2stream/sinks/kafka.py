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

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.kafka.claims import claim
from ps2stream.kafka.delivering import deliver, forget
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from ps2stream.sinks.match_records import MatchFormat, match_records


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
            deliver(self.topics, f"matches-{merger:03}", batch_id, _Outgoing(self, made))
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
class _Outgoing:
    """Matches as records of their topic; they are made anew each time somebody asks for them."""

    sink: KafkaSink
    pieces: list[pa.RecordBatch]

    def __iter__(self) -> Iterator[Outgoing]:
        for record in match_records(self.pieces, self.sink.n_partitions, self.sink.match_format):
            yield Outgoing(self.sink.topics.matches, *record)
