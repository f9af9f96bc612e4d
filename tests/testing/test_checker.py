"""The checker finds each broken law and says where; what a correct deployment leaves, it accepts."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.acknowledged_log import ACKNOWLEDGED
from ps2stream.testing.checker import (
    ONCE,
    ONE_POSITION,
    ORDER,
    PUBLISHED,
    REJECTED,
    UNEXPECTED,
    check,
)
from ps2stream.testing.history import Delivery, History
from ps2stream.testing.oracle import Rejection
from ps2stream.testing.position_laws import AFTER, AS_OF, LOST
from testing.histories import acked, got, history_of, published, subscribe, unsubscribe
from testing.made_histories import made_history, shuffled


def told(history: History) -> list[str]:
    return [str(violation) for violation in check(history)]


def test_nothing_is_wrong_with_nothing() -> None:
    assert check(History()) == []


def test_a_publication_may_miss_an_acknowledged_update_that_it_did_not_ask_for() -> None:
    updates = [acked(subscribe(2), 0.0, 1.0)]
    late = replace(published("p"), invoked_s=2.0)
    assert check(History(updates, [late])) == []
    assert check(History(updates, [late], [got("p", 3)])) == []
    assert [one.law for one in check(History(updates, [replace(late, after=2)]))] == [LOST]


def test_a_match_that_comes_twice_is_told_once() -> None:
    history = history_of([subscribe(2)], [published("p")], [got("p", 3), got("p", 3, worker=1)])
    assert told(history) == [
        "once: subscription 's' of seq 2 got publication 'p' at position 3 2 times; expected once"
    ]


def test_deliveries_of_a_publication_have_one_position() -> None:
    updates = [subscribe(2), subscribe(4, "t")]
    history = history_of(updates, [published("p")], [got("p", 3), got("p", 5, 4, "t")])
    assert told(history) == [
        "one position: deliveries of publication 'p' (partition 0, offset 0) must have one position; got 3, 5"
    ]


def test_a_position_is_no_seq_of_an_update() -> None:
    history = history_of([subscribe(2), subscribe(4, "t")], [published("p")], [got("p", 4)])
    assert told(history) == [
        "one position: publication 'p' (partition 0, offset 0) must have a position between updates; "
        "got 4, the seq of an update"
    ]


def test_a_match_that_is_missing_at_the_position_is_lost() -> None:
    history = history_of([subscribe(2), subscribe(4, "t")], [published("p")], [got("p", 5)])
    assert told(history) == [
        "lost: publication 'p' (partition 0, offset 0) at position 5 must reach subscription 't' of seq 4, "
        "which matches there; not delivered"
    ]


@pytest.mark.parametrize(
    ("delivery", "reason"),
    [
        (got("p", 1), "the position is before the subscription"),
        (got("p", 7), "the subscription ended at seq 6"),
        (got("p", 5, 4, "t"), "its text or place does not match the subscription"),
        (got("p", 5, 4, "nobody"), "there is no such subscription"),
        (got("p", 5, 4, "s"), "there is no such subscription"),
    ],
)
def test_what_does_not_match_at_the_position_is_unexpected(delivery: Delivery, reason: str) -> None:
    updates = [subscribe(2), subscribe(4, "t", "rain"), unsubscribe(6)]
    history = history_of(updates, [published("p")], [delivery])
    violations = [one for one in check(history) if one.law == UNEXPECTED]
    assert [one.sentence.split("; ")[1] for one in violations] == [reason]


def test_a_delivery_of_what_nobody_published_is_told() -> None:
    history = history_of([subscribe(2)], [], [got("ghost", 3)])
    assert told(history) == [
        "published: subscription 's' of seq 2 got publication 'ghost' at position 3; nobody published it"
    ]


def test_what_was_never_acknowledged_may_be_delivered_or_not_but_not_in_parts() -> None:
    silent = published("p", None, acked_s=None)
    updates = [subscribe(2), subscribe(4, "t")]
    assert check(history_of(updates, [replace(silent, after=4)], [])) == []
    assert check(history_of(updates, [silent], [got("p", 5), got("p", 5, 4, "t")])) == []
    assert [one.law for one in check(history_of(updates, [silent], [got("p", 5)]))] == [LOST]


def test_deliveries_of_a_worker_do_not_fall_behind() -> None:
    publications = [published("a", 0), published("b", 1)]
    history = history_of([subscribe(2)], publications, [got("b", 7), got("a", 5)])
    assert told(history) == [
        "order: worker 0: subscription 's' of seq 2 got publication 'a' at position 5 behind publication 'b' "
        "at position 7; both of partition 0"
    ]


def test_workers_partitions_and_reruns_have_no_order_among_each_other() -> None:
    publications = [published("a", 0), published("b", 1)]
    by_workers = [got("b", 7, worker=1), got("a", 5)]
    assert check(history_of([subscribe(2)], publications, by_workers)) == []
    unknown = [got("b", 7, worker=None), got("a", 5, worker=None)]
    assert check(history_of([subscribe(2)], publications, unknown)) == []
    deliveries = [got("b", 7), got("a", 5)]
    elsewhere = [replace(publications[0], partition=1), publications[1]]
    assert check(history_of([subscribe(2)], elsewhere, deliveries)) == []
    again = [replace(publications[0], as_of=4), publications[1]]
    assert check(history_of([subscribe(2)], again, deliveries)) == []


def test_what_makes_no_sense_is_rejected_once_and_nothing_else() -> None:
    bad = published("bad")
    bad = replace(bad, event=bad.event._replace(lat=None))
    history = history_of([subscribe(2), unsubscribe(4, "nobody")], [bad, published("good", 1)], [])
    assert [str(one) for one in check(history) if one.law == REJECTED] == [
        "rejected: unsubscribe of 'nobody' at seq 4 makes no sense and must be rejected; was not",
        "rejected: publish of 'bad' makes no sense and must be rejected; was not",
    ]
    history.rejections = [Rejection(4, UNSUBSCRIBE, "nobody"), Rejection(None, "publish", "bad")]
    assert check(history) == []
    history.rejections += [*history.rejections, Rejection(3, "publish", "good"), Rejection(2, SUBSCRIBE, "s")]
    assert [one.sentence for one in check(history)] == [
        f"{what} must not be rejected; was, 1 times more than expected"
        for what in ("unsubscribe of 'nobody'", "publish of 'bad'", "publish of 'good'", "subscribe of 's'")
    ]


def test_what_is_rejected_is_not_delivered() -> None:
    history = history_of([subscribe(2)], [published("p", as_of=2)], [got("p", 3)])
    assert check(history) == []
    history.rejections = [Rejection(3, "publish", "p")]
    assert [one.law for one in check(history)] == [REJECTED]
    history.deliveries = []
    assert check(history) == []


def test_a_publication_that_makes_no_sense_is_not_delivered() -> None:
    bad = published("bad")
    bad = replace(bad, event=bad.event._replace(text=None))
    history = history_of([subscribe(2)], [bad], [got("bad", 3)])
    history.rejections = [Rejection(None, "publish", "bad")]
    assert Counter(one.law for one in check(history)) == {UNEXPECTED: 1, REJECTED: 1}


def test_stop_words_count() -> None:
    history = history_of([subscribe(2, expression="the fire")], [published("p", after=2)], [])
    assert check(history) == []
    history.stop_words = ["the"]
    assert [one.law for one in check(history)] == [LOST]


@pytest.mark.parametrize("seed", range(25))
def test_what_a_correct_deployment_leaves_is_accepted(seed: int) -> None:
    history = made_history(300, seed, publication_share=(0.3, 0.6, 0.9)[seed % 3])
    assert check(history) == []
    assert check(shuffled(history, random.Random(seed))) == []


def test_made_histories_have_all_that_is_to_be_judged() -> None:
    history = made_history(2000, 7)
    assert len(history.deliveries) > 1000
    assert len(history.rejections) > 50
    assert history.log is not None
    silent = [sent for sent in history.updates if sent.acked_s is None]
    assert 20 < len(history.updates) - len(history.log) < len(silent)
    delivered = {match.publication_id for match, _ in history.deliveries}
    kinds = Counter(
        (sent.acked_s is None, sent.after is not None, sent.as_of is not None, sent.event.id in delivered)
        for sent in history.publications
    )
    assert len(kinds) == 12
    assert min(kinds.values()) > 3


# --- Histories with one fault ---------------------------------------------------------------------


def drop(history: History, rng: random.Random) -> None:
    """Lose a delivery of a publication that has another one, which tells the position."""
    several = Counter(match.publication_id for match, _ in history.deliveries)
    rich = [one for one in history.deliveries if several[one.match.publication_id] > 1]
    history.deliveries.remove(rng.choice(rich))


def double(history: History, rng: random.Random) -> None:
    chosen = rng.choice(history.deliveries)
    history.deliveries.insert(history.deliveries.index(chosen), chosen)


def split(history: History, rng: random.Random) -> None:
    """Tell two positions of one publication."""
    several = Counter(match.publication_id for match, _ in history.deliveries)
    rich = [number for number, one in enumerate(history.deliveries) if several[one.match.publication_id] > 1]
    move(history, rng.choice(rich), 2)


def run_ahead(history: History, rng: random.Random) -> None:
    """Match a publication behind the end of one of its subscriptions."""
    assert history.log is not None
    ends = {event.id: event.seq for event in history.log if event.op == UNSUBSCRIBE}
    late = [
        (number, ends[match.subscription_id] or 0)
        for number, (match, _) in enumerate(history.deliveries)
        if ends.get(match.subscription_id, 0) or match.publication_seq < 0
    ]
    number, end = rng.choice(late)
    chosen = history.deliveries[number].match
    for other, (match, _) in enumerate(history.deliveries):
        if match.publication_id == chosen.publication_id:
            move(history, other, end + 1 - match.publication_seq)


def ignore_after(history: History, rng: random.Random) -> None:
    match, _ = rng.choice(history.deliveries)
    demand(history, match.publication_id, after=match.publication_seq + 1)


def ignore_as_of(history: History, rng: random.Random) -> None:
    match, _ = rng.choice(history.deliveries)
    demand(history, match.publication_id, as_of=match.publication_seq + 1)


def forget_an_update(history: History, rng: random.Random) -> None:
    assert history.log is not None
    acknowledged = [sent.event for sent in history.updates if sent.event.seq is not None]
    history.log.remove(rng.choice(acknowledged))


def forget_a_rejection(history: History, rng: random.Random) -> None:
    history.rejections.remove(rng.choice([one for one in history.rejections if one.seq is not None]))


def deliver_backwards(history: History, rng: random.Random) -> None:
    history.deliveries.reverse()


def make_up(history: History, rng: random.Random) -> None:
    match, worker = rng.choice(history.deliveries)
    history.deliveries.append(Delivery(match._replace(publication_id="made up"), worker))


def confuse(history: History, rng: random.Random) -> None:
    """Deliver to an earlier or later version of a subscription."""
    number = rng.randrange(len(history.deliveries))
    match, worker = history.deliveries[number]
    other = match._replace(subscription_seq=match.subscription_seq + 2)
    history.deliveries[number] = Delivery(other, worker)


def move(history: History, number: int, by: int) -> None:
    match, worker = history.deliveries[number]
    history.deliveries[number] = Delivery(match._replace(publication_seq=match.publication_seq + by), worker)


def demand(history: History, name: str, **fields: Any) -> None:
    (number,) = (number for number, sent in enumerate(history.publications) if sent.event.id == name)
    history.publications[number] = replace(history.publications[number], **fields)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("fault", "law"),
    [
        (drop, LOST),
        (double, ONCE),
        (split, ONE_POSITION),
        (run_ahead, UNEXPECTED),
        (ignore_after, AFTER),
        (ignore_as_of, AS_OF),
        (forget_an_update, ACKNOWLEDGED),
        (forget_a_rejection, REJECTED),
        (deliver_backwards, ORDER),
        (make_up, PUBLISHED),
        (confuse, UNEXPECTED),
    ],
)
def test_a_single_fault_is_found(
    fault: Callable[[History, random.Random], None], law: str, seed: int
) -> None:
    history = copy.deepcopy(made_history(600, seed))
    fault(history, random.Random(seed))
    assert law in {violation.law for violation in check(history)}
