"""Transactions that nobody ends any more: found before a role begins, and aborted.

A coordinator that is killed after it has decided to commit, and before partitions have their markers of that,
writes these when it is back. But partitions that it does not know yet it takes for deleted, and does without
their markers (KAFKA-5202). The records stay as they are, neither committed nor aborted, until the next marker
of the same role comes: a successor, who cannot read the note among them, would do the same work again, and
its first commit would commit both.

Every transaction of a role has a note, in a partition that nobody else writes. When the role has become the
only writer, nothing may be open there. Which of its clients left it cannot be seen: each aborts a transaction
in all places.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import Producer

from ps2stream.errors import BrokerError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.sending import Outgoing, produce

#: Markers may be there, and their followers not yet.
GRACE_S = 2.0
_LOOK_EVERY_S = 0.05
_ABORT_S = 30.0


def abort_what_hangs(
    producers: Iterable[Producer],
    ends: Ends,
    notes: tuple[str, int],
    topics: Iterable[str],
    grace_s: float = GRACE_S,
) -> bool:
    """Abort a transaction of these producers' predecessors that hangs; say whether there was one.

    ``notes``: the topic and the partition that shows it. ``topics``: where else it may have records.
    """
    topic, mine = notes
    if _closes(ends, notes, grace_s):
        return False
    places = [(topic, mine), *((each, partition) for each in topics for partition in _open(ends, each))]
    for producer in producers:
        producer.begin_transaction()
        for place in places:
            # Where it is another's that is open, this one does no harm: nobody reads what was aborted.
            produce(producer, Outgoing(*place, b""))
        producer.flush(_ABORT_S)  # else nothing of it would reach the partitions, nor a marker
        producer.abort_transaction(_ABORT_S)
    if not _closes(ends, notes, grace_s):
        raise BrokerError(f"a transaction hangs in partition {mine} of {topic}, which has one writer")
    return True


def _closes(ends: Ends, notes: tuple[str, int], within_s: float) -> bool:
    """Say whether everything in a partition is committed or aborted, or soon will be."""
    topic, partition = notes
    until = time.monotonic() + within_s
    while partition in _open(ends, topic):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _open(ends: Ends, topic: str) -> list[int]:
    """Return the partitions of a topic that have a transaction which is not over."""
    n = ends.n_partitions(topic)
    # What was committed first: what is added in between looks open, and is looked at again.
    committed, acknowledged = ends.last(topic, n), ends.acknowledged(topic, n)
    return [number for number in range(n) if acknowledged[number] > committed[number]]
