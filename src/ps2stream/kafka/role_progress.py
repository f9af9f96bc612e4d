"""Is there anything that resident roles have not read yet?"""

from __future__ import annotations

from collections.abc import Mapping

from ps2stream.errors import BrokerError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.places import Place
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.role_topics import RoleTopics


def all_read(topics: RoleTopics, ends: Ends, done: Mapping[Place, int]) -> bool:
    """Say whether no committed record lies at or behind the next offsets of some places.

    An offset behind the last record may hold the mark of a transaction, which nobody reads.
    """
    for place, next_offset in done.items():
        name = topics.name(place.topic)
        end = ends.last(name, place.partition + 1)[place.partition]
        first = ends.first(name, place.partition + 1)[place.partition]
        span = Span(name, place.partition, max(first, next_offset), end)
        try:
            if any(records for records in read(topics.topics.kafka, span)):
                return False
        except BrokerError:
            if ends.first(name, place.partition + 1)[place.partition] <= span.start:
                raise
            return False  # trimmed since it was looked for: whoever did that has read more meanwhile
    return True
