"""Positions keep what was demanded, rise with offsets, and those that nobody told are possible."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.testing import oracle
from ps2stream.testing.checker import check
from ps2stream.testing.history import Delivery, History, SentPublication
from ps2stream.testing.oracle import EventRow
from ps2stream.testing.position_laws import AFTER, AS_OF, LOST, RISING
from testing.histories import got, history_of, published, subscribe, unsubscribe

UPDATES = [subscribe(2), unsubscribe(4), subscribe(6)]


def told(publications: list[SentPublication], deliveries: list[Delivery]) -> list[str]:
    return [str(violation) for violation in check(history_of(UPDATES, publications, deliveries))]


def laws(publications: list[SentPublication], deliveries: list[Delivery]) -> list[str]:
    return [violation.law for violation in check(history_of(UPDATES, publications, deliveries))]


def test_a_position_is_above_after() -> None:
    assert told([published("p", after=2)], [got("p", 3)]) == []
    assert told([published("p", after=4)], [got("p", 3)]) == [
        "after: publication 'p' (partition 0, offset 0) must have a position after 4; got 3"
    ]
    assert laws([published("p", after=3)], [got("p", 3)]) == [AFTER]


def test_a_position_is_exactly_as_of() -> None:
    assert told([published("p", as_of=2)], [got("p", 3)]) == []
    assert told([published("p", as_of=3)], [got("p", 3)]) == []
    assert told([published("p", as_of=6)], [got("p", 9, 6)]) == [
        "as_of: publication 'p' (partition 0, offset 0) must have position 7, as of 6; got 9"
    ]


def test_a_publication_without_deliveries_is_lost_if_somebody_matches_as_of() -> None:
    assert told([published("p", as_of=4)], []) == []
    assert told([published("p", as_of=2)], []) == [
        "lost: publication 'p' (partition 0, offset 0) must have deliveries, since somebody matches at every "
        "position that it could have, from 3 to 3; at 3 it is subscription 's' of seq 2; got none"
    ]


def test_a_publication_without_deliveries_is_lost_if_somebody_matches_wherever_after_allows() -> None:
    assert told([published("p", after=2)], []) == []
    assert laws([published("p", None, after=6)], []) == [LOST]
    assert told([published("p", after=6)], []) == [
        "lost: publication 'p' (partition 0, offset 0) must have deliveries, since somebody matches at every "
        "position that it could have, from 7 to the end; at 7 it is subscription 's' of seq 6; got none"
    ]
    assert laws([published("p", after=5)], []) == [LOST]


def test_positions_of_a_partition_do_not_fall() -> None:
    assert told([published("a", 4), published("b", 5)], [got("b", 3), got("a", 7, 6)]) == [
        "rising: publication 'b' (partition 0, offset 5) must not be below position 7 of publication 'a' "
        "(partition 0, offset 4); got 3"
    ]


def test_one_step_down_is_one_violation() -> None:
    names = ["a", "b", "c", "d"]
    positions = [7, 3, 3, 7]
    deliveries = [
        got(name, position, position - 1, worker=None)
        for name, position in zip(names, positions, strict=True)
    ]
    assert laws([published(name, offset) for offset, name in enumerate(names)], deliveries) == [RISING]


def test_partitions_records_and_reruns_do_not_rise_with_each_other() -> None:
    first, second = published("first", 0), published("second", 1)
    deliveries = [got("first", 7, 6, worker=None), got("second", 3, worker=None)]
    assert laws([first, second], deliveries) == [RISING]
    assert laws([first, replace(second, partition=1)], deliveries) == []
    assert laws([first, replace(second, offset=0)], deliveries) == []
    assert laws([first, replace(second, as_of=2)], deliveries) == []


def test_a_publication_without_deliveries_lies_between_its_neighbours() -> None:
    between = [published("a", 0), published("silent", 1), published("b", 2)]
    assert laws(between, [got("a", 3), got("b", 7, 6)]) == []
    assert laws(between, [got("a", 3), got("b", 3)]) == [LOST]
    assert laws(between, [got("a", 7, 6), got("b", 7, 6)]) == [LOST]


def test_a_demand_without_deliveries_binds_those_behind_it() -> None:
    publications = [published("rain", 0, "rain", after=4), published("b", 1)]
    assert laws(publications, [got("b", 7, 6)]) == []
    assert laws(publications, [got("b", 3)]) == [RISING]


def test_a_law_that_is_broken_by_one_is_not_told_of_others() -> None:
    publications = [published("silent", 0), published("a", 1, after=6), published("b", 2)]
    assert laws(publications, [got("a", 3), got("b", 7, 6)]) == [AFTER]
    assert laws([published("a", as_of=6), published("b", 1)], [got("a", 3), got("b", 3)]) == [AS_OF]


# --- Against trying everything --------------------------------------------------------------------


@st.composite
def small_histories(draw: st.DrawFn) -> History:
    """Draw publications of one partition, some with the deliveries of a position, some without any.

    Now and then several are in one record.
    """
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    updates = list(_updates(rng))
    lives, _ = oracle.versions(updates)
    history = history_of(updates, [], [])
    offset = 0
    for number in range(rng.randrange(1, 6)):
        offset += rng.choice((0, 1, 1))
        sent = published(f"p{number}", offset, rng.choice(("fire", "rain", "fire rain")))
        position = rng.choice(_positions(updates))
        met = oracle.met_by(sent.event, lives) or []
        seen = [version for version in met if version.is_live_at(position)]
        if rng.random() < 0.5:
            history.deliveries += [got(f"p{number}", position, one.seq, one.id, None) for one in seen]
        elif rng.random() < 0.5:
            sent = replace(sent, after=rng.choice(_positions(updates)[:-1]) - rng.randrange(2))
        history.publications.append(sent)
    return history


def _updates(rng: random.Random) -> Iterator[EventRow]:
    live: set[str] = set()
    for number in range(1, rng.randrange(1, 8)):
        name = rng.choice("st")
        if name in live and rng.random() < 0.7:
            live.remove(name)
            yield unsubscribe(2 * number, name)
        else:
            live.add(name)
            yield subscribe(2 * number, name, rng.choice(("fire", "rain", "fire OR rain")))


def _positions(updates: list[EventRow]) -> list[int]:
    """Return the positions behind all updates, and one more: the log goes on, if only by adjustments."""
    behind = [1, *((event.seq or 0) + 1 for event in updates)]
    return [*behind, behind[-1] + 2]


def has_an_order(history: History) -> bool:
    """Try all positions of publications without deliveries."""
    log = [sent.event for sent in history.updates]
    told = {match.publication_id: match.publication_seq for match, _ in history.deliveries}
    choices: list[list[int]] = []
    for sent in history.publications:
        assert sent.event.id is not None
        if sent.event.id in told:
            choices.append([told[sent.event.id]])
        else:
            placed = [sent.event._replace(seq=position) for position in _positions(log)]
            taken = {match.publication_seq for match in oracle.run_at(log, placed).matches}
            free = [event.seq or 0 for event in placed if event.seq not in taken]
            choices.append([one for one in free if sent.after is None or one > sent.after])
    offsets = [sent.offset or 0 for sent in history.publications]
    return any(_rise(list(zip(offsets, chosen, strict=True))) for chosen in itertools.product(*choices))


def _rise(placed: list[tuple[int, int]]) -> bool:
    pairs = itertools.combinations(placed, 2)
    return all(before[0] == behind[0] or before[1] <= behind[1] for before, behind in pairs)


@given(small_histories())
@settings(max_examples=400, deadline=None)
def test_a_history_is_accepted_just_if_some_order_explains_it(history: History) -> None:
    found = {violation.law for violation in check(history)}
    assert found <= {LOST, RISING}
    assert bool(found) is not has_an_order(history)


@pytest.mark.parametrize("explained", [True, False])
def test_small_histories_are_of_both_kinds(explained: bool) -> None:
    @settings(max_examples=50, deadline=None, database=None)
    @given(small_histories())
    def collect(history: History) -> None:
        verdicts.append(has_an_order(history) is explained)

    verdicts: list[bool] = []
    collect()
    assert sum(verdicts) > 5
