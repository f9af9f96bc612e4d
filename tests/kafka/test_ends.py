"""Ends are those of committed records, of as many partitions as there are."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from ps2stream.errors import BrokerError
from ps2stream.kafka import ends as kafka_ends
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.role_topics import RoleTopics
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


class Behind:
    """A client that asks by what a broker was before it started anew: it is refused whenever it asks."""

    code = KafkaError.FENCED_LEADER_EPOCH

    def list_offsets(self, wanted: dict[TopicPartition, Any], **more: Any) -> dict[TopicPartition, Any]:
        refused: Future[Any] = Future()
        refused.set_exception(KafkaException(KafkaError(self.code)))
        return dict.fromkeys(wanted, refused)


class Silent(Behind):
    """A client whose broker went amid a request, and who waits for the answer whatever it was told."""

    def list_offsets(self, wanted: dict[TopicPartition, Any], **more: Any) -> dict[TopicPartition, Any]:
        return dict.fromkeys(wanted, Future[Any]())


@pytest.mark.parametrize("kind", [Behind, Silent])
def test_a_client_that_is_behind_its_broker_or_waits_for_one_that_went_is_replaced(
    topics: Topics, kind: type[Behind], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_ends, "_ANSWER_S", 2.0)
    ends: Any = Ends(topics.kafka)
    ends._admin = behind = kind()
    assert ends.last(topics.publications, 3) == [0, 0, 0]
    assert ends._admin is not behind


def test_a_partition_without_a_leader_is_asked_for_again(topics: Topics) -> None:
    ends: Any = Ends(topics.kafka)
    admin = ends._admin

    class Leaderless(Behind):
        code = KafkaError._NOENT

        def list_offsets(self, wanted: dict[TopicPartition, Any], **more: Any) -> dict[TopicPartition, Any]:
            ends._admin = admin  # for the next request
            return super().list_offsets(wanted, **more)

    ends._admin = Leaderless()
    assert ends.last(topics.publications, 3) == [0, 0, 0]
    assert ends._admin is admin


def test_partitions_that_are_added_are_found_by_one_who_has_asked_before(topics: Topics) -> None:
    roles, ends = RoleTopics(topics, n_workers=1), Ends(topics.kafka)
    roles.create(n_dispatchers=1)
    assert ends.last(roles.name("notes"), 3) == [0, 0, 0]
    roles.create(n_dispatchers=2)
    assert ends.last(roles.name("notes"), 4) == [0, 0, 0, 0]
