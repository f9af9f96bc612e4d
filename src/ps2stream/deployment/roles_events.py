"""The events of a deployment whose resident roles read its topics.

An update has its seq when it is acknowledged; a publication gets its position from a dispatcher, and only
matches tell it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.deployment.deployment_events import ANYWHERE, Demands
from ps2stream.deployment.kafka_events import KafkaEvents
from ps2stream.deployment.publication_lookup import KnownPublication
from ps2stream.kafka.encoding import records_of
from ps2stream.kafka.places import Place, Received
from ps2stream.kafka.reading import Span, read
from ps2stream.model.schemas import PUBLISH
from ps2stream.resident.positions import offset_of, update_seq
from ps2stream.resident.reading import Arrival
from ps2stream.resident.wire import Topic

#: Texts are looked for among this many of the newest publications.
_RECENT = 100_000


class RolesEvents(KafkaEvents):
    """The updates and publications of topics, in the order of resident roles."""

    _texts: dict[str, str] | None = None

    def append(self, events: pa.RecordBatch, demands: Demands = ANYWHERE) -> Sequence[int | None]:
        records = list(records_of(self._topics, events, demands.given()))
        offsets = self._send(records)
        is_update = [op != PUBLISH for op in events.column("op").to_pylist()]
        return [
            update_seq(offset) if is_own else None for is_own, offset in zip(is_update, offsets, strict=True)
        ]

    def updates(self, after_seq: int) -> Iterator[pa.RecordBatch]:
        topic = self._topics.updates
        first, end = self._ends.first(topic, 1)[0], self._ends.last(topic, 1)[0]
        start = max(first, offset_of(after_seq) if after_seq > 0 else 0)
        place = Place(Topic.UPDATES)
        for records in read(self._topics.kafka, Span(topic, 0, start, end)):
            received = [Received(place, record.offset, record.value, record.key) for record in records]
            updates = Arrival().updates(received).updates
            yield updates.filter(pc.greater(updates.column("seq"), after_seq))

    def publication(self, publication_id: str) -> KnownPublication:
        """Return the newest publication with an id, without its position."""
        return replace(super().publication(publication_id), seq=None)

    def text(self, publication_id: str, seq: int) -> str | None:
        if self._texts is None or publication_id not in self._texts:
            self._texts = {}
            for events in self.newest(_RECENT):
                ids, texts = events.column("id").to_pylist(), events.column("text").to_pylist()
                self._texts.update(zip(ids, texts, strict=True))
        return self._texts.get(publication_id)
