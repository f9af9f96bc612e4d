"""The topics of a deployment are made, found, trimmed and deleted by their prefix."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from ps2stream.errors import BrokerError, ConfigError
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics


@pytest.mark.parametrize("prefix", ["", "a b", "a/b", "ä", "x" * 201, "a\n"])
def test_a_prefix_that_no_topic_can_have_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigError, match="the prefix of topics must be"):
        Topics(Kafka("localhost:1"), prefix)


def test_to_look_for_topics_does_not_make_them(kafka: Kafka) -> None:
    topics = Topics(kafka, f"none-{uuid.uuid4().hex}")
    for _ in range(3):
        assert not topics.exist()
        with pytest.raises(BrokerError, match=f"cannot look for topic {topics.updates}"):
            Ends(kafka).n_partitions(topics.updates)
    names = kafka.admin().list_topics(timeout=10).topics
    assert not [name for name in names if name.startswith(topics.prefix)]


def test_topics_that_are_there_stay_as_they_are(topics: Topics) -> None:
    Sender(topics.kafka).send([Outgoing(topics.publications, 2, b"{}")])
    topics.create(7)
    assert topics.exist()
    assert topics.n_partitions(topics.publications) == topics.n_partitions(topics.matches) == 3
    assert topics.n_partitions(topics.updates) == topics.n_partitions(topics.job) == 1
    assert Ends(topics.kafka).last(topics.publications, 3) == [0, 0, 1]


def test_updates_of_several_partitions_are_refused(kafka: Kafka) -> None:
    topics = Topics(kafka, f"two-{uuid.uuid4().hex}")
    admin = kafka.admin()
    admin.create_topics([NewTopic(topics.updates, 2)])[topics.updates].result()
    with pytest.raises(ConfigError, match=f"{topics.updates} must have one partition.*got 2"):
        topics.create(1)
    topics.delete()


def test_deleting_takes_those_of_one_prefix_only(topics: Topics) -> None:
    longer = Topics(topics.kafka, f"{topics.prefix}.matches-1")
    longer.create(1)
    longer.delete()
    longer.delete()
    assert topics.exist()


def test_a_topic_that_is_made_anew_has_another_identity(kafka: Kafka) -> None:
    topics = Topics(kafka, f"anew-{uuid.uuid4().hex}")
    topics.create(1)
    before = Ends(kafka).identity(topics.updates, topics.publications)
    assert Ends(kafka).identity(topics.updates, topics.publications) == before
    topics.delete()
    topics.create(1)
    assert Ends(kafka).identity(topics.updates, topics.publications) != before
    topics.delete()


def test_trimming_moves_the_first_offset(topics: Topics) -> None:
    Sender(topics.kafka).send([Outgoing(topics.updates, 0, b"{}") for _ in range(5)])
    topics.trim({(topics.updates, 0): 3})
    ends = Ends(topics.kafka)
    assert (ends.first(topics.updates, 1), ends.last(topics.updates, 1)) == ([3], [5])
    with pytest.raises(BrokerError, match="cannot trim topics"):
        topics.trim({(topics.updates, 0): 6})
