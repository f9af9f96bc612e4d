"""When a publication sees a subscription that was acknowledged, without asking to come after it.

Every few milliseconds a publication is sent that has the words of all subscriptions under test in its text.
Of each subscription the first publication that was delivered to it tells: from when brokers had the
subscription until that publication was sent, it was not visible.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s
from ps2stream.kafka.sending import Outgoing
from ps2stream.roles.packets import encode
from ps2stream_bench.live.clients import Acknowledged, Client
from ps2stream_bench.live.subject import Subject

#: The grain of what is measured.
EVERY_S = 0.005
_SUBSCRIBE_EVERY_S = 0.05
#: So many subscriptions are asked for at a time, the newest: so long one has to become visible.
_N_WORDS = 40
_PLACE = {"lat": 40.0, "lon": -100.0}


class Probe(threading.Thread):
    """Subscribe now and then, publish all the time, for some seconds."""

    def __init__(self, subject: Subject, seconds: float) -> None:
        super().__init__(name="visibility", daemon=True)
        self._topics, self._n_partitions = subject.deployment.topics, subject.n_partitions
        self._client = Client(self._topics)
        self._n = int(seconds / EVERY_S)
        self._acknowledged = Acknowledged()
        self._sent_at: list[float] = []

    def run(self) -> None:
        started, n_words = time.perf_counter(), 0
        for number in range(self._n):
            due = started + number * EVERY_S
            time.sleep(max(0.0, due - time.perf_counter()))
            if number * EVERY_S >= n_words * _SUBSCRIBE_EVERY_S:
                self._subscribe(n_words)
                n_words += 1
            words = " ".join(f"visible{n}word" for n in range(max(0, n_words - _N_WORDS), n_words))
            packet = pa.RecordBatch.from_pylist([{"id": f"visibility-{number}", **_PLACE, "text": words}])
            record = Outgoing(self._topics.publications, number % self._n_partitions, encode(packet))
            self._sent_at.append(time.perf_counter())
            self._client.send([record])
        self._client.flush()

    def _subscribe(self, number: int) -> None:
        key = f"visible-{number}".encode()
        value = {"id": key.decode(), "expression": f"visible{number}word", "region": [-101, 39, -99, 41]}
        record = Outgoing(self._topics.updates, 0, json.dumps(value).encode(), key)
        self._client.send([record], self._acknowledged.told(key))

    def found_s(self, seen: Iterable[tuple[float, pa.RecordBatch]]) -> Float64s:
        """Return of each subscription how long it was not visible after it was acknowledged."""
        first: dict[str, int] = {}
        for _, matches in seen:
            is_own = pa.compute.starts_with(matches.column("publication_id"), "visibility-")
            for row in matches.filter(is_own).to_pylist():
                number = int(row["publication_id"].rpartition("-")[2])
                id = row["subscription_id"]
                first[id] = min(number, first.get(id, number))
        waited = [
            self._sent_at[number] - self._acknowledged.at[id.encode()]
            for id, number in first.items()
            if id.encode() in self._acknowledged.at
        ]
        # One that was sent before the acknowledgement came back may see it already.
        return np.array([max(each, 0.0) for each in waited])
