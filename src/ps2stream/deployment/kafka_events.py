"""The events of a deployment that has topics of Kafka.

The job gives seqs when it takes records in, batch by batch. Of a record that a batch has had the seq follows
from what the job has written down (``kafka/positions.py``); of an update that is still waiting, it is the one
that it would get if all that wait were in the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrow import concat
from ps2stream.deployment.deployment_events import ANYWHERE, Demands
from ps2stream.deployment.publication_lookup import KnownPublication, valid_publication
from ps2stream.errors import JournalError, quoted
from ps2stream.kafka.decoding import decode_publications, decode_updates
from ps2stream.kafka.encoding import records_of
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.numbering import NumberedSpan, last_seq, numbered, padded
from ps2stream.kafka.positions import Positions
from ps2stream.kafka.reading import Record, Span, first_offset, read
from ps2stream.kafka.sending import AtomicSender, Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import as_events
from ps2stream.model.schemas import PUBLISH
from ps2stream.state.ledger import Ledger

#: This many offsets are looked through at once for a publication.
_AT_ONCE = 20_000
#: A record number beyond all that a batch will ever have.
_UNKNOWN = 1 << 46


class KafkaEvents:
    """The updates and publications of a deployment's topics."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._ends = Ends(topics.kafka)
        self._positions = Positions(topics)
        self._single: Sender | None = None
        self._sender = AtomicSender(topics.kafka, f"{topics.prefix}.publisher")

    def __str__(self) -> str:
        return f"the topics {self._topics.prefix}.* at Kafka {self._topics.kafka.servers}"

    def append(self, events: pa.RecordBatch, demands: Demands = ANYWHERE) -> Sequence[int | None]:
        demands.refuse(f"{self} have no resident roles")
        return [None] * len(self._send(list(records_of(self._topics, events))))

    def _send(self, records: list[Outgoing]) -> list[int]:
        """Write records, all or none; return their offsets."""
        if len(records) == 1:  # nothing to be all of
            self._single = self._single or Sender(self._topics.kafka)
            places = self._single.send(records)
        else:
            places = self._sender.send(records)
        return [offset for _, offset in places]

    def last_seq(self) -> int | None:
        topic = self._topics.publications
        publications = self._ends.last(topic, self._ends.n_partitions(topic))
        ends = (*self._ends.last(self._topics.updates, 1), *publications)
        return last_seq(ends) if any(ends) else None

    def lags(self, ledger: Ledger) -> dict[str, int]:
        topic = self._topics.publications
        ends = self._ends.last(topic, self._ends.n_partitions(topic))
        updates, *done = padded(ledger.done() or self._beginning(), 1 + len(ends))
        waiting = sum(max(0, end - next_) for end, next_ in zip(ends, done, strict=True))
        (update_end,) = self._ends.last(self._topics.updates, 1)
        return {self._topics.updates: max(0, update_end - updates), topic: waiting}

    def updates(self, after_seq: int) -> Iterator[pa.RecordBatch]:
        places = self._update_places(after_seq)
        first = max(self._ends.first(self._topics.updates, 1)[0], places[0].span.start)
        whole = Span(self._topics.updates, 0, first, places[-1].span.end)
        for records in read(self._topics.kafka, whole):
            for place, run in _by_place(records, places):
                updates = decode_updates(run, place).events
                yield updates.filter(pc.greater(updates.column("seq"), after_seq))

    def publication(self, publication_id: str) -> KnownPublication:
        found = None
        for publications in self._newest_publications():
            chosen = publications.filter(pc.equal(publications.column("id"), publication_id))
            if chosen.num_rows:
                found = chosen.slice(chosen.num_rows - 1)
                break
        if found is None:
            raise JournalError(f"{self} have no publication with the id {quoted(publication_id)}")
        known = valid_publication(found)
        assert known.seq is not None
        return known if self._positions.place_with(known.seq) else replace(known, seq=None)

    def text(self, publication_id: str, seq: int) -> str | None:
        place = self._positions.place_with(seq)
        if place is None:
            return None
        offset = place.offset(seq)
        assert offset is not None  # the place has it
        if offset < first_offset(self._topics.kafka, place.span):
            return None
        span = place.span._replace(start=offset, end=offset + 1)
        for records in read(self._topics.kafka, span):
            publications = decode_publications(records, place).events
            found = publications.filter(pc.equal(publications.column("seq"), seq))
            if found.num_rows:
                text: str | None = found.column("text")[0].as_py()
                return text
        return None

    def newest(self, n_events: int) -> Iterator[pa.RecordBatch]:
        n_seen, held = 0, []
        for publications in self._newest_publications():
            held.append(as_events(publications, PUBLISH))
            n_seen += publications.num_rows
            if n_seen >= n_events:
                break
        # Numbered as they come: pieces are read from the end, and partitions one after the other.
        start = 0
        for events in reversed(held):
            seqs = pa.array(range(start, start + events.num_rows), pa.int64())
            start += events.num_rows
            yield events.set_column(0, "seq", seqs)

    def pruned(self) -> int:
        return self._ends.first(self._topics.updates, 1)[0]

    def close(self) -> None:
        """Do nothing: clients end with who holds them."""

    def _update_places(self, after_seq: int) -> list[NumberedSpan]:
        """Return numbered spans of the updates, without a gap, that hold all beyond a seq."""
        newest = self._positions.newest()
        if newest is None:
            batches, upto = [], self._beginning()
        elif after_seq >= last_seq(newest.after):
            batches, upto = [newest], newest.upto
        else:
            batches, upto = list(self._positions.all()), newest.upto
        places = [numbered(self._topics, batch.after, batch.upto)[0] for batch in batches]
        waiting = (max(upto[0], self._ends.last(self._topics.updates, 1)[0]), *upto[1:])
        return [*places, numbered(self._topics, upto, waiting)[0]]

    def _newest_publications(self) -> Iterator[pa.RecordBatch]:
        """Yield publications in pieces, the newest piece of every partition before older ones."""
        topic, kafka = self._topics.publications, self._topics.kafka
        n_partitions = self._ends.n_partitions(topic)
        first, last = self._ends.first(topic, n_partitions), self._ends.last(topic, n_partitions)
        n_back = 0
        while any(end - n_back > start for start, end in zip(first, last, strict=True)):
            for partition in range(n_partitions):
                upto = last[partition] - n_back
                start = max(first[partition], upto - _AT_ONCE)
                pieces = [
                    decode_publications(run, place).events
                    for records in read(kafka, Span(topic, partition, start, upto))
                    for place, run in self._placed(topic, partition, records)
                ]
                if pieces:
                    yield concat(pieces)
            n_back += _AT_ONCE

    def _placed(
        self, topic: str, partition: int, records: list[Record]
    ) -> Iterator[tuple[NumberedSpan, list[Record]]]:
        """Part records by batch; those that no known batch has had get numbers that no event has."""
        while records:
            offset = records[0].offset
            place = self._positions.place_of(topic, partition, offset)
            if place is None:
                span = Span(topic, partition, offset, records[-1].offset + 1)
                place = NumberedSpan(span, _UNKNOWN)
            n = sum(record.offset < place.span.end for record in records)
            yield place, records[:n]
            records = records[n:]

    def _beginning(self) -> tuple[int, ...]:
        topic = self._topics.publications
        return (
            *self._ends.first(self._topics.updates, 1),
            *self._ends.first(topic, self._ends.n_partitions(topic)),
        )


def _by_place(
    records: list[Record], places: list[NumberedSpan]
) -> Iterator[tuple[NumberedSpan, list[Record]]]:
    """Part records by the span that each is in; both are in order."""
    at = 0
    for place in places:
        start = at
        while at < len(records) and records[at].offset < place.span.end:
            at += 1
        if at > start:
            yield place, records[start:at]
