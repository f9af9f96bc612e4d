"""Each part of a batch is delivered once for those who read what was committed, whoever is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from brokers import free_port
from kafka.delivering_process import PART, STEPS, records_of, run, start
from ps2stream.kafka import client, delivering
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.delivering import deliver, forget
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from testbed import lone_broker
from waiting import HANG_S


def committed(topics: Topics) -> Counter[bytes]:
    """Return how often each record can be read, once no transaction is open."""
    n, until, ends = topics.n_partitions(topics.matches), time.monotonic() + HANG_S, Ends(topics.kafka)
    while (last := ends.last(topics.matches, n)) != ends.acknowledged(topics.matches, n):
        assert time.monotonic() < until
    return Counter(
        record.value or b""
        for partition, end in enumerate(last)
        for records in read(topics.kafka, Span(topics.matches, partition, 0, end))
        for record in records
    )


def uncommitted(topics: Topics) -> Counter[bytes]:
    """Return how often each record is there for those who read all."""
    n = topics.n_partitions(topics.matches)
    settings = topics.kafka._settings({}, {"group.id": "all", "isolation.level": "read_uncommitted"})
    found: Counter[bytes] = Counter()
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topics.matches, number, 0) for number in range(n)])
    n_ended = 0
    while n_ended < n:
        message = consumer.poll(1)
        if message is not None and message.error() is not None:
            n_ended += 1
        elif message is not None:
            found[message.value() or b""] += 1
    consumer.close()
    return found


def once(topics: Topics, *batch_ids: int) -> Counter[bytes]:
    return Counter(record.value or b"" for batch in batch_ids for record in records_of(topics, batch))


def test_a_part_is_delivered_once_however_often_it_is_asked_for(topics: Topics) -> None:
    for batch_id in (0, 0, 3, 3, 0, 1):
        deliver(topics, PART, batch_id, records_of(topics, batch_id))
    assert committed(topics) == once(topics, 0, 3)


def test_parts_and_deployments_know_nothing_of_each_other(topics: Topics) -> None:
    other = Topics(topics.kafka, f"{topics.prefix}.{PART}")
    other.create(3)
    for each in (topics, other):
        for part in (PART, "matches-001", "rejected-updates"):
            deliver(each, part, 5, records_of(each, 5))
    three = Counter(dict.fromkeys(once(topics, 5), 3))
    assert committed(topics) == committed(other) == three
    forget(topics)
    deliver(other, PART, 5, records_of(other, 5))
    assert committed(other) == three, "what was delivered to the other is still known"
    deliver(topics, PART, 5, records_of(topics, 5))
    assert committed(topics) == Counter(dict.fromkeys(once(topics, 5), 4))
    other.delete()


def test_topics_that_are_made_anew_know_nothing_of_what_was_delivered(kafka: Kafka, topics: Topics) -> None:
    deliver(topics, PART, 5, records_of(topics, 5))
    topics.delete()
    topics.create(3)
    assert run(topics, 0, 0) == 0
    assert committed(topics) == once(topics, 0)


def test_records_that_cannot_all_be_made_leave_nothing(topics: Topics) -> None:
    def records() -> Iterator[Outgoing]:
        yield from records_of(topics, 0)[:3]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        deliver(topics, PART, 0, records())
    deliver(topics, PART, 0, records_of(topics, 0))
    assert committed(topics) == once(topics, 0)


@pytest.mark.parametrize("step", ["before commit_transaction", "after commit_transaction"])
def test_a_process_that_is_killed_around_its_commit_delivers_once(topics: Topics, step: str) -> None:
    assert run(topics, 0, 0, step) == -signal.SIGKILL
    deliver(topics, PART, 0, records_of(topics, 0))
    assert committed(topics) == once(topics, 0)


@pytest.mark.slow
@pytest.mark.parametrize("step", [f"{when} {name}" for name in STEPS for when in ("before", "after")])
def test_a_process_that_is_killed_at_any_step_delivers_once(topics: Topics, step: str) -> None:
    deliver(topics, PART, 3, records_of(topics, 3))
    assert run(topics, 4, 4, step) == -signal.SIGKILL
    # Who comes next dies at the same step, unless all was done before: then there is nothing to commit.
    is_done = step == "after commit_transaction"
    assert run(topics, 4, 4, step) == (0 if is_done else -signal.SIGKILL)
    assert run(topics, 4, 5) == 0
    deliver(topics, PART, 4, records_of(topics, 4))
    deliver(topics, PART, 6, records_of(topics, 6))
    assert committed(topics) == once(topics, 3, 4, 5, 6)


class HangsOnce(Producer):
    """A client that waits for a broker that has gone, whatever time-out it was given."""

    n_noted = 0

    def send_offsets_to_transaction(self, *words: Any) -> None:
        HangsOnce.n_noted += 1
        if HangsOnce.n_noted == 1:
            time.sleep(HANG_S)
        super().send_offsets_to_transaction(*words)


def test_a_client_that_hangs_is_left_behind_and_what_it_left_open_is_delivered_once(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "Producer", HangsOnce)
    monkeypatch.setattr(delivering, "_NOTE_S", 0.5)
    deliver(topics, PART, 0, records_of(topics, 0))
    assert HangsOnce.n_noted == 2
    assert committed(topics) == once(topics, 0)


@pytest.mark.slow
def test_a_broker_that_is_killed_before_it_takes_note_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, killed = free_port(), threading.Event()

    class Bereft(Producer):
        def send_offsets_to_transaction(self, *words: Any) -> None:
            if not killed.is_set():
                self.flush(10)
                lone_broker.kill(port)
                killed.set()
            super().send_offsets_to_transaction(*words)

    lone_broker.up(port, tmp_path / "data", is_brief=True)
    try:
        topics = Topics(Kafka(f"{lone_broker.ADDRESS}:{port}"), "bereft")
        topics.create(3)
        monkeypatch.setattr(client, "Producer", Bereft)
        with ThreadPoolExecutor(1) as background:
            delivered = background.submit(deliver, topics, PART, 0, records_of(topics, 0))
            assert killed.wait(HANG_S)
            lone_broker.up(port, tmp_path / "data", is_brief=True)
            delivered.result(HANG_S)
        assert committed(topics) == once(topics, 0)
    finally:
        lone_broker.down(port)


def test_who_reads_what_is_not_committed_may_see_more(topics: Topics) -> None:
    assert run(topics, 0, 0, "before commit_transaction") == -signal.SIGKILL
    deliver(topics, PART, 0, records_of(topics, 0))
    assert committed(topics) == once(topics, 0)
    assert uncommitted(topics) == once(topics, 0, 0)


@pytest.mark.slow
def test_two_processes_that_deliver_the_same_batches_at_once_deliver_each_once(topics: Topics) -> None:
    with start(topics, 0, 14) as one, start(topics, 0, 14) as two:
        assert (one.wait(HANG_S), two.wait(HANG_S)) == (0, 0)
    assert committed(topics) == once(topics, *range(15))


def test_a_process_that_wakes_after_later_batches_delivers_nothing(topics: Topics) -> None:
    with start(topics, 0, 200) as asleep:
        assert asleep.stdout is not None
        assert asleep.stdout.readline() == b"0\n"
        os.kill(asleep.pid, signal.SIGSTOP)
        deliver(topics, PART, 1_000, records_of(topics, 1_000))
        before = committed(topics)
        os.kill(asleep.pid, signal.SIGCONT)
        assert asleep.wait(HANG_S) == 0
    assert committed(topics) == before
    assert before >= once(topics, 0, 1_000)
    assert set(before.values()) == {1}


def test_a_fork_delivers_by_a_client_of_its_own(topics: Topics) -> None:
    deliver(topics, PART, 0, records_of(topics, 0))
    child = os.fork()
    if not child:
        deliver(topics, PART, 0, records_of(topics, 0))
        deliver(topics, PART, 1, records_of(topics, 1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    deliver(topics, PART, 1, records_of(topics, 1))
    deliver(topics, PART, 2, records_of(topics, 2))
    assert committed(topics) == once(topics, 0, 1, 2)
