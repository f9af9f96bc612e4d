"""Whose output the topics are: a job claims them, and another is refused.

Two jobs on one prefix, each with a state of its own, would both deliver every match. A claim is a record of a
topic of one partition that is kept for ever, so the first one is the same for everybody: whoever claims
appends, then reads what came first.
"""

from __future__ import annotations

from ps2stream.errors import StateError
from ps2stream.kafka.reading import Span, ends_of, read
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics


def claim(topics: Topics, job_id: str) -> None:
    """Make the topics that of one job; raise if they belong to another."""
    if owner_of(topics) is None:
        Sender(topics.kafka).send([Outgoing(topics.job, 0, job_id.encode())])
    owner = owner_of(topics)
    if owner != job_id:
        raise StateError(
            f"the topics {topics.prefix}.* at Kafka {topics.kafka.servers} belong to another job; "
            "use another prefix, or remove them together with that job's state"
        )


def owner_of(topics: Topics) -> str | None:
    """Return the job that the topics belong to; None while they belong to nobody."""
    [(low, high)] = ends_of(topics.kafka, topics.job, range(1))
    for records in read(topics.kafka, Span(topics.job, 0, low, high)):
        for record in records:
            return (record.value or b"").decode(errors="replace")
    return None
