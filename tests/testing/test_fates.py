"""A fate has all that came out of one publication."""

import pytest

from ps2stream.testing import oracle
from ps2stream.testing.fates import fates_of
from ps2stream.testing.history import SentPublication
from ps2stream.testing.oracle import Rejection
from testing.histories import got, history_of, published, subscribe


def test_deliveries_and_rejections_find_their_publication() -> None:
    publications = [published("a"), published("b", 1), published("c", 2, as_of=2)]
    history = history_of([subscribe(2)], publications, [got("b", 3), got("a", 3), got("ghost", 3)])
    history.rejections = [Rejection(None, "publish", "c")]
    lives, _ = oracle.versions([subscribe(2)])
    fates = fates_of(history, lives)
    assert [fate.position for fate in fates] == [3, 3, None]
    assert [fate.is_rejected for fate in fates] == [False, False, True]
    assert [fate.demanded for fate in fates] == [None, None, 3]
    assert fates[0].expected_at(3) == {("s", 2)}
    assert fates[0].expected_at(1) == set()


@pytest.mark.parametrize(
    ("sent", "has_happened"),
    [
        (published("p", None), True),
        (published("p", 0, acked_s=None), True),
        (published("p", None, acked_s=None), False),
    ],
)
def test_what_a_broker_has_has_happened(sent: SentPublication, has_happened: bool) -> None:
    assert fates_of(history_of([], [sent], []), [])[0].has_happened is has_happened


def test_an_id_that_is_sent_twice_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="ids of their own; got 'p' twice"):
        fates_of(history_of([], [published("p"), published("p", 1)], []), [])
