"""A load is over when its updates are done, too, and what goes with it begins when it does."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from ps2stream.kafka.sending import Outgoing
from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE
from ps2stream.roles.packets import decode
from ps2stream_bench.live import subject as module
from ps2stream_bench.live.schedule import Schedule
from ps2stream_bench.live.subject import Subject
from ps2stream_bench.live.threads import PARTS

TOPICS = SimpleNamespace(updates="updates", publications="publications")


class SlowRegistrar:
    """Client, observer and engine in one: it delivers at once, but decides after some publications."""

    def __init__(self, decides_after: int) -> None:
        self.decides_after, self.n_publications = decides_after, 0
        self.ops: list[str] = []
        self.words = {module._WORD}
        self.coming: list[str] = []
        self.delivered: list[str] = []
        self.last_at = 0.0
        self.n_taken = 0

    def send(self, records: list[Outgoing]) -> None:
        for record in records:
            (row,) = decode(record.value).to_pylist()
            if record.topic == TOPICS.updates:
                self.ops.append(row["op"])
                self.coming += [row["id"]] * (row["op"] == SUBSCRIBE)
                continue
            self.n_publications += 1
            if self.n_publications > self.decides_after:
                self.words.update(self.coming)
            if row["text"] in self.words:
                self.delivered.append(row["id"])

    def follow(self, schedule: Schedule, started: float) -> None:
        self.ops.append("load")

    def flush(self) -> None: ...

    def has(self, publication: str, start: int = 0) -> bool:
        return publication in self.delivered[start:]

    @property
    def n_seen(self) -> int:
        return len(self.delivered)

    def take(self) -> list[tuple[float, pa.RecordBatch]]:
        self.n_taken += 1
        return []


def subject_on(engine: Any) -> Subject:
    deployment: Any = SimpleNamespace(topics=TOPICS, check=lambda: None)
    return Subject(deployment, SimpleNamespace(pid=None), engine, 1, engine)  # type: ignore[arg-type]


def test_a_load_is_over_when_a_publication_has_seen_the_last_update() -> None:
    engine = SlowRegistrar(decides_after=4)
    subject = subject_on(engine)
    started = time.perf_counter()
    subject._wait_for_rest()
    # One for what was published before, and then one at a time until the subscription is known.
    assert engine.n_publications == 5
    assert engine.ops == [SUBSCRIBE, UNSUBSCRIBE]
    assert started < subject._updated_at < time.perf_counter()


def test_what_goes_with_a_load_begins_when_all_is_ready_and_nothing_of_it_is_thrown_away(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(Subject, "_seconds", lambda self: dict.fromkeys(PARTS, 0.0))
    engine = SlowRegistrar(decides_after=0)
    subject = subject_on(engine)
    n_taken: list[int] = []
    subject._followed(Schedule("p", [], np.zeros(0), 0), lambda: n_taken.append(engine.n_taken))
    assert n_taken == [1]  # what came before is gone by then
    assert engine.n_taken == 2  # and is taken once more when all is over
    assert engine.ops[0] == "load"
