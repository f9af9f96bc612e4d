"""Who becomes the only producer of a name is patient with brokers, and with nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ps2stream.kafka import transactions
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.transactions import init_transactions


class Refusing:
    """A producer that is refused some times."""

    def __init__(self, n_times: int, *, retriable: bool) -> None:
        self.n_asked, self._n_times, self._retriable = 0, n_times, retriable

    def init_transactions(self, timeout_s: float) -> None:
        self.n_asked += 1
        if self.n_asked <= self._n_times:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no", retriable=self._retriable))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_PAUSE_S", 0.0)


def test_what_may_be_tried_again_is() -> None:
    producer: Any = Refusing(3, retriable=True)
    init_transactions(producer)
    assert producer.n_asked == 4


def test_what_is_no_use_to_try_again_is_told_at_once() -> None:
    producer: Any = Refusing(3, retriable=False)
    with pytest.raises(KafkaException):
        init_transactions(producer)
    assert producer.n_asked == 1


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PATIENCE_S", -1.0)
    producer: Any = Refusing(3, retriable=True)
    with pytest.raises(KafkaException):
        init_transactions(producer)


def test_the_one_before_is_fenced(kafka: Kafka) -> None:
    before = kafka.producer(transactional_id="test-transactions")
    init_transactions(before)
    before.begin_transaction()
    init_transactions(kafka.producer(transactional_id="test-transactions"))
    before.produce("test-transactions", b"x")
    with pytest.raises(KafkaException):
        before.commit_transaction(30)
