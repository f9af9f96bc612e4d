"""Ends are those of committed records, of as many partitions as there are."""

from __future__ import annotations

import pytest

from ps2stream.errors import BrokerError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics


def test_ends_are_in_the_order_of_partitions(topics: Topics) -> None:
    ends = Ends(topics.kafka)
    assert ends.first(topics.publications, 3) == ends.last(topics.publications, 3) == [0, 0, 0]
    Sender(topics.kafka).send([Outgoing(topics.publications, n, b"") for n in (0, 2, 2)])
    assert ends.last(topics.publications, 3) == [1, 0, 2]
    assert ends.n_partitions(topics.publications) == 3


def test_topics_that_do_not_exist_are_named(topics: Topics) -> None:
    with pytest.raises(BrokerError, match=f"cannot look for topic {topics.prefix}.none"):
        Ends(topics.kafka).identity(f"{topics.prefix}.none")
