"""Acknowledgements agree with the log, and both with the times at which they were given."""

from __future__ import annotations

import math

import pytest

from ps2stream.testing.acknowledged_log import settled
from ps2stream.testing.checker import check
from ps2stream.testing.history import History, SentUpdate
from ps2stream.testing.oracle import EventRow, Rejection
from testing.histories import acked, published, subscribe, unsubscribe


def told(updates: list[SentUpdate], log: list[EventRow] | None) -> list[str]:
    return [str(violation) for violation in check(History(updates, log=log))]


def test_the_log_is_what_was_acknowledged_by_seq() -> None:
    updates = [acked(subscribe(4, "t")), acked(subscribe(2))]
    assert settled(History(updates)) == [subscribe(2), subscribe(4, "t")]
    assert told(updates, None) == told(updates, [subscribe(4, "t"), subscribe(2)]) == []


def test_what_was_acknowledged_is_in_the_log() -> None:
    assert told([acked(subscribe(2))], []) == [
        "acknowledged: subscribe of 's' to 'fire' at seq 2 was acknowledged; the log has no such seq"
    ]
    assert told([acked(subscribe(2))], [subscribe(2, "t")]) == [
        "acknowledged: subscribe of 's' to 'fire' at seq 2 was acknowledged; "
        "the log has subscribe of 't' to 'fire' at seq 2"
    ]


def test_a_seq_is_given_once() -> None:
    assert told([acked(subscribe(2)), acked(subscribe(2, "t"))], [subscribe(2)]) == [
        "acknowledged: seq 2 was acknowledged twice, the second time for subscribe of 't' to 'fire' at seq 2"
    ]
    history = History([acked(subscribe(2))], log=[subscribe(2), subscribe(2)])
    history.rejections = [Rejection(2, "subscribe", "s")]
    assert [str(one) for one in check(history)] == [
        "acknowledged: seq 2 is in the log for two updates; expected one"
    ]


def test_an_update_without_acknowledgement_may_be_in_the_log_once_or_not_at_all() -> None:
    silent = SentUpdate(subscribe(None), 0.0)
    assert told([silent], []) == told([silent], [subscribe(2)]) == []
    assert told([silent], [subscribe(2), subscribe(4)]) == [
        "acknowledged: the log has subscribe of 's' to 'fire' at seq 4, which nobody sent"
    ]
    assert told([silent], [unsubscribe(2)])[0] == (
        "acknowledged: the log has unsubscribe of 's' at seq 2, which nobody sent"
    )


def test_an_acknowledgement_without_a_seq_is_one_all_the_same() -> None:
    silent, heard = SentUpdate(subscribe(None), 0.0), SentUpdate(subscribe(None), 0.0, 1.0)
    assert told([silent, heard], [subscribe(2)]) == told([heard, silent], [subscribe(2)]) == []
    assert told([heard, silent], []) == [
        "acknowledged: subscribe of 's' to 'fire' was acknowledged and is not in the log"
    ]


def test_a_coordinate_that_is_no_number_is_found_again() -> None:
    event = subscribe(2)._replace(min_lon=math.nan)
    history = History([acked(event)], log=[event._replace(min_lon=float("nan"))])
    history.rejections = [Rejection(2, "subscribe", "s")]
    assert check(history) == []


def test_updates_whose_fate_nobody_knows_need_the_log() -> None:
    with pytest.raises(ValueError, match="needs the log; got none, and 1 of them"):
        check(History([SentUpdate(subscribe(None), 0.0)]))
    with pytest.raises(ValueError, match="must have a seq; got None"):
        check(History(log=[subscribe(None)]))


def test_who_sends_after_an_acknowledgement_comes_after_it() -> None:
    first, second = acked(subscribe(4), 0.0, 1.0), acked(subscribe(2, "t"), 2.0, 3.0)
    assert told([second, first], None) == [
        "real time: subscribe of 't' must come after subscribe of 's' (4), acknowledged before it was sent; "
        "got 2"
    ]
    assert told([acked(subscribe(4), 0.0, 2.0), second], None) == []
    assert told([acked(subscribe(2), 0.0, 1.0), acked(subscribe(4, "t"), 2.0, 3.0)], None) == []


def test_all_acknowledged_before_count_not_just_the_last() -> None:
    updates = [
        acked(subscribe(6), 0.0, 1.0),
        acked(subscribe(2, "t"), 0.0, 2.0),
        acked(subscribe(4, "u"), 3.0, 4.0),
    ]
    assert [one.split(" must ")[0] for one in told(updates, None)] == ["real time: subscribe of 'u'"]


def test_publications_of_a_partition_come_in_the_order_of_time_too() -> None:
    first, second = published("a", 1, acked_s=1.0), published("b", 0)
    late = History(publications=[first, second])
    assert check(late) == []
    late.publications[1] = type(second)(second.event, 2.0, 3.0, 0, 0)
    assert [str(one) for one in check(late)] == [
        "real time: publication 'b' (partition 0, offset 0) must come after publication 'a' "
        "(partition 0, offset 1) (1), acknowledged before it was sent; got 0"
    ]
    late.publications[1] = type(second)(second.event, 2.0, 3.0, 1, 0)
    assert check(late) == []
