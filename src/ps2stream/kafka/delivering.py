"""Deliver parts of batches to topics, each once for those who read what was committed.

What one task delivers of a batch is a *part*, such as the matches of worker 3. Its records and the note that
the part is delivered up to this batch are one transaction: both are there or neither is. The note is the
offset that a consumer group, which nobody is in, has committed; the part is in the group's name.

- *Whoever runs a batch again* finds the note and leaves it at that.
- *Two at once* (a task that Spark gave up on still runs) have the same transactional id, so the later one
  fences the earlier one, and only then reads the note: it sees what the earlier one has committed, and what
  it has not will never be. Who is fenced looks again, by becoming the later one.
- *A task that wakes after later batches* finds a note above its own batch.

A part is a function of the log and the events of its batch, so it does not matter who delivers it. A process
keeps its producer from batch to batch; one that was not fenced knows by itself what it has delivered.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ps2stream.errors import BrokerError
from ps2stream.kafka.client import PATIENCE_S, reason_of
from ps2stream.kafka.sending import Outgoing, produce
from ps2stream.kafka.topics import Topics
from ps2stream.kafka.transactions import init_transactions

#: Brokers abort a transaction that is left open for longer.
_TRANSACTION_MS = 60_000
_ASK_S = 30.0
#: A note is a request or two. The client knows no limit for it (see ``_note``), so it is ours.
_NOTE_S = 15.0
#: The client's queue; beyond it a caller waits.
_QUEUE_KB = 1 << 18
_PAUSE_S = 0.2
#: Names of parts: without a dot, or those of a prefix that begins with another would be taken for its own.
_PARTS = "(matches|rejected)-[^.]+"


@dataclass(slots=True)
class _Outlet:
    """The producer of a part, and the batch that is the last it is known to have delivered."""

    producer: Producer
    group: Consumer
    delivered: int

    def close(self) -> None:
        self.group.close()
        self.producer.purge()


#: By process, too: a client does not survive a fork.
_outlets: dict[tuple[int, Topics, str], _Outlet] = {}


def deliver(topics: Topics, part: str, batch_id: int, records: Iterable[Outgoing]) -> None:
    """Deliver a part of a batch, unless it has been; ``records`` may be asked for again."""
    until = time.monotonic() + PATIENCE_S
    while True:
        outlet = _outlets.pop((os.getpid(), topics, part), None)
        was_kept = outlet is not None
        try:
            if outlet is None:
                outlet = _opened(topics, part)
            if outlet.delivered < batch_id:
                _deliver(outlet, topics, batch_id, records)
            _outlets[os.getpid(), topics, part] = outlet
            return
        except KafkaException as error:
            # Fenced, or the broker has gone: a new producer finds out what became of the transaction.
            if outlet is not None:
                outlet.close()
            if time.monotonic() > until:
                raise BrokerError(
                    f"cannot deliver {part} of batch {batch_id} to Kafka {topics.kafka.servers}: "
                    f"{reason_of(error)}"
                ) from error
            if not was_kept:  # else another process has delivered this part since, as usual
                time.sleep(_PAUSE_S)
        except BaseException:
            if outlet is not None:
                outlet.close()  # with the transaction, which whoever comes next aborts
            raise


def forget(topics: Topics) -> None:
    """Forget how far parts are delivered: another job begins with its first batch."""
    for key in [key for key in _outlets if key[:2] == (os.getpid(), topics)]:
        _outlets.pop(key).close()
    name = re.compile(re.escape(f"{topics.prefix}.") + _PARTS)
    with topics.kafka.telling("forget what was delivered"):
        admin = topics.kafka.admin()
        listed = admin.list_consumer_groups(request_timeout=PATIENCE_S).result()
        groups = [each.group_id for each in listed.valid if name.fullmatch(each.group_id)]
        if groups:
            for deleted in admin.delete_consumer_groups(groups, request_timeout=PATIENCE_S).values():
                deleted.result()


def _opened(topics: Topics, part: str) -> _Outlet:
    """Fence who delivered this part before, then look how far it came."""
    name = f"{topics.prefix}.{part}"
    producer = topics.kafka.producer(
        transactional_id=name,
        transaction_timeout_ms=_TRANSACTION_MS,
        queue_buffering_max_kbytes=_QUEUE_KB,
    )
    init_transactions(producer)
    group = topics.kafka.consumer(group_id=name)
    try:
        [noted] = group.committed([TopicPartition(topics.updates, 0)], timeout=_ASK_S)
    except BaseException:
        group.close()
        raise
    return _Outlet(producer, group, noted.offset - 1 if noted.offset >= 0 else -1)


def _deliver(outlet: _Outlet, topics: Topics, batch_id: int, records: Iterable[Outgoing]) -> None:
    producer = outlet.producer
    producer.begin_transaction()
    for record in records:
        produce(producer, record)
    note = TopicPartition(topics.updates, 0, batch_id + 1)
    _note(outlet, note)
    producer.commit_transaction(_ASK_S)
    outlet.delivered = batch_id


def _note(outlet: _Outlet, note: TopicPartition) -> None:
    """Make a note part of the transaction; raise if that takes too long.

    The client forgets its time-out when the broker goes amid the request, and waits for ever (librdkafka's
    issue 5456). Hence a thread, which is left behind with its producer: the next one of the name fences it.
    """
    failures: list[Exception] = []
    group = outlet.group.consumer_group_metadata()

    def ask() -> None:
        try:
            outlet.producer.send_offsets_to_transaction([note], group, _NOTE_S)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=ask, name="note", daemon=True)
    thread.start()
    thread.join(_NOTE_S + 1.0)
    if thread.is_alive():
        words = f"brokers took no note of a transaction for {_NOTE_S:.0f} s"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, words))
    if failures:
        raise failures[0]
