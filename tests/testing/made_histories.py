"""Histories as a deployment that keeps every law would leave them: a model of the engine, with its freedom.

Updates get their seqs from a log; some senders never hear of it. Each partition of publications has a
dispatcher that follows the log at a pace of its own. Matches come from the oracle, on a log in which each
publication has a place of its own. Workers deliver them in the order of each partition, and as mixed up as
they like otherwise.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from ps2stream.model.matches import Match
from ps2stream.testing import oracle
from ps2stream.testing.generators import Step, random_steps
from ps2stream.testing.history import Delivery, History, SentPublication, SentUpdate
from ps2stream.testing.oracle import EventRow, Rejection

_N_PARTITIONS = 3
_N_WORKERS = 2
_SILENT_SHARE = 0.1


class _Placed(NamedTuple):
    position: int
    partition: int
    sent: SentPublication


def made_history(n_steps: int, seed: int, **shares: float) -> History:
    """Return what clients of a deployment note that does everything right."""
    model = _Model(random.Random(seed))
    for step in random_steps(n_steps, seed, **shares):
        model.take(step)
    return model.finished()


def shuffled(history: History, rng: random.Random) -> History:
    """Return the same history with its lists in another order, as far as their order says nothing."""
    updates = rng.sample(history.updates, len(history.updates))
    publications = rng.sample(history.publications, len(history.publications))
    rejections = rng.sample(history.rejections, len(history.rejections))
    return History(updates, publications, history.deliveries, rejections, history.log)


@dataclass
class _Model:
    rng: random.Random
    history: History = field(default_factory=History)
    log: list[EventRow] = field(default_factory=list)
    #: The seq of each update that was sent; None: it never came into the log.
    seqs: list[int | None] = field(default_factory=list)
    positions: list[int] = field(default_factory=lambda: [1] * _N_PARTITIONS)
    n_records: list[int] = field(default_factory=lambda: [0] * _N_PARTITIONS)
    placed: list[_Placed] = field(default_factory=list)
    now_s: float = 0.0

    def take(self, step: Step) -> None:
        self.now_s += 1.0
        if step.is_update:
            self._update(step.event)
        else:
            self._publish(step)

    def _update(self, event: EventRow) -> None:
        luck = self.rng.random()
        is_lost, is_silent = luck < _SILENT_SHARE / 2, luck < _SILENT_SHARE
        seq = None if is_lost else len(self.log) + 1 << 18 | self.rng.randrange(4) << 1
        self.seqs.append(seq)
        if seq is not None:
            self.log.append(event._replace(seq=seq))
        sent = SentUpdate(event, self.now_s)
        if not is_silent:
            sent = SentUpdate(event._replace(seq=seq), self.now_s, self._later())
        self.history.updates.append(sent)

    def _publish(self, step: Step) -> None:
        after = None if step.after is None else self.seqs[step.after]
        as_of = None if step.as_of is None else self.seqs[step.as_of]
        sent = SentPublication(step.event, self.now_s, after=after, as_of=as_of)
        luck = self.rng.random()
        if luck > _SILENT_SHARE / 2:
            partition = self.rng.randrange(_N_PARTITIONS)
            offset, self.n_records[partition] = self.n_records[partition], self.n_records[partition] + 1
            if luck > _SILENT_SHARE:
                sent = SentPublication(
                    step.event, self.now_s, self._later(), partition, offset, after=after, as_of=as_of
                )
            self._process(sent, partition)
        self.history.publications.append(sent)

    def _process(self, sent: SentPublication, partition: int) -> None:
        if sent.as_of is not None and self.rng.random() < 0.2:
            self.history.rejections.append(Rejection(None, sent.event.op, sent.event.id))
        elif sent.as_of is not None:
            self.placed.append(_Placed(sent.as_of | 1, partition, sent))
        else:
            at, after = self.positions[partition], sent.after or 0
            reachable = [seq + 1 for seq in self.seqs if seq is not None and seq >= max(at, after)]
            if at <= after or (reachable and self.rng.random() < 0.3):
                self.positions[partition] = self.rng.choice(reachable)
            self.placed.append(_Placed(self.positions[partition], partition, sent))

    def _later(self) -> float:
        return self.now_s + self.rng.choice((0.1, 0.5, 3.0))

    def finished(self) -> History:
        """Let workers deliver everything."""
        lanes: dict[tuple[int, int], list[Delivery]] = {}
        found = self._matches()
        for placed in self.placed:
            for match in found.get(placed.sent.event.id or "", []):
                worker = self.rng.randrange(_N_WORKERS)
                lanes.setdefault((worker, placed.partition), []).append(Delivery(match, worker))
        while lanes:
            lane = self.rng.choice(list(lanes))
            self.history.deliveries.append(lanes[lane].pop(0))
            if not lanes[lane]:
                del lanes[lane]
        self.history.log = self.log
        return self.history

    def _matches(self) -> dict[str, list[Match]]:
        """Return the matches of all publications by their ids; note what is rejected."""
        entries = [(event.seq or 0, event) for event in self.log]
        entries += [(placed.position, placed.sent.event) for placed in self.placed]
        entries.sort(key=lambda entry: entry[0])
        outcome = oracle.run(event._replace(seq=number) for number, (_, event) in enumerate(entries))
        seqs = [seq for seq, _ in entries]
        found: dict[str, list[Match]] = {}
        for name, subscribed, publication, published in outcome.matches:
            match = Match(name, seqs[subscribed], publication, seqs[published])
            found.setdefault(publication, []).append(match)
        for rejection in outcome.rejected:
            assert rejection.seq is not None
            is_update = entries[rejection.seq][1].seq is not None
            told = seqs[rejection.seq] if is_update else None
            self.history.rejections.append(rejection._replace(seq=told))
        return found
