"""A stream without an end: publications that come again and again, and subscriptions that come and go.

As many live after an hour as after a minute: who began first ends first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.roles.packets import encode

#: A gateway sends so often what has come to it.
TICK_S = 0.01
#: So many packets of publications are made; then the first comes again.
_N_PACKETS = 500
_PUBLICATION = ["id", "lat", "lon", "text"]
_BODY = ["expression", "min_lon", "min_lat", "max_lon", "max_lat"]


class Churn:
    """Give what is due at each tick, at a rate; five publications come with one update."""

    def __init__(
        self, topics: Topics, events: pa.RecordBatch, tuples_per_s: float, n_partitions: int, n_kept: int
    ) -> None:
        self._topics, self._n_partitions, self._n_kept = topics, n_partitions, n_kept
        self.n_events_of_tick = max(6, int(tuples_per_s * TICK_S))
        self._n_updates = self.n_events_of_tick // 6
        n_publications = self.n_events_of_tick - self._n_updates
        publications = events.filter(pc.equal(events.column("op"), PUBLISH)).select(_PUBLICATION)
        rows = (np.arange(_N_PACKETS)[:, None] * n_publications + np.arange(n_publications)).ravel()
        cycled = publications.take(pa.array(rows % publications.num_rows))
        self._packets = [
            encode(cycled.slice(number * n_publications, n_publications)) for number in range(_N_PACKETS)
        ]
        self._bodies = events.filter(pc.equal(events.column("op"), SUBSCRIBE)).select(_BODY)
        self._live: deque[str] = deque()
        self._n_begun = 0

    def ticks(self) -> Iterator[list[Outgoing]]:
        """Give the records of one tick after the other, for ever."""
        number = 0
        while True:
            partition = number % self._n_partitions
            packet = self._packets[number % _N_PACKETS]
            yield [
                Outgoing(self._topics.publications, partition, packet),
                Outgoing(self._topics.updates, 0, encode(self._updates())),
            ]
            number += 1

    def _updates(self) -> pa.RecordBatch:
        """Let the oldest subscriptions go, where there are enough, and new ones come in their places."""
        # Rounded up: of an odd number one more would begin than end, each time.
        n_ended = max(0, min((self._n_updates + 1) // 2, len(self._live) - self._n_kept))
        ended = [self._live.popleft() for _ in range(n_ended)]
        n_begun = self._n_updates - n_ended
        begun = [f"churn-{self._n_begun + row}" for row in range(n_begun)]
        rows = (self._n_begun + np.arange(n_begun)) % self._bodies.num_rows
        bodies = self._bodies.take(pa.array([*rows.tolist(), *([None] * n_ended)], pa.int64()))
        self._n_begun += n_begun
        self._live.extend(begun)
        ops = pa.array([SUBSCRIBE] * n_begun + [UNSUBSCRIBE] * n_ended)
        columns = {"op": ops, "id": pa.array(begun + ended)}
        return pa.RecordBatch.from_pydict({**columns, **{name: bodies.column(name) for name in _BODY}})
