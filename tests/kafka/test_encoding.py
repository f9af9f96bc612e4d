"""Events are written as anybody would, and read as they were."""

from __future__ import annotations

from ps2stream.kafka.client import Kafka
from ps2stream.kafka.decoding import decode_publications, decode_updates
from ps2stream.kafka.encoding import records_of
from ps2stream.kafka.numbering import NumberedSpan
from ps2stream.kafka.reading import Record, Span
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import split
from ps2stream.testing.generators import random_events

TOPICS = Topics(Kafka("nowhere:1"), "t")


def test_events_are_read_as_they_were_written() -> None:
    events = random_events(300, seed=1, invalid_share=0.0).combine_chunks().to_batches()[0]
    publications, updates = split(events)
    written = list(records_of(TOPICS, events))
    for topic, wanted, decode in (
        (TOPICS.publications, publications, decode_publications),
        (TOPICS.updates, updates, decode_updates),
    ):
        values = [record for record in written if record.topic == topic]
        place = NumberedSpan(Span(topic, 0, 0, 300), 0)
        found = decode([Record(n, each.key, each.value) for n, each in enumerate(values)], place)
        assert found.rejected.num_rows == 0
        assert found.events.drop_columns("seq").to_pylist() == wanted.drop_columns("seq").to_pylist()
        assert wanted.num_rows > 50


def test_updates_have_the_key_of_their_subscription_and_publications_none() -> None:
    events = random_events(50, seed=2, invalid_share=0.0).combine_chunks().to_batches()[0]
    for record, event in zip(records_of(TOPICS, events), events.to_pylist(), strict=True):
        is_update = record.topic == TOPICS.updates
        assert record.key == (event["id"].encode() if is_update else None)
        assert record.partition == (0 if is_update else None)
