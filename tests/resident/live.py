"""Clients of roles in memory that note what they did and saw, for the checker."""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.model.matches import Match
from ps2stream.model.schemas import EVENTS, PUBLISH
from ps2stream.resident.positions import update_seq
from ps2stream.resident.wire import Place, Topic
from ps2stream.roles.packets import decode, encode
from ps2stream.testing.generators import Step, random_events
from ps2stream.testing.history import Delivery, History, SentPublication, SentUpdate
from ps2stream.testing.oracle import Rejection
from resident.restless import Restless
from resident.rig import Rig

_RECORD = pa.schema(
    [*(each for each in EVENTS if each.name != "seq"), ("after", pa.int64()), ("as_of", pa.int64())]
)


def record_of(step: Step, after: int | None, as_of: int | None) -> bytes:
    """Return what is sent, whatever is wrong with it."""
    row = {**step.event._asdict(), "after": after, "as_of": as_of}
    del row["seq"]
    whole = pa.RecordBatch.from_pylist([row], schema=_RECORD)
    return encode(whole.drop_columns(["after", "as_of"]) if step.is_update else whole)


def as_sent(step: Step, number: int) -> Step:
    """Return a step as a topic can carry it: in that of publications all are some, and are named."""
    if step.is_update:
        return step
    name = f"p{number}" if step.event.id is None else step.event.id
    return step._replace(event=step.event._replace(op=PUBLISH, id=name))


def live_rig(seed: int, n_workers: int, n_dispatchers: int, as_of_s: float) -> tuple[Rig, Restless]:
    """Return a rig for events that bring no order, with cells that move all the time."""
    sample = one_batch(random_events(100, seed))
    chaos = Restless(seed, sample)
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers)
    return Rig.of(chosen, sample, controller=chaos, given=False, seed=seed, as_of_s=as_of_s), chaos


@dataclass
class Clients:
    """Send steps to a rig while it runs; what they say is acknowledged at once."""

    rig: Rig
    history: History = field(default_factory=History)
    _seqs: list[int] = field(default_factory=list)
    _clock: Any = field(default_factory=itertools.count)

    def will(self, steps: list[Step]) -> None:
        """Do some steps one after the other."""
        dice = random.Random(self.rig.seed)
        n_partitions = self.rig.topics.n_partitions[Topic.PUBLICATIONS]
        for number, step in enumerate(steps):
            doing = functools.partial(self._do, as_sent(step, number), dice.randrange(n_partitions))
            self.rig.coming.append(doing)

    def seen(self) -> History:
        """Return all that was sent and all that came of it."""
        rig = self.rig
        for partition in range(rig.topics.n_partitions[Topic.MATCHES]):
            for record in rig.topics.records(Place(Topic.MATCHES, partition)):
                worker = rig.writers[partition, record.offset]
                rows = decode(record.value or b"").to_pylist()
                self.history.deliveries += [Delivery(Match(*row.values()), worker) for row in rows]
        self.history.rejections = [Rejection(row["seq"], row["op"], row["id"]) for row in rig.rejected()]
        return self.history

    def _do(self, step: Step, partition: int) -> None:
        began, acked = float(next(self._clock)), float(next(self._clock))
        if step.is_update:
            offset = self.rig.topics.append(Place(Topic.UPDATES), record_of(step, None, None))
            self._seqs.append(update_seq(offset))
            event = step.event._replace(seq=self._seqs[-1])
            self.history.updates.append(SentUpdate(event, began, acked))
            return
        after = None if step.after is None else self._seqs[step.after]
        as_of = None if step.as_of is None else self._seqs[step.as_of]
        place = Place(Topic.PUBLICATIONS, partition)
        offset = self.rig.topics.append(place, record_of(step, after, as_of))
        self.history.publications.append(
            SentPublication(step.event, began, acked, partition, offset, after, as_of)
        )
