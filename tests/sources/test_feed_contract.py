"""Every feed gives ranges that follow each other and have the same events whoever reads them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kafka.produced import produce
from ps2stream.journal import Journal
from ps2stream.kafka.topics import Topics
from ps2stream.sources.feed import Feed, Offsets
from ps2stream.sources.journal_feed import JournalFeed
from ps2stream.sources.kafka_feed import KafkaFeed
from ps2stream.sources.source import Source
from ps2stream.testing.generators import random_events

#: A feed, and how events get into it.
Fed = tuple[Callable[[], Feed], Callable[[pa.Table], None]]


@pytest.fixture(params=["journal", "kafka"])
def fed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fed]:
    if request.param == "kafka":
        topics: Topics = request.getfixturevalue("topics")
        yield lambda: KafkaFeed(topics), lambda events: produce(topics, events, seed=1)
        return
    with Journal.open(tmp_path, create=True, durable=False) as journal:

        def append(events: pa.Table) -> None:
            for batch in events.to_batches(max_chunksize=13):
                journal.append(batch)

        yield lambda: JournalFeed(journal, tmp_path), append


def rows_in(sources: tuple[Source, ...]) -> list[tuple[int, str]]:
    """Return seq and id of all events, each kind in order."""
    batches = [part.updates for source in sources for part in source.updates()]
    batches += [part.publications for source in sources for part in source.publications()]
    return [
        row
        for batch in batches
        for row in zip(batch.column("seq").to_pylist(), batch.column("id").to_pylist(), strict=True)
    ]


def ranges_of(feed: Feed, n_events: int) -> list[tuple[Offsets, Offsets]]:
    after, found = feed.beginning(), []
    while (upto := feed.end_within(after, n_events)) != after:
        found.append((after, upto))
        feed.learned(len(rows_in(feed.sources(after, upto, 2))))
        after = upto
    assert feed.end_within(after, n_events) == after
    return found


def test_all_events_are_in_one_range_and_seqs_rise_from_range_to_range(fed: Fed) -> None:
    open_feed, add = fed
    events = random_events(200, seed=3, invalid_share=0.0)
    feed, last = open_feed(), -1
    assert feed.end_within(feed.beginning(), 10) == feed.beginning()
    add(events.slice(0, 90))
    add(events.slice(90))
    found: list[tuple[int, str]] = []
    for after, upto in ranges_of(feed, 40):
        rows = rows_in(feed.sources(after, upto, 3))
        assert min(rows)[0] > last
        last = max(source.last_seq for source in feed.sources(after, upto, 3))
        assert max(rows)[0] <= last
        found += rows
    assert len({seq for seq, _ in found}) == len(found) == 200
    assert sorted(id for _, id in found) == sorted(events.column("id").to_pylist())


def test_a_range_is_the_same_whoever_reads_it_however_it_is_cut(fed: Fed) -> None:
    open_feed, add = fed
    add(random_events(120, seed=4, invalid_share=0.0))
    feed = open_feed()
    for after, upto in ranges_of(feed, 50):
        wanted = sorted(rows_in(feed.sources(after, upto, 1)))
        assert wanted
        for n_parts in (1, 2, 7, 500):
            sources = pickle.loads(pickle.dumps(open_feed().sources(after, upto, n_parts)))
            assert sorted(rows_in(sources)) == wanted


def test_a_feed_that_is_opened_again_is_the_same(fed: Fed) -> None:
    open_feed, add = fed
    identity = open_feed().identity
    add(random_events(10, seed=5))
    assert open_feed().identity == identity
    assert open_feed().beginning() == open_feed().beginning()
