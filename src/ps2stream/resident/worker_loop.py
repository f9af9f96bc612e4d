"""The loop of a worker: packets and the log in, matches out. Its merger is in it (docs/architecture.md)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.matching.contract import IndexCounts
from ps2stream.matching.steady import SteadyGI2
from ps2stream.metrics.recorder import Recorder
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.committing import Commits
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.log_tail import LOG, LogTail
from ps2stream.resident.notes import WorkerNote, note_from_bytes, note_to_bytes
from ps2stream.resident.pace import Pace
from ps2stream.resident.reporting import Reporter
from ps2stream.resident.routed import RoutedHeader, from_record
from ps2stream.resident.trimming import Trimming
from ps2stream.resident.wire import WORKER, Place, Received, Send, Topic, Wire
from ps2stream.resident.worker import ResidentWorker
from ps2stream.roles.worker import CellCounters, Worker
from ps2stream.sinks.match_records import match_records

#: How often a worker tells what is in all of its cells, in reports.
_CONTENTS_EVERY = 5
#: As many events as this many commits can have may wait in memory.
_MOST_WAITING = 4


class _Waiting(NamedTuple):
    offset: int
    packet: pa.RecordBatch
    header: RoutedHeader


class WorkerLoop:
    """One worker; ``step`` it until that says it is over."""

    def __init__(self, number: int, wire: Wire, config: RoleConfig) -> None:
        self.number, self._wire, self._config = number, wire, config
        self._role = ResidentWorker(number, config.settings, config.files.read_plan)
        self._tail = LogTail(wire, config.files, config.run)
        self._recorder = Recorder("worker", number)
        self._reporter = Reporter(self._recorder, config.report_s)
        self._commits = Commits(wire, self._recorder, Pace())
        self._n_reports = 0
        self._worked: dict[str, int] = {}
        self._role.follow(self._tail.snapshot)
        self._counted: tuple[Worker[SteadyGI2], CellCounters] | None = None
        note = note_from_bytes(WorkerNote, wire.notes(WORKER).get(number))
        self._next, self._horizons = note.routed, dict(note.horizons)
        self._committed = note.routed
        self._incarnations = dict(note.incarnations)
        self._taken, self._steps = dict(note.taken), dict(note.steps)
        #: By dispatcher: what lies before this offset none that comes after it has to read.
        self._noted: dict[int, int] = {}
        #: What lies before it may be of dispatchers that are no more: there were more of them once. As the
        #: first of this run found it: one of them that lives may have sent more since.
        self._routed_before = (
            note.routed_before if note.run == config.run else wire.ends(Topic.ROUTED)[number]
        )
        #: As the last note has it: if this process dies, packets come again from there.
        self._horizon = self._committed_horizon = self._least_horizon()
        self._waiting: deque[_Waiting] = deque()
        self._trimming = Trimming(wire, config.trim_s)
        wire.follow({LOG: self._tail.start, self._routed: self._next})

    @property
    def _routed(self) -> Place:
        return Place(Topic.ROUTED, self.number)

    def step(self, timeout_s: float = 0.1) -> bool:
        """Match what has come, once; return whether there is more to come."""
        self._commits.rest()
        for record in self._received(timeout_s):
            if record.place == LOG:
                for entry in self._tail.entries([record]):
                    self._role.follow(entry)
            else:
                self._waiting.append(_Waiting(record.offset, *from_record(record.value or b"")))
        started = time.thread_time()
        before = self._next
        appended: list[tuple[int, int]] = []
        sends = self._match(appended)
        self._recorder.count("busy_seconds", time.thread_time() - started)
        sends += self._reports()
        if sends or self._next != before:
            self._commit(sends, appended)
        self._commits.settle(only_if_ended=not self._tail.is_stopped)
        if self._wire.is_noted:
            self._horizon = self._committed_horizon
        self._role.forget(self._horizon)
        self._trimming.when_due({self._routed: self._trimmable()})
        return not self._tail.is_stopped

    def _received(self, timeout_s: float) -> list[Received]:
        """Return what has come; nothing for now where there is enough to do, however much waits outside."""
        if not self._is_ready():
            return self._wire.poll(timeout_s)
        n_events = sum(each.packet.num_rows for each in self._waiting)
        return [] if n_events > _MOST_WAITING * self._config.most_events else self._wire.poll(0)

    def _is_ready(self) -> bool:
        return bool(self._waiting) and self._waiting[0].header.needs <= self._role.applied

    def _match(self, appended: list[tuple[int, int]]) -> list[Send]:
        """Match packets for which enough of the log is known; return deliveries."""
        found: list[pa.RecordBatch] = []
        n_events = 0
        while self._is_ready() and n_events < self._config.most_events:
            offset, packet, header = self._waiting.popleft()
            self._next = offset + 1
            if self._is_of_a_past_one(offset, header):
                continue
            if header.incarnation > self._incarnations.get(header.dispatcher, 0):
                # It may repeat for another what lies below: there may have been more dispatchers before.
                self._horizons.pop(header.dispatcher, None)
            self._incarnations[header.dispatcher] = header.incarnation
            self._noted[header.dispatcher] = header.noted
            if packet.num_rows and not self._has_taken(header):
                found.append(self._role.match(packet, header, self._horizon))
                n_events += packet.num_rows
                appended += header.appended
            self._horizons[header.dispatcher] = max(
                header.horizon, self._horizons.get(header.dispatcher, BEFORE_ALL_SEQS)
            )
        self._recorder.count("received_publications", n_events)
        pieces = list(self._role.name(found)) if found else []
        self._recorder.count("delivered_matches", sum(piece.num_rows for piece in pieces))
        records = match_records(pieces, self._config.n_match_partitions, self._config.match_format)
        return [Send(Place(Topic.MATCHES, each.partition), each.value, each.key) for each in records]

    def _is_of_a_past_one(self, offset: int, header: RoutedHeader) -> bool:
        """Say whether a packet is of a dispatcher that was replaced: the other reads the same again."""
        is_left_over = header.dispatcher >= self._config.settings.n_dispatchers
        return header.incarnation < self._incarnations.get(header.dispatcher, 0) or (
            is_left_over and offset >= self._routed_before
        )

    def _has_taken(self, header: RoutedHeader) -> bool:
        """Say whether a packet repeats what was matched before (``handover.py``); else take it as matched.

        Packets of one step may be several.
        """
        step = header.incarnation, header.step
        if not header.sources or self._steps.get(header.dispatcher) == step:
            return False
        if all(self._taken.get(each.partition, 0) >= each.stop for each in header.sources):
            return True
        self._steps[header.dispatcher] = step
        for each in header.sources:
            self._taken[each.partition] = max(each.stop, self._taken.get(each.partition, 0))
        return False

    def _trimmable(self) -> int:
        """Return the offset before which nobody will read packets again."""
        noted = (self._noted.get(number, 0) for number in range(self._config.settings.n_dispatchers))
        return min(self._committed, *noted)

    def _least_horizon(self) -> int:
        """Return the position below which no packet can come any more."""
        if self._next < self._routed_before:
            return BEFORE_ALL_SEQS
        n = self._config.settings.n_dispatchers
        return min(self._horizons.get(number, BEFORE_ALL_SEQS) for number in range(n))

    def _commit(self, sends: list[Send], appended: list[tuple[int, int]]) -> None:
        """Begin to commit; packets that wait are matched meanwhile."""
        committed, horizon = self._next, self._least_horizon()

        def then(ago_s: float, offsets: Sequence[int]) -> None:
            self._committed, self._committed_horizon = committed, horizon
            if appended:
                times, counts = np.array(appended).T
                at = time.time() - ago_s
                self._recorder.observe("delivery_latency_seconds", at - times / 1000, counts)

        note = WorkerNote(
            self._next,
            self._horizons,
            self._incarnations,
            self._config.run,
            self._routed_before,
            self._taken,
            self._steps,
        )
        self._commits.begin(sends, note_to_bytes(note), then)

    def _reports(self) -> list[Send]:
        if not self._reporter.is_due():
            return []
        recorder = self._recorder
        counts = [worker.index.counts() for worker in self._role.workers]
        recorder.set("position", self._role.applied)
        recorder.set("horizon", self._horizon)
        self._count_work(counts)
        recorder.set("stored_subscriptions", sum(each.n_subscriptions for each in counts))
        recorder.set("index_bytes", sum(each.n_bytes for each in counts))
        recorder.set("lag_events", len(self._waiting), "routed")
        self._n_reports += 1
        if self._config.settings.adjustment.scope == "off":
            return self._reporter.sends()
        newest = self._role.newest
        cells = None
        if self._counted is not None and self._counted[0] is newest:
            cells = newest.cell_loads(self._counted[1])
        self._counted = newest, newest.cell_counters()
        contents = self._contents() if self._n_reports % _CONTENTS_EVERY == 1 else None
        return self._reporter.sends(cells=cells, contents=contents)

    def _count_work(self, counts: list[IndexCounts]) -> None:
        """Enter what indexes have counted since the last report; those that are gone count no more."""
        now = {
            "candidates": sum(each.n_candidates for each in counts),
            "matches": sum(each.n_matches for each in counts),
            "applied_updates": self._role.n_updates,
        }
        for name, total in now.items():
            self._recorder.count(name, max(0, total - self._worked.get(name, 0)))
        self._worked = now

    def _contents(self) -> pa.RecordBatch:
        sizes = self._role.newest.index.cell_counters(["bytes"])["bytes"]
        return pa.record_batch({"bytes": pa.array(sizes)})
