"""Where deliveries may come again, what was lost is found, and repeats at other positions are accepted."""

from __future__ import annotations

import copy
import random
from collections import Counter

import pytest

from ps2stream.testing.checker import check_at_least_once
from ps2stream.testing.history import History
from ps2stream.testing.oracle import Rejection
from ps2stream.testing.position_laws import AFTER, AS_OF, LOST
from testing.histories import got, history_of, published, subscribe, unsubscribe
from testing.made_histories import made_history


def laws(history: History) -> list[str]:
    return [violation.law for violation in check_at_least_once(history)]


def test_what_comes_again_at_the_same_or_at_a_later_position_is_accepted() -> None:
    updates = [subscribe(2), subscribe(4, "t")]
    again = [got("p", 3), got("p", 3), got("p", 5), got("p", 5, 4, "t")]
    assert laws(history_of(updates, [published("p")], again)) == []


def test_a_publication_that_only_a_part_was_reached_by_is_lost() -> None:
    updates = [subscribe(2), subscribe(4, "t")]
    assert laws(history_of(updates, [published("p")], [got("p", 5)])) == [LOST]
    # What was delivered at the first position is no excuse at the second.
    parts = [got("p", 5), got("p", 7, 4, "t")]
    assert laws(history_of([*updates, subscribe(6, "u", "ice")], [published("p")], parts)) == [LOST]


def test_a_publication_that_came_after_a_subscription_and_reached_nobody_is_lost() -> None:
    assert laws(history_of([subscribe(2)], [published("p")], [])) == []
    assert laws(history_of([subscribe(2)], [published("p", after=2)], [])) == [LOST]
    both = [published("p", 0), published("q", 1)]
    assert laws(history_of([subscribe(2)], both, [got("p", 3)])) == [LOST]
    assert laws(history_of([subscribe(2)], both, [got("q", 3)])) == []


def test_who_could_only_be_where_later_ones_were_not_is_lost_alone() -> None:
    updates = [subscribe(2), subscribe(4, "t", "ice"), unsubscribe(6)]
    three = [published("p", 0), published("q", 1), published("r", 2, "ice")]
    found = check_at_least_once(history_of(updates, three, [got("p", 3), got("r", 5, 4, "t")]))
    assert [str(each) for each in found] == [
        "lost: publication 'q' (partition 0, offset 1) has reached all that match at none of the positions "
        "that it could have, from 3 to 5; delivered at: none"
    ]


def test_a_publication_may_end_where_nobody_is_any_more() -> None:
    updates = [subscribe(2), subscribe(4, "t"), unsubscribe(6), unsubscribe(8, "t")]
    assert laws(history_of(updates, [published("p")], [got("p", 5)])) == []


def test_demands_hold_for_every_delivery() -> None:
    updates = [subscribe(2), subscribe(4, "t", "ice")]
    again = [got("p", 3), got("p", 5)]
    assert AFTER in laws(history_of(updates, [published("p", after=4)], again))
    assert AS_OF in laws(history_of(updates, [published("p", as_of=2)], again))


def test_rejections_may_come_again_but_not_without_a_reason() -> None:
    history = history_of([subscribe(2)], [published("")], [])
    rejection = Rejection(None, "publish", "")
    history.rejections = [rejection, rejection]
    assert laws(history) == []
    history.rejections = []
    assert laws(history) == ["rejected"]
    sound = history_of([subscribe(2)], [published("p")], [])
    sound.rejections = [Rejection(None, "publish", "p")]
    assert laws(sound) == ["rejected"]


@pytest.mark.parametrize("seed", range(10))
def test_what_a_correct_deployment_leaves_is_accepted_also_with_repeats(seed: int) -> None:
    history = copy.deepcopy(made_history(300, seed))
    assert check_at_least_once(history) == []
    rng = random.Random(seed)
    history.deliveries += rng.choices(history.deliveries, k=50)
    assert check_at_least_once(history) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_single_delivery_that_is_missing_is_found(seed: int) -> None:
    history, rng = copy.deepcopy(made_history(600, seed)), random.Random(seed)
    several = Counter(match.publication_id for match, _ in history.deliveries)
    rich = [one for one in history.deliveries if several[one.match.publication_id] > 1]
    history.deliveries.remove(rng.choice(rich))
    assert LOST in laws(history)
