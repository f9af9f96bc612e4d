"""The topics between roles are made once, for as many workers as there are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ps2stream.errors import ConfigError
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.topics import Topics


@pytest.fixture
def made(topics: Topics) -> Iterator[RoleTopics]:
    made = RoleTopics(topics, 2)
    made.create(1)
    yield made
    made.delete()


def test_each_role_has_a_partition_of_notes_of_its_own() -> None:
    topics = RoleTopics(Topics(None, "p"), 3)  # type: ignore[arg-type]
    roles = [("registrar", 0), *(("worker", n) for n in range(3)), *(("dispatcher", n) for n in range(2))]
    assert [topics.note_partition(*role) for role in roles] == list(range(6))
    assert [
        (kind, n) for kind in ("registrar", "worker", "dispatcher") for n in topics.numbers(kind, 6)
    ] == roles
    assert topics.name("log") == "p.log"


def test_topics_have_a_partition_for_each_worker_and_are_made_once(made: RoleTopics) -> None:
    counts = {name: made.topics.n_partitions(made.name(name)) for name in ("log", "routed", "loads", "notes")}
    assert counts == {"log": 1, "routed": 2, "loads": 1, "notes": 4}
    made.create(1)


def test_more_dispatchers_get_notes_and_fewer_lose_none(made: RoleTopics) -> None:
    made.create(3)
    assert made.topics.n_partitions(made.name("notes")) == 6
    made.create(1)
    assert made.topics.n_partitions(made.name("notes")) == 6


def test_another_number_of_workers_is_refused(made: RoleTopics) -> None:
    with pytest.raises(ConfigError, match=r"must have 3 partitions, one for each worker; it has 2"):
        RoleTopics(made.topics, 3).create(1)
