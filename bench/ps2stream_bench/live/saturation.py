"""How many tuples a second an engine can do, once it is warm, for as long as they come.

A flood is done faster than any stream: all of it waits, batches are as large as they can be, and it is over
before anything else is due. Saturation is the highest rate of an open loop with which an engine keeps up.

Java translates what is hot while it runs: a broker of a user has done that long ago, and one that was started
for a case takes twice the time for a commit until it has.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import pyarrow as pa

from ps2stream_bench.results import Row

#: Which share of the stream is a first flood, at most warms up, is a flood once more, and at most is tried
#: each time to find the rate that an engine keeps up with.
_FLOOD, _WARMING, _FLOODING, _TRYING = 0.03, 0.2, 0.07, 0.1
#: Of the rate of the first flood.
_WARM_LOAD = 0.35
#: Of the rate of the second flood, one after the other; the last is taken as it is.
_SHARES = (0.9, 0.75, 0.62, 0.5, 0.4, 0.3)
_TRY_S = 4.0


class Subject(Protocol):
    """A running engine with its subscriptions."""

    def flood(self, events: pa.RecordBatch) -> Row: ...

    def offer(self, events: pa.RecordBatch, tuples_per_s: float, seed: int) -> Row: ...


class Saturation(NamedTuple):
    """The highest rate that an engine keeps up with, that of a flood, and the events that are left."""

    tuples_per_s: float
    flood_tuples_per_s: float
    rest: pa.RecordBatch


def saturation_of(subject: Subject, events: pa.RecordBatch, warm_s: float, seed: int) -> Saturation:
    """Flood an engine, offer it some load for a while, flood it again, and try what it keeps up with."""
    flood, rest = flooded(subject, events, warm_s, seed)
    rate = flood
    for share in _SHARES:
        rate = flood * share
        part = rest.slice(0, max(1, min(int(rate * _TRY_S), int(_TRYING * events.num_rows))))
        rest = rest.slice(part.num_rows)
        if subject.offer(part, rate, seed)["kept_up"]:
            break
    return Saturation(rate, flood, rest)


def flooded(
    subject: Subject, events: pa.RecordBatch, warm_s: float, seed: int
) -> tuple[float, pa.RecordBatch]:
    """Flood an engine, offer it some load for a while, and flood it again: return that rate, and the rest."""
    n = events.num_rows
    start = int(_FLOOD * n)
    rate = subject.flood(events.slice(0, start))["tuples_per_s"]
    if n_warm := int(min(_WARM_LOAD * rate * warm_s, _WARMING * n)):
        subject.offer(events.slice(start, n_warm), n_warm / warm_s, seed)
        start += n_warm
    size = int(_FLOODING * n)
    rate = subject.flood(events.slice(start, size))["tuples_per_s"]
    return float(rate), events.slice(start + size)
