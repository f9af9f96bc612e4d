"""How many tuples a second an engine can do, once it is warm.

Java translates what is hot while it runs: a broker of a user has done that long ago, and one that was started
for a case takes twice the time for a commit until it has.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import pyarrow as pa

from ps2stream_bench.results import Row

#: Which share of the stream is a first flood, which at most warms up, which finds the saturation.
_FLOOD, _WARMING, _SATURATING = 0.05, 0.3, 0.15
#: Of the rate of the first flood.
_WARM_LOAD = 0.25


class Subject(Protocol):
    """A running engine with its subscriptions."""

    def flood(self, events: pa.RecordBatch) -> Row: ...

    def offer(self, events: pa.RecordBatch, tuples_per_s: float, seed: int) -> Row: ...


class Saturation(NamedTuple):
    """The rate of a flood, and the events that are left."""

    tuples_per_s: float
    rest: pa.RecordBatch


def saturation_of(subject: Subject, events: pa.RecordBatch, warm_s: float, seed: int) -> Saturation:
    """Flood an engine, offer it some load for a while, and flood it again."""
    n = events.num_rows
    start = int(_FLOOD * n)
    rate = subject.flood(events.slice(0, start))["tuples_per_s"]
    if n_warm := int(min(_WARM_LOAD * rate * warm_s, _WARMING * n)):
        subject.offer(events.slice(start, n_warm), n_warm / warm_s, seed)
        start += n_warm
    size = int(_SATURATING * n)
    rate = subject.flood(events.slice(start, size))["tuples_per_s"]
    return Saturation(float(rate), events.slice(start + size))
