"""What clients of resident roles send in a campaign, and what must come of it: in two kinds of order."""

from __future__ import annotations

import itertools
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from engines.spark.faults.drivers import CampaignError
from kafka.produced import delivered
from kafka.writers import written
from laws.engines import one_batch
from ps2stream.errors import BrokerError
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Span, read
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.model.events import in_order, split
from ps2stream.model.matches import Match
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.positions import update_seq
from ps2stream.resident.reading import given_packet
from ps2stream.roles.packets import decode
from ps2stream.testing import oracle
from ps2stream.testing.checker import check, check_at_least_once, check_order
from ps2stream.testing.generators import Step, random_events, random_steps
from ps2stream.testing.history import Delivery, History, SentPublication, SentUpdate, Violation
from ps2stream.testing.oracle import EventRow, Rejection
from resident.live import as_sent, record_of

#: More than any campaign sends.
_MOST = 40_000
_PAUSE_S = 0.2


class RoleFeed(Protocol):
    """Clients in threads of their own."""

    order: str

    def start(self) -> None: ...

    def stop(self) -> None:
        """Send no more; raise what a client failed with."""
        ...

    def verdict(self, data: Path | None = None, *, is_exact: bool = True) -> dict[str, Any]:
        """Say of all that was delivered what is wrong with it; of its order if given the broker's files.

        Unless it must be exact, matches may come again, behind others: then only those that come for the
        first time have an order, for each process that delivers.
        """
        ...


@dataclass(slots=True)
class _Threads:
    """Run a function again and again in some threads, until told to stop."""

    stopped: threading.Event = field(default_factory=threading.Event)
    failures: list[BaseException] = field(default_factory=list)
    all: list[threading.Thread] = field(default_factory=list)

    def start(self, step: Any) -> None:
        def run() -> None:
            try:
                while not self.stopped.wait(_PAUSE_S):
                    step()
            except BaseException as error:
                self.failures.append(error)

        self.all.append(threading.Thread(target=run, daemon=True))
        self.all[-1].start()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self.all:
            thread.join()
        if self.failures:
            raise self.failures[0]


def _deliveries(topics: Topics, data: Path | None) -> list[Delivery]:
    """Return all matches, and who delivered them if the files of the broker are there to tell."""
    if data is None:
        return [Delivery(Match(**row)) for row in delivered(topics, topics.matches)]
    return [Delivery(Match(**row), producer) for row, producer in written(topics, topics.matches, data)]


def _n_writers(deliveries: list[Delivery]) -> int:
    """Count the workers that are known to have delivered something."""
    return len({worker for _, worker in deliveries if worker is not None})


def _n_repeated(deliveries: list[Delivery]) -> int:
    """Count the matches that came before, at the same position or at another."""
    return len(deliveries) - len({match[:3] for match, _ in deliveries})


def _first_ones(deliveries: list[Delivery]) -> list[Delivery]:
    """Leave out matches that came before; all those of a subscription are in one partition, in order."""
    first: dict[tuple[str, int, str], Delivery] = {}
    for each in deliveries:
        first.setdefault(each.match[:3], each)
    return list(first.values())


class GivenFeed:
    """One client that sends events with their seqs; the oracle says what must come of them."""

    order = "given"

    def __init__(self, topics: Topics, seed: int) -> None:
        events = random_events(_MOST, seed, invalid_share=0.0, n_subscription_ids=300)
        self._events, _, _ = in_order(one_batch(events), BEFORE_ALL_SEQS)
        self._topics, self._sender = topics, Sender(topics.kafka)
        self._random = random.Random(seed)
        self._n_partitions = topics.n_partitions(topics.publications)
        self._n_sent = 0
        self._partitions: dict[str | None, int] = {}
        self._threads = _Threads()

    def start(self) -> None:
        self._threads.start(self._send)

    def stop(self) -> None:
        self._threads.stop()

    def _send(self) -> None:
        part = self._events.slice(self._n_sent, self._random.randint(1, 10))
        if not part.num_rows:
            raise CampaignError(f"all {self._n_sent} events are sent")
        publications, updates = split(part)
        upto = int(part.column("seq")[-1].as_py())
        records = [Outgoing(self._topics.updates, 0, given_packet(updates, upto))]
        if publications.num_rows:
            to = self._random.randrange(self._n_partitions)
            records.append(Outgoing(self._topics.publications, to, given_packet(publications, upto)))
            self._partitions |= dict.fromkeys(publications.column("id").to_pylist(), to)
        self._sender.send(records)
        self._n_sent += part.num_rows

    def verdict(self, data: Path | None = None, *, is_exact: bool = True) -> dict[str, Any]:
        expected = oracle.run(pa.Table.from_batches([self._events.slice(0, self._n_sent)])).matches
        deliveries = _deliveries(self._topics, data)
        got = [match for match, _ in deliveries]
        is_right = sorted(got) == sorted(expected) if is_exact else set(got) == set(expected)
        ordered = deliveries if is_exact else _first_ones(deliveries)
        disorder = list(check_order(ordered, self._partitions))
        return {
            "n_events": self._n_sent,
            "n_matches": len(expected),
            "n_lost": len(set(expected) - set(got)),
            "n_doubled": len(got) - len(set(got)),
            "n_wrong": len(set(got) - set(expected)) + len(disorder),
            "n_writers": _n_writers(deliveries),
            "as_the_oracle": is_right and not disorder,
            "violations": [str(each) for each in disorder[:20]],
        }


class ArrivalFeed:
    """Several clients who ask for positions; the checker says whether one order explains all of it."""

    order = "arrival"

    def __init__(self, topics: Topics, seed: int, n_clients: int = 3) -> None:
        self._topics = topics
        self._n_partitions = topics.n_partitions(topics.publications)
        self._history = History()
        self._clients = [_Client(self, seed * 10 + number, number) for number in range(n_clients)]
        self._threads = _Threads()

    def start(self) -> None:
        for client in self._clients:
            self._threads.start(client.step)

    def stop(self) -> None:
        self._threads.stop()

    def verdict(self, data: Path | None = None, *, is_exact: bool = True) -> dict[str, Any]:
        history, topics = self._history, self._topics
        history.log = self._log()
        history.deliveries = _deliveries(topics, data)
        rejected = delivered(topics, topics.rejected)
        history.rejections = [Rejection(row["seq"], row["op"], row["id"]) for row in rejected]
        violations = check(history) if is_exact else self._check_loosely()
        named = [row for row in rejected if any(repr(row["id"]) in str(each) for each in violations)]
        return {
            "n_events": len(history.updates) + len(history.publications),
            "n_matches": len(history.deliveries),
            "n_lost": sum(each.law == "lost" for each in violations),
            "n_doubled": _n_repeated(history.deliveries),
            "n_wrong": sum(each.law not in ("lost", "once") for each in violations),
            "n_writers": _n_writers(history.deliveries),
            "as_the_oracle": not violations,
            "violations": [str(each) for each in violations[:20]],
            "why_rejected": [f"{row['id']}: {row['reason']}" for row in named[:20]],
        }

    def _check_loosely(self) -> list[Violation]:
        history = self._history
        in_order = {
            sent.event.id: sent.partition
            for sent in history.publications
            if sent.partition is not None and sent.as_of is None
        }
        return [*check_at_least_once(history), *check_order(_first_ones(history.deliveries), in_order)]

    def _log(self) -> list[EventRow]:
        """Return the updates that are there in the end."""
        topic = self._topics.updates
        (end,) = Ends(self._topics.kafka).last(topic, 1)
        return [
            EventRow(update_seq(record.offset), **row)
            for records in read(self._topics.kafka, Span(topic, 0, 0, end))
            for record in records
            for row in decode(record.value or b"").to_pylist()
        ]


class _Client:
    """One who sends, waits for the answer and goes on."""

    def __init__(self, feed: ArrivalFeed, seed: int, number: int) -> None:
        self._feed, self._number = feed, number
        self._steps = iter(enumerate(random_steps(_MOST // 4, seed)))
        self._random = random.Random(seed)
        self._sender = Sender(feed._topics.kafka)
        self._seqs: list[int | None] = []

    def step(self) -> None:
        for number, step in itertools.islice(self._steps, self._random.randint(1, 3)):
            self._do(self._named(as_sent(step, number)))

    def _named(self, step: Step) -> Step:
        if step.is_update or not step.event.id:
            return step
        return step._replace(event=step.event._replace(id=f"{self._number}-{step.event.id}"))

    def _do(self, step: Step) -> None:
        topics, history = self._feed._topics, self._feed._history
        began = time.monotonic()
        if step.is_update:
            place = self._sent(Outgoing(topics.updates, 0, record_of(step, None, None)))
            seq = None if place is None else update_seq(place[1])
            self._seqs.append(seq)
            acked = None if place is None else time.monotonic()
            history.updates.append(SentUpdate(step.event._replace(seq=seq), began, acked))
            return
        after = None if step.after is None else self._seqs[step.after]
        as_of = None if step.as_of is None else self._seqs[step.as_of]
        to = self._random.randrange(self._feed._n_partitions)
        place = self._sent(Outgoing(topics.publications, to, record_of(step, after, as_of)))
        sent = SentPublication(step.event, began, after=after, as_of=as_of)
        if place is not None:
            sent = SentPublication(step.event, began, time.monotonic(), *place, after=after, as_of=as_of)
        history.publications.append(sent)

    def _sent(self, record: Outgoing) -> tuple[int, int] | None:
        try:
            return self._sender.send([record])[0]
        except BrokerError:
            return None
