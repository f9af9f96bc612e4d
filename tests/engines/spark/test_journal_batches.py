"""The batches of a journal follow each other without a gap, and one that was cut off keeps its range."""

from __future__ import annotations

from pyspark.sql import SparkSession

from laws.engines import Place
from ps2stream.config import Settings
from ps2stream.engines.spark.job import BatchDone
from ps2stream.journal import Journal
from ps2stream.sources.journal_range import JournalRange
from ps2stream.state.ledger import BatchRange
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events


def range_of(done: BatchDone) -> BatchRange:
    ranges = [each for each in done.sources if isinstance(each, JournalRange)]
    return BatchRange(done.batch_id, ranges[0].after, ranges[-1].upto)


def test_batches_follow_each_other_from_the_oldest_packet_to_the_last(
    spark: SparkSession, place: Place
) -> None:
    events = random_events(300, seed=62)
    place.publish(events, packet_events=20)
    with Journal.open(place.journal) as journal:
        journal.prune(2)
        first, last = journal.oldest() - 1, journal.last().position
    settings = Settings(n_workers=2, batch_events=70)
    found = [range_of(done) for done in place.drain(spark, settings)]
    assert len(found) > 3
    assert [each.batch_id for each in found] == list(range(len(found)))
    assert [each.after for each in found] == [first, *(each.upto for each in found[:-1])]
    assert found[-1].upto == last
    assert State.at(place.state).ledger.begun() == found[-1]
    # The next start goes on behind them.
    assert place.drain(spark, settings) == []
    with Journal.open(place.journal) as journal:
        journal.append(events.drop_columns("seq").slice(0, 10))
    assert [range_of(done) for done in place.drain(spark, settings)] == [
        BatchRange(found[-1].batch_id + 1, last, last + 1)
    ]


def test_a_batch_that_had_begun_keeps_its_range_whatever_came_since(
    spark: SparkSession, place: Place
) -> None:
    events = random_events(300, seed=63)
    place.publish(events.slice(0, 60), packet_events=20)
    settings = Settings(n_workers=2, batch_events=10_000)
    (done,) = place.drain(spark, settings)
    begun = BatchRange(1, range_of(done).upto, range_of(done).upto + 2)
    place.publish(events, packet_events=20)
    State.at(place.state).ledger.begin(begun)
    first, second = map(range_of, place.drain(spark, settings))
    assert first == begun
    assert second.after == begun.upto
