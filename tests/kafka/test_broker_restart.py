"""A broker that is killed and comes back is waited for, by whoever reads, looks, sends and delivers."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokers import _free_port
from kafka.delivering_process import PART, records_of
from kafka.produced import kept
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.delivering import deliver
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, ends_of, read
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from testbed import lone_broker

pytestmark = pytest.mark.slow


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    number = _free_port()
    lone_broker.up(number, tmp_path / "data")
    yield number
    lone_broker.down(number)


def kill(port: int) -> None:
    pid = lone_broker._running(lone_broker._directory(port))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while lone_broker._running(lone_broker._directory(port)) is not None:
        time.sleep(0.05)


def test_everybody_waits_for_a_broker_that_comes_back(port: int, tmp_path: Path) -> None:
    topics = Topics(Kafka(f"127.0.0.1:{port}"), "t")
    topics.create(3)
    ends, sender = Ends(topics.kafka), Sender(topics.kafka)
    sender.send([Outgoing(topics.updates, 0, b"%d" % n) for n in range(20)])
    deliver(topics, PART, 0, records_of(topics, 0))
    span = Span(topics.updates, 0, 0, 20)
    assert sum(map(len, read(topics.kafka, span))) == 20

    failed: list[BaseException] = []

    def trying(act: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                act()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    for number in range(1, 3):
        kill(port)
        acts: list[Callable[[], object]] = [
            lambda: ends.last(topics.updates, 1),
            lambda: ends_of(topics.kafka, topics.updates, range(1)),
            lambda: list(read(topics.kafka, span)),
            lambda: sender.send([Outgoing(topics.positions, 0, b"{}")]),
            functools.partial(deliver, topics, PART, number, records_of(topics, number)),
        ]
        threads = [trying(act) for act in acts]
        time.sleep(1.0)
        lone_broker.up(port, tmp_path / "data")
        for thread in threads:
            thread.join()
        assert failed == []
    values = [record.value for records in read(topics.kafka, span) for record in records]
    assert values == [b"%d" % n for n in range(20)]
    assert len(kept(topics, topics.positions)) == 2
    n = topics.n_partitions(topics.matches)
    found = [
        record.value
        for partition, end in enumerate(ends.last(topics.matches, n))
        for records in read(topics.kafka, Span(topics.matches, partition, 0, end))
        for record in records
    ]
    assert sorted(map(repr, found)) == sorted(
        repr(record.value) for batch in range(3) for record in records_of(topics, batch)
    )
