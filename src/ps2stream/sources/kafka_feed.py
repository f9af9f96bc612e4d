"""Topics of Kafka as a feed: updates in one order, publications in partitions.

*Who has subscribed is told of what is published afterwards.* Ends of the publications are asked for first,
the end of the updates then: an update that was acknowledged before a publication was sent is in the same
batch or in an earlier one, and the updates of a batch come before its publications. Where there are more
updates than a batch should have, it has nothing else.

An update that is acknowledged need not be committed for readers yet: brokers tell a publisher that its
transaction is over before they have marked it, and the open transaction of somebody else holds up what lies
behind it. So publications wait until all updates can be read that were acknowledged when their ends were
asked for.
"""

from __future__ import annotations

import json
import operator
import time
from dataclasses import dataclass, field

from ps2stream.kafka.ends import Ends
from ps2stream.kafka.numbering import cut, last_seq, numbered, padded
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.sources.feed import Offsets
from ps2stream.sources.kafka_range import KafkaRange
from ps2stream.sources.source import Source

#: A record may be a packet of thousands of events. Batches begin small, and grow as it shows that they may.
_FIRST_RECORDS = 256
_GROWTH = 4


@dataclass(slots=True)
class KafkaFeed:
    """The updates and publications of a deployment; a place is the next offset of each partition."""

    topics: Topics
    _ends: Ends = field(init=False)
    _sender: Sender = field(init=False)
    _most_records: int = _FIRST_RECORDS
    _n_records: int = 0  # of the newest range
    _n_wanted: int = 0  # events of it
    _looked_at: float = 0.0
    _unseen_at: float = 0.0
    _held: tuple[list[int], int] | None = None  # ends of publications, and of the updates they wait for

    def __post_init__(self) -> None:
        self._ends = Ends(self.topics.kafka)
        self._sender = Sender(self.topics.kafka)

    @property
    def identity(self) -> str:
        of = self._ends.identity(self.topics.updates, self.topics.publications)
        return f"topics {self.topics.prefix}.* of {of}"

    @property
    def look_every_s(self) -> float:
        # A look is two requests: every 10 ms they took 4 % of a core here, and as much of a broker.
        return 0.05

    def beginning(self) -> Offsets:
        return (
            *self._ends.first(self.topics.updates, 1),
            *self._ends.first(self.topics.publications, self._n_partitions()),
        )

    def end_within(self, after: Offsets, n_events: int) -> Offsets:
        self._unseen_at, self._looked_at = self._looked_at or time.time(), time.time()
        publications, updates = self._readable(after)
        after = padded(after, 1 + len(publications))
        most = min(n_events, self._most_records)
        self._n_wanted = n_events
        if updates - after[0] >= most:
            upto: Offsets = (after[0] + most, *after[1:])
        else:
            left = most - max(0, updates - after[0])
            upto = (max(updates, after[0]), *_shared(after[1:], publications, left))
        self._n_records = sum(upto) - sum(after)
        return upto if self._n_records else after

    def sources(self, after: Offsets, upto: Offsets, n_parts: int) -> tuple[Source, ...]:
        share = max(1, -(-(sum(upto) - sum(after)) // n_parts))
        places = [piece for place in numbered(self.topics, after, upto) for piece in cut(place, share)]
        return tuple(
            KafkaRange(self.topics, place, last_seq(upto), self._unseen_at or time.time()) for place in places
        )

    def settled(self, batch_id: int, after: Offsets, upto: Offsets) -> None:
        """Write down which records a batch has: so a seq leads to its record, and a record to its seq."""
        said = {"batch": batch_id, "after": after, "upto": upto}
        self._sender.send([Outgoing(self.topics.positions, 0, json.dumps(said).encode())])

    def learned(self, n_events: int) -> None:
        if self._n_records:
            per_record = max(1.0, n_events / self._n_records)
            fitting = max(1, int(self._n_wanted / per_record))
            self._most_records = min(fitting, self._most_records * _GROWTH)

    def _readable(self, after: Offsets) -> tuple[list[int], int]:
        """Return ends of publications, and an end of updates that is behind all that come before those."""
        if self._held is None:
            publications = self._ends.last(self.topics.publications, self._n_partitions())
            if any(map(operator.gt, publications, padded(after[1:], len(publications)))):
                (acknowledged,) = self._ends.acknowledged(self.topics.updates, 1)
                self._held = publications, acknowledged
        (updates,) = self._ends.last(self.topics.updates, 1)
        if self._held is None or updates < self._held[1]:
            return list(after[1:]), updates
        (publications, _), self._held = self._held, None
        return publications, updates

    def _n_partitions(self) -> int:
        """Return how many partitions the publications have; some may be added while a stream runs."""
        return self._ends.n_partitions(self.topics.publications)


def _shared(after: Offsets, ends: list[int], most: int) -> Offsets:
    """Take at most so many records, of all partitions alike as far as they have any."""
    upto, left = list(after), most
    open_ = [place for place, end in enumerate(ends) if end > upto[place]]
    while left > 0 and open_:
        share = max(1, left // len(open_))
        for place in open_:
            taken = min(share, ends[place] - upto[place], left)
            upto[place] += taken
            left -= taken
        open_ = [place for place in open_ if ends[place] > upto[place]]
    return tuple(upto)
