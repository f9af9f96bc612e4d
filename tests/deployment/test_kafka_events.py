"""The events of topics have the seqs that batches gave them, for whoever asks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ps2stream.deployment.kafka_events import KafkaEvents
from ps2stream.errors import JournalError
from ps2stream.kafka.positions import Positions
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, PUBLISH, UNSUBSCRIBE
from ps2stream.registry.log import SubscriptionLog
from ps2stream.sources.feed import Offsets
from ps2stream.sources.kafka_feed import KafkaFeed
from ps2stream.state.ledger import BatchRange, Ledger
from ps2stream.store.memory import MemoryStore


def publications(*ids: str) -> pa.RecordBatch:
    rows = [{"op": PUBLISH, "id": id, "lat": 1.0, "lon": 2.0, "text": f"text of {id}"} for id in ids]
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS)


def updates(*ids: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"op": UNSUBSCRIBE, "id": id} for id in ids], schema=EVENTS)


def settle(feed: KafkaFeed, batch_id: int, after: Offsets) -> Offsets:
    """Begin a batch as a job does, with all that is committed."""
    while (upto := feed.end_within(after, 100)) == after:
        pass
    feed.settled(batch_id, after, upto)
    return upto


def seqs_by_id(events: KafkaEvents, after_seq: int = -1) -> dict[str, int]:
    return {
        id: seq
        for batch in events.updates(after_seq)
        for id, seq in zip(batch.column("id").to_pylist(), batch.column("seq").to_pylist(), strict=True)
    }


def test_seqs_are_those_of_the_batches_and_of_what_waits_those_that_follow(topics: Topics) -> None:
    events, feed = KafkaEvents(topics), KafkaFeed(topics)
    events.append(updates("u0"))
    assert seqs_by_id(events) == {"u0": 1 << 16}
    upto = settle(feed, 0, feed.beginning())
    events.append(publications("p0"))
    upto = settle(feed, 1, upto)
    events.append(updates("u1"))
    waiting = seqs_by_id(events)
    assert waiting == {"u0": 1 << 16, "u1": 3 << 16}
    settle(feed, 2, upto)
    assert seqs_by_id(KafkaEvents(topics)) == waiting
    assert seqs_by_id(events, after_seq=2 << 16) == {"u1": 3 << 16}
    known = events.publication("p0")
    assert (known.seq, known.text) == (2 << 16, "text of p0")
    assert events.text("p0", 2 << 16) == "text of p0"
    assert events.text("p0", 9 << 16) is None


def test_a_publication_that_no_batch_had_is_known_without_a_seq(topics: Topics) -> None:
    events = KafkaEvents(topics)
    events.append(publications("a"))
    assert events.publication("a").seq is None
    with pytest.raises(JournalError, match="have no publication with the id 'none'"):
        events.publication("none")
    assert [row["id"] for batch in events.newest(10) for row in batch.to_pylist()] == ["a"]


def test_many_batches_are_found_by_halving(topics: Topics) -> None:
    events, feed = KafkaEvents(topics), KafkaFeed(topics)
    upto, places = feed.beginning(), []
    for number in range(12):
        events.append(publications(f"p{number}"))
        after, upto = upto, settle(feed, number, upto)
        places.append((sum(after) + 1) << 16)
        if number % 3 == 0:
            feed.settled(number, after, upto)  # a batch that ran again
    positions = Positions(topics)
    for number, seq in enumerate(places):
        assert events.publication(f"p{number}").seq == seq
        place = positions.place_with(seq)
        assert place is not None
        assert positions.place_of(topics.publications, place.span.partition, place.offset(seq) or 0) == place
    assert positions.place_with(99 << 16) is None
    newest = positions.newest()
    assert newest is not None
    assert newest.batch_id == 11
    assert {batch.batch_id for batch in positions.all()} == set(range(12))


def test_the_lag_is_what_no_batch_has_finished_by_topic(topics: Topics) -> None:
    events, feed = KafkaEvents(topics), KafkaFeed(topics)
    store = MemoryStore()
    ledger = Ledger(store, SubscriptionLog(store.under("log")))
    assert events.lags(ledger) == {topics.updates: 0, topics.publications: 0}
    events.append(updates("u0", "u1"))
    events.append(publications("p0"))
    after = feed.beginning()
    upto = settle(feed, 0, after)
    waiting = events.lags(ledger)
    assert waiting == {
        topics.updates: upto[0] - after[0],
        topics.publications: sum(upto[1:]) - sum(after[1:]),
    }
    assert all(waiting.values())
    ledger.begin(BatchRange(0, after, upto))
    assert events.lags(ledger) == waiting, "it is not in the sink yet"
    ledger.finish(0, 9)
    assert events.lags(ledger) == {topics.updates: 0, topics.publications: 0}
