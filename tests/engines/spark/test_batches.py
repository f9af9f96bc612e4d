"""The batches of a feed follow each other without a gap, and one that was cut off keeps its range."""

from __future__ import annotations

from pyspark.sql import SparkSession

from laws.engines import JobHome
from ps2stream.config import Settings
from ps2stream.engines.durable_job import BatchDone
from ps2stream.journal import Journal
from ps2stream.sources.journal_range import JournalRange
from ps2stream.state.ledger import BatchRange
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events


def range_of(done: BatchDone) -> BatchRange:
    ranges = [each for each in done.sources if isinstance(each, JournalRange)]
    return BatchRange(done.batch_id, (ranges[0].after,), (ranges[-1].upto,))


def test_batches_follow_each_other_from_the_oldest_packet_to_the_last(
    spark: SparkSession, job_home: JobHome
) -> None:
    events = random_events(300, seed=62)
    job_home.publish(events, packet_events=20)
    with Journal.open(job_home.journal) as journal:
        journal.prune(2)
        first, last = (journal.oldest() - 1,), journal.last().position
    settings = Settings(n_workers=2, batch_events=70)
    found = [range_of(done) for done in job_home.drain(spark, settings)]
    assert len(found) > 3
    assert [each.batch_id for each in found] == list(range(len(found)))
    assert [each.after for each in found] == [first, *(each.upto for each in found[:-1])]
    assert found[-1].upto == (last,)
    assert State.at(job_home.state).ledger.begun() == found[-1]
    # The next start goes on behind them.
    assert job_home.drain(spark, settings) == []
    with Journal.open(job_home.journal) as journal:
        journal.append(events.drop_columns("seq").slice(0, 10))
    assert [range_of(done) for done in job_home.drain(spark, settings)] == [
        BatchRange(found[-1].batch_id + 1, (last,), (last + 1,))
    ]


def test_a_batch_that_had_begun_keeps_its_range_whatever_came_since(
    spark: SparkSession, job_home: JobHome
) -> None:
    events = random_events(300, seed=63)
    job_home.publish(events.slice(0, 60), packet_events=20)
    settings = Settings(n_workers=2, batch_events=10_000)
    (done,) = job_home.drain(spark, settings)
    (upto,) = range_of(done).upto
    begun = BatchRange(1, (upto,), (upto + 2,))
    job_home.publish(events, packet_events=20)
    State.at(job_home.state).ledger.begin(begun)
    first, second = map(range_of, job_home.drain(spark, settings))
    assert first == begun
    assert second.after == begun.upto
