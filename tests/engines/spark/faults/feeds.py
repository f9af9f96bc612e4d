"""Where the events of a campaign come from and where their matches come to: all that differs by source.

A source is two things. Here, what the campaign has to know of it (``Feed``): how the job is told to read it,
how events get into it, what came out, and what should have. And an entry in ``job.py``: how a stream of it is
opened, and how far a batch of it has read, in the same words as ``Feed.position``.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from kafka.produced import delivered, ordered_events, produce
from laws.engines import outcome_of, sorted_outcome
from ps2stream.errors import BrokerError
from ps2stream.journal import Journal
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.store.contract import Store
from ps2stream.testing import oracle
from ps2stream.testing.oracle import Deliveries

#: How far something goes, by the parts of a source: a journal has one, topics have partitions.
Position = dict[str, int]


def is_beyond(position: Position, mark: Position) -> bool:
    """Say whether a batch that has read up to a position has anything from behind a mark."""
    return any(end > mark.get(part, 0) for part, end in position.items())


class Feed(Protocol):
    """A source of events, and what a job made of them."""

    #: Of the events, this share may be such as get rejected.
    invalid_share: float

    @property
    def job_arguments(self) -> list[str]:
        """Return how ``job.py`` is told of the source: its kind, and whatever that needs."""
        ...

    def append(self, events: pa.RecordBatch) -> None:
        """Append events, which are in the order of their seqs; return when they are there for good."""
        ...

    def position(self) -> Position:
        """Return how far events have been appended; a batch says in the same words how far it has read."""
        ...

    def expected(self) -> Deliveries:
        """Return what has to come of all that was appended, in the order that the source gave it."""
        ...

    def delivered(self) -> Deliveries:
        """Return what came of it: nothing is removed, so that what came twice is there twice."""
        ...


@dataclass(slots=True)
class JournalFeed:
    """A journal on the host of the driver, and a sink in a store."""

    directory: Path
    out: str
    invalid_share: float = 0.05
    _journal: Journal = field(init=False)
    _appended: list[pa.RecordBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._journal = Journal.open(self.directory, create=True)

    @property
    def job_arguments(self) -> list[str]:
        return ["journal", str(self.directory)]

    def append(self, events: pa.RecordBatch) -> None:
        self._journal.append_ordered(events)
        self._appended.append(events)

    def position(self) -> Position:
        return {"journal": self._journal.last().position}

    def expected(self) -> Deliveries:
        return sorted_outcome(oracle.run(pa.Table.from_batches(self._appended, EVENTS)))

    def delivered(self) -> Deliveries:
        sink = ParquetSink.at(self.out)
        return outcome_of(_rows(sink.matches), _rows(sink.rejected))


@dataclass(slots=True)
class KafkaFeed:
    """Topics of a deployment, which matches come to, too; a topic orders its records by itself.

    An append that failed may have happened all the same and is repeated: an event may be there twice. That is
    no harm: what counts, and what the oracle is asked about, is what the topics have in the end.
    """

    topics: Topics
    invalid_share: float = (
        0.0  # records of no sense are rejected before they have the order that oracles need
    )
    _n_appended: int = 0

    def __post_init__(self) -> None:
        self.topics.create()

    @classmethod
    def at(cls, servers: str, prefix: str) -> KafkaFeed:
        return cls(Topics(Kafka(servers), prefix))

    @property
    def job_arguments(self) -> list[str]:
        return ["kafka", self.topics.kafka.servers, self.topics.prefix]

    def append(self, events: pa.RecordBatch) -> None:
        is_there = False
        while not is_there:
            self._n_appended += 1
            with contextlib.suppress(BrokerError):
                produce(self.topics, pa.Table.from_batches([events]), seed=self._n_appended)
                is_there = True

    def position(self) -> Position:
        ends, found = Ends(self.topics.kafka), {}
        for topic in (self.topics.updates, self.topics.publications):
            for partition, end in enumerate(ends.last(topic, ends.n_partitions(topic))):
                found[f"{topic}/{partition}"] = end
        return found

    def expected(self) -> Deliveries:
        return sorted_outcome(oracle.run(ordered_events(self.topics)))

    def delivered(self) -> Deliveries:
        return outcome_of(
            *(delivered(self.topics, topic) for topic in (self.topics.matches, self.topics.rejected))
        )


def _rows(files: Store) -> list[dict[str, object]]:
    tables = [pq.read_table(pa.BufferReader(files.get(key))) for key in files.list()]
    return [row for table in tables for row in table.to_pylist()]
