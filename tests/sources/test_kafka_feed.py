"""Topics as a feed: who has subscribed is told of what is published afterwards."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from kafka.transactions import abort, opened
from ps2stream.errors import StateError
from ps2stream.kafka import ends
from ps2stream.kafka.sending import AtomicSender, Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.registry.log import SubscriptionLog
from ps2stream.sources.feed import Offsets
from ps2stream.sources.kafka_feed import KafkaFeed, _shared
from ps2stream.state.ledger import Ledger
from ps2stream.store.memory import MemoryStore
from waiting import HANG_S


def publication(topics: Topics, id: str, partition: int = 0) -> Outgoing:
    return Outgoing(topics.publications, partition, b'{"id":"%s"}' % id.encode())


def update(topics: Topics, id: str) -> Outgoing:
    return Outgoing(topics.updates, 0, b'{"op":"unsubscribe","id":"%s"}' % id.encode())


def ids_in(feed: KafkaFeed, after: Offsets, upto: Offsets) -> tuple[list[str], list[str]]:
    """Return the ids of updates and of publications in a range."""
    sources = feed.sources(after, upto, 2)
    updates = [id for s in sources for part in s.updates() for id in part.updates.column("id").to_pylist()]
    publications = [
        id for s in sources for part in s.publications() for id in part.publications.column("id").to_pylist()
    ]
    return updates, publications


def test_publications_wait_for_updates_that_are_acknowledged_but_cannot_be_read_yet(topics: Topics) -> None:
    feed, sender = KafkaFeed(topics), Sender(topics.kafka)
    after = feed.beginning()
    other = opened(topics.kafka, [update(topics, "other")])
    sender.send([update(topics, "mine")])
    sender.send([publication(topics, "p")])
    assert feed.end_within(after, 100) == after, "the update lies behind a transaction that is open"
    sender.send([publication(topics, "later")])
    other.abort_transaction(30)
    while (upto := feed.end_within(after, 100)) == after:
        time.sleep(0.01)  # readers see the end of a transaction a little later
    assert ids_in(feed, after, upto) == (["mine"], ["p"])
    assert ids_in(feed, upto, feed.end_within(upto, 100)) == ([], ["later"])


def test_transactions_that_are_always_open_do_not_hold_up_publications_for_ever(topics: Topics) -> None:
    feed, sender = KafkaFeed(topics), Sender(topics.kafka)
    after = feed.beginning()
    first = opened(topics.kafka, [update(topics, "1")])
    sender.send([publication(topics, "p")])
    assert feed.end_within(after, 100) == after
    second = opened(topics.kafka, [update(topics, "2")])
    first.commit_transaction(30)
    upto = feed.end_within(after, 100)
    while upto == after or upto[1:] == after[1:]:
        upto = feed.end_within(after, 100)
    assert ids_in(feed, after, upto) == (["1"], ["p"])
    second.abort_transaction(30)


@pytest.mark.parametrize("is_atomic", [False, True])
def test_an_update_that_was_acknowledged_before_a_publication_was_sent_is_seen_by_it(
    topics: Topics, is_atomic: bool
) -> None:
    """Let publishers subscribe, then publish under the same name, while others leave transactions open."""
    n_each, n_publishers = 15, 3
    failed: list[Exception] = []

    def act(number: int) -> None:
        try:
            sender, atomic = Sender(topics.kafka), AtomicSender(topics.kafka, "test")
            for n in range(n_each):
                name = f"{number}-{n}"
                if is_atomic:
                    atomic.send([update(topics, name), update(topics, f"{name}-more")])
                else:
                    sender.send([update(topics, name)])
                sender.send([publication(topics, name, n % 3)])
        except Exception as error:
            failed.append(error)

    def disturb() -> None:
        for _ in range(10):
            producer = opened(topics.kafka, [update(topics, "disturbing")])
            time.sleep(0.02)
            producer.abort_transaction(30)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(n_publishers)]
    threads.append(threading.Thread(target=disturb))
    for thread in threads:
        thread.start()
    feed, seen, found = KafkaFeed(topics), set[str](), list[str]()
    after, until = feed.beginning(), time.monotonic() + HANG_S
    while len(found) < n_each * n_publishers and not failed:
        assert time.monotonic() < until
        upto = feed.end_within(after, 1_000)
        if upto != after:
            updates, publications = ids_in(feed, after, upto)
            feed.learned(len(updates) + len(publications))
            seen.update(updates)
            assert set(publications) <= seen
            found += publications
        after = upto
    for thread in threads:
        thread.join()
    assert not failed
    assert len(set(found)) == len(found) == n_each * n_publishers
    assert "disturbing" not in seen


def test_ranges_follow_each_other_and_hold_everything_once(topics: Topics) -> None:
    feed = KafkaFeed(topics)
    after, found = feed.beginning(), list[str]()
    Sender(topics.kafka).send(
        [publication(topics, f"p{n}", n % 3) for n in range(40)] + [update(topics, f"u{n}") for n in range(9)]
    )
    n_ranges = 0
    while (upto := feed.end_within(after, 7)) != after:
        updates, publications = ids_in(feed, after, upto)
        assert len(updates) + len(publications) <= 7
        found += updates + publications
        feed.learned(len(updates) + len(publications))
        after, n_ranges = upto, n_ranges + 1
    assert sorted(found) == sorted([f"p{n}" for n in range(40)] + [f"u{n}" for n in range(9)])
    assert n_ranges == 7
    assert found[:9] == [f"u{n}" for n in range(9)], "updates come first"


def test_partitions_that_are_added_are_read_from_their_beginning(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "_PARTITIONS_EVERY_S", 0.0)
    feed, sender = KafkaFeed(topics), Sender(topics.kafka)
    after = feed.beginning()
    sender.send([publication(topics, "a", 2)])
    upto = feed.end_within(after, 100)
    assert ids_in(feed, after, upto) == ([], ["a"])
    admin = topics.kafka.admin()
    admin.create_partitions([NewPartitions(topics.publications, 5)])[topics.publications].result()
    while topics.n_partitions(topics.publications) < 5:
        time.sleep(0.05)
    Sender(topics.kafka).send([publication(topics, "b", 4), publication(topics, "c", 0)])
    last = feed.end_within(upto, 100)
    assert ids_in(feed, upto, last) == ([], ["c", "b"])
    assert len(last) == 6


def test_what_was_deleted_before_it_was_read_is_told_and_the_rest_is_read(topics: Topics) -> None:
    feed = KafkaFeed(topics)
    after = feed.beginning()
    Sender(topics.kafka).send([publication(topics, f"p{n}") for n in range(6)] + [update(topics, "u")])
    upto = feed.end_within(after, 100)
    topics.trim({(topics.publications, 0): 4, (topics.updates, 0): 1})
    sources = feed.sources(after, upto, 1)
    assert ids_in(feed, after, upto)[1] == ["p4", "p5"]
    reasons = [
        reason
        for source in sources
        for _, rejected in (*source.updates(), *source.publications())
        for reason in rejected.column("reason").to_pylist()
    ]
    gone = f"of {topics.publications} were deleted before they were read"
    assert [f"records 0 to 3 of partition 0 {gone}" in reason for reason in reasons].count(True) >= 1
    assert len(reasons) >= 2
    assert KafkaFeed(topics).beginning() == (1, 4, 0, 0)


def test_a_state_is_not_for_topics_that_are_made_anew(topics: Topics) -> None:
    store = MemoryStore()
    ledger = Ledger(store, SubscriptionLog(store.under("log")))
    ledger.bind(KafkaFeed(topics).identity)
    ledger.bind(KafkaFeed(topics).identity)
    admin = topics.kafka.admin()
    admin.delete_topics([topics.publications])[topics.publications].result()
    while topics.n_partitions(topics.publications):
        time.sleep(0.05)
    topics.create(3)
    with pytest.raises(StateError, match="belongs to the events of"):
        ledger.bind(KafkaFeed(topics).identity)


def test_aborted_records_are_no_events(topics: Topics) -> None:
    feed = KafkaFeed(topics)
    after = feed.beginning()
    abort(topics.kafka, [publication(topics, "no", n % 3) for n in range(9)] + [update(topics, "no")])
    Sender(topics.kafka).send([publication(topics, "yes"), update(topics, "yes")])
    upto = feed.end_within(after, 100)
    while upto[1:] == after[1:]:
        upto = feed.end_within(after, 100)
    assert ids_in(feed, after, upto) == (["yes"], ["yes"])


def test_packets_of_many_events_make_batches_of_few_records(topics: Topics) -> None:
    feed = KafkaFeed(topics)
    after = feed.beginning()
    Sender(topics.kafka).send([publication(topics, f"{n}") for n in range(300)])
    upto = feed.end_within(after, 1_000)
    assert sum(upto) - sum(after) == 256, "it begins with few"
    feed.learned(25_600)
    assert sum(feed.end_within(upto, 1_000)) - sum(upto) == 10
    feed.learned(10)
    assert sum(feed.end_within(upto, 1_000)) - sum(upto) == 40


def test_partitions_share_a_batch_as_far_as_they_have_any() -> None:
    assert _shared((0, 0, 0), [100, 100, 100], 30) == (10, 10, 10)
    assert _shared((0, 0, 0), [2, 100, 0], 30) == (2, 28, 0)
    assert _shared((5, 5), [5, 3], 9) == (5, 5), "an end that is behind gives nothing"
    assert _shared((0, 0, 0), [9, 9, 9], 2) == (1, 1, 0)
