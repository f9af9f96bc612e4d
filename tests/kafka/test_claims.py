"""Topics belong to one job, whoever claims them at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ps2stream.errors import StateError
from ps2stream.kafka.claims import claim, owner_of
from ps2stream.kafka.topics import Topics


def test_the_first_claim_counts(topics: Topics) -> None:
    assert owner_of(topics) is None
    claim(topics, "one")
    claim(topics, "one")
    with pytest.raises(StateError, match=rf"{topics.prefix}\.\* at Kafka .* belong to another job"):
        claim(topics, "two")
    assert owner_of(topics) == "one"


def test_one_of_many_at_once_gets_them(topics: Topics) -> None:
    def try_to(number: int) -> bool:
        try:
            claim(topics, f"job-{number}")
        except StateError:
            return False
        return True

    with ThreadPoolExecutor(5) as pool:
        got = list(pool.map(try_to, range(5)))
    assert sum(got) == 1
    assert owner_of(topics) == f"job-{got.index(True)}"
