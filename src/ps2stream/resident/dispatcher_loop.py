"""The loop of a dispatcher: publications and the log in, packets for workers out."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ps2stream.arrow import concat
from ps2stream.metrics.recorder import Recorder
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.resident.committing import Commits
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.dispatcher import ResidentDispatcher, RoutingAt
from ps2stream.resident.log_tail import LOG, LogTail
from ps2stream.resident.notes import DispatcherNote, note_from_bytes, note_to_bytes
from ps2stream.resident.pace import Pace
from ps2stream.resident.positions import NOTHING_YET, last_update_seq, offset_of, position_after
from ps2stream.resident.reading import ReadPublications
from ps2stream.resident.rejecting import rejected_sends
from ps2stream.resident.reporting import Reporter
from ps2stream.resident.routed import RoutedHeader, to_record
from ps2stream.resident.trimming import Trimming
from ps2stream.resident.wire import DISPATCHER, Place, Received, Send, Topic, Wire
from ps2stream.roles.packets import ROUTED, fitting

_HEARTBEAT = empty(ROUTED)
#: The controller needs no more publications in a report.
_MOST_SAMPLED = 500


@dataclass(slots=True)
class _Partition:
    """What has come of a partition and is not routed yet."""

    next_offset: int
    upto: int = BEFORE_ALL_SEQS
    records: deque[Received] = field(default_factory=deque)
    read: ReadPublications | None = None  # of the first records
    n_read: int = 0
    waits_since: float = 0.0


class DispatcherLoop:
    """One dispatcher; ``step`` it until that says it is over."""

    def __init__(self, number: int, wire: Wire, config: RoleConfig) -> None:
        self.number, self._wire, self._config = number, wire, config
        self._order = config.order
        self._role = ResidentDispatcher(config.settings.tokenizer(), config.files.read_plan)
        self._tail = LogTail(wire, config.files, config.run)
        self._recorder = Recorder("dispatcher", number)
        self._reporter = Reporter(self._recorder, config.report_s)
        self._commits = Commits(wire, self._recorder, Pace())
        self._sampled: list[pa.RecordBatch] = []
        self._role.follow(self._tail.snapshot)
        note = self._predecessors()
        #: Of partitions that are another's now, too: that one may not have come to write its own note yet.
        self._done, self._uptos = note.publications, note.uptos
        self._incarnation = note.incarnation + 1
        is_loose = not (config.is_exact and note.is_exact)
        if is_loose:
            self._wire.send(list(self._greetings()))
        follow_from = self._catch_up()
        self._horizon = max(note.horizon, self._tail.snapshot.horizon)
        self._partitions: dict[int, _Partition] = {}
        self._n_known = 0
        self._told = dict.fromkeys(range(config.settings.n_workers), BEFORE_ALL_SEQS)
        self._told_at = 0.0
        self._trimming = Trimming(wire, config.trim_s)
        #: When positions began; what its predecessor would have answered, this one does.
        self._applied_at = deque([(time.monotonic(), self._horizon)] if note.applied else [])
        if is_loose:
            self._begin_loosely()
        wire.follow({LOG: follow_from, **self._new_partitions()})

    def step(self, timeout_s: float = 0.1) -> bool:
        """Route what has come, once; return whether there is more to come."""
        self._commits.rest()
        self._look_for_partitions()
        for record in self._wire.poll(0 if self._is_ready() else timeout_s):
            if record.place == LOG:
                for entry in self._tail.entries([record]):
                    self._role.follow(entry)
            else:
                self._partitions[record.place.partition].records.append(record)
        started = time.thread_time()
        self._move_horizon()
        sends = list(self._route())
        self._move_horizon()
        sends += self._heartbeats()
        self._recorder.count("busy_seconds", time.thread_time() - started)
        sends += self._reports()
        if sends:
            self._commit(sends)
        if self._tail.is_stopped or not self._is_ready():
            self._commits.settle()
        self._role.forget(self._horizon)
        self._trimming.when_due({})
        return not self._tail.is_stopped

    def _catch_up(self) -> int:
        """Follow the log as far as it goes now; return from where on it is to be followed.

        Positions must not fall: no dispatcher before this one has known more of it.
        """
        records = self._wire.read(LOG, self._tail.start)
        for entry in self._tail.entries(records):
            self._role.follow(entry)
        return records[-1].offset + 1 if records else self._tail.start

    def _greetings(self) -> Iterator[Send]:
        """Tell workers that this is another incarnation, before it looks how far the log goes.

        The predecessor may live and learn more of the log: what it promises from now on is passed over.
        """
        header = RoutedHeader(self.number, BEFORE_ALL_SEQS, BEFORE_ALL_SEQS, incarnation=self._incarnation)
        for worker in range(self._config.settings.n_workers):
            yield Send(Place(Topic.ROUTED, worker), to_record(_HEARTBEAT, header))

    def _begin_loosely(self) -> None:
        """Begin where notes lag behind what was sent, or did before this one (``seldom_notes.py``).

        The predecessor may have promised a horizon that it did not live to note: begin with the newest
        position. Before any publication is sent, a note says that this is another incarnation.
        """
        if not self._order.is_given:
            self._horizon = max(self._horizon, position_after(self._role.applied))
            self._applied_at = deque([(time.monotonic(), self._horizon)])
        self._wire.commit([], self._note())

    def _predecessors(self) -> DispatcherNote:
        """Return how far dispatchers before this one have got.

        There may have been more or fewer of them: a partition may come from any. Offsets only rise; and
        nothing is answered as of a position that one of them has promised not to go back to. Where events
        bring their order, each dispatcher goes by that of its partitions.
        """
        done: dict[int, int] = {}
        uptos: dict[int, int] = {}
        horizon, applied, incarnation, is_exact = BEFORE_ALL_SEQS, NOTHING_YET, 0, True
        for number, said in self._wire.notes(DISPATCHER).items():
            note = note_from_bytes(DispatcherNote, said)
            if number == self.number:
                incarnation = note.incarnation
            if number == self.number or not self._order.is_given:
                horizon = max(horizon, note.horizon)
            applied = max(applied, note.applied)
            is_exact = is_exact and note.is_exact
            for partition, offset in note.publications.items():
                done[partition] = max(done.get(partition, 0), offset)
            for partition, upto in note.uptos.items():
                uptos[partition] = max(uptos.get(partition, BEFORE_ALL_SEQS), upto)
        return DispatcherNote(done, applied, horizon, uptos, incarnation, is_exact)

    def _new_partitions(self) -> dict[Place, int]:
        """Take the partitions of this dispatcher that are new to it; return where they are to be read."""
        known, self._n_known = self._n_known, self._wire.n_partitions(Topic.PUBLICATIONS)
        n_dispatchers = self._config.settings.n_dispatchers
        new = [each for each in range(known, self._n_known) if each % n_dispatchers == self.number]
        for each in new:
            self._partitions[each] = _Partition(
                self._done.get(each, 0), self._uptos.get(each, BEFORE_ALL_SEQS)
            )
        return {Place(Topic.PUBLICATIONS, each): self._partitions[each].next_offset for each in new}

    def _look_for_partitions(self) -> None:
        """Follow partitions that were added; a replay has those that it began with."""
        if not self._order.is_given and (starts := self._new_partitions()):
            self._wire.follow_also(starts)

    def _is_ready(self) -> bool:
        """Say whether something can be routed that has come."""
        waiting = [each for each in self._partitions.values() if each.records]
        return any(each.read is None or each.read.needs <= self._role.applied for each in waiting)

    def _route(self) -> Iterator[Send]:
        """Route the publications of all partitions that need nothing more of the log."""
        ready: list[pa.RecordBatch] = []
        rejected: list[pa.RecordBatch] = []
        appended: Counter[int] = Counter()
        for partition in self._partitions.values():
            read = self._read(partition)
            if read is None:
                continue
            placed, late = self._order.placed(read.publications, self._role.applied, self._horizon)
            ready.append(placed)
            rejected += [read.rejected, late]
            for record in self._taken(partition):
                appended[record.appended_ms] += 1
        publications = concat(ready) if ready else None
        if publications is not None and publications.num_rows:
            yield from self._packets(publications, appended, rejected)
        for batch in rejected:
            if batch.num_rows:
                self._recorder.count("rejected_records", batch.num_rows)
                yield from rejected_sends(batch)

    def _read(self, partition: _Partition) -> ReadPublications | None:
        """Return the publications that a partition has, if they can be routed now."""
        if partition.read is None:
            if not partition.records:
                return None
            partition.n_read = min(len(partition.records), self._config.most_events)
            records = [partition.records[row] for row in range(partition.n_read)]
            partition.read = self._order.publications(records)
            partition.waits_since = time.monotonic()
        if partition.read.needs <= self._role.applied:
            return partition.read
        if not self._order.is_given and time.monotonic() - partition.waits_since > self._config.after_s:
            # An update that is in its topic is decided some time: whoever asked for it waits for that.
            needs = min(partition.read.needs, self._newest_update())
            partition.read = partition.read._replace(needs=needs)
            partition.waits_since = time.monotonic()
            return partition.read if needs <= self._role.applied else None
        return None

    def _newest_update(self) -> int:
        """Return the seq up to which updates have been sent."""
        waiting = self._wire.read(Place(Topic.UPDATES), offset_of(self._role.applied) + 1)
        return last_update_seq(waiting[-1].offset) if waiting else self._role.applied

    def _taken(self, partition: _Partition) -> Iterator[Received]:
        """Take the records that were read off a partition."""
        assert partition.read is not None
        if partition.read.upto is not None:
            partition.upto = partition.read.upto
        for _ in range(partition.n_read):
            record = partition.records.popleft()
            partition.next_offset = record.offset + 1
            yield record
        partition.read = None

    def _packets(
        self, publications: pa.RecordBatch, appended: Counter[int], rejected: list[pa.RecordBatch]
    ) -> Iterator[Send]:
        is_sampled = (
            self._config.settings.adjustment.scope != "off"
            and sum(each.num_rows for each in self._sampled) < _MOST_SAMPLED
        )
        for routing, done in self._role.dispatch(publications, with_sample=is_sampled):
            rejected.append(done.rejected)
            self._recorder.count("publications", done.n_publications)
            self._recorder.count("discarded_publications", done.n_discarded)
            if is_sampled:
                self._sampled.append(done.sampled)
            needs = int(publications.column("seq").to_numpy().max()) - 1
            header = self._header(routing, min(needs, self._role.applied), tuple(sorted(appended.items())))
            for worker, packet in done.packets.items():
                self._recorder.count("sent_publications", packet.num_rows)
                for part in fitting(packet):
                    yield Send(Place(Topic.ROUTED, worker), to_record(part, header))
                self._told[worker] = header.horizon

    def _header(self, routing: RoutingAt, needs: int, appended: tuple[tuple[int, int], ...]) -> RoutedHeader:
        plans = routing.plans
        return RoutedHeader(
            self.number,
            self._horizon,
            needs,
            routing.generation,
            plans.older is not None,
            plans.switch_seq,
            appended,
            self._incarnation,
        )

    def _heartbeats(self) -> Iterator[Send]:
        """Tell workers that get no packets how far this dispatcher is."""
        due = [worker for worker, told in self._told.items() if told < self._horizon]
        if due and time.monotonic() - self._told_at >= self._config.heartbeat_s:
            header = RoutedHeader(self.number, self._horizon, BEFORE_ALL_SEQS, incarnation=self._incarnation)
            for worker in due:
                yield Send(Place(Topic.ROUTED, worker), to_record(_HEARTBEAT, header))
                self._told[worker] = self._horizon
            self._told_at = time.monotonic()

    def _move_horizon(self) -> None:
        """Say below which position nothing will come: what is applied, but for those who may ask as of."""
        if self._order.is_given:
            uptos = [each.upto for each in self._partitions.values()]
            horizon = min(uptos) + 1 if uptos else position_after(self._role.applied)
        else:
            now, position = time.monotonic(), position_after(self._role.applied)
            if not self._applied_at or self._applied_at[-1][1] != position:
                self._applied_at.append((now, position))
            while len(self._applied_at) > 1 and now - self._applied_at[1][0] >= self._config.as_of_s:
                self._applied_at.popleft()
            horizon = self._applied_at[0][1]
        self._horizon = max(self._horizon, horizon)

    def _reports(self) -> list[Send]:
        if not self._reporter.is_due():
            return []
        recorder = self._recorder
        recorder.set("position", position_after(self._role.applied))
        recorder.set("horizon", self._horizon)
        recorder.set(
            "lag_events", sum(len(each.records) for each in self._partitions.values()), "publications"
        )
        sampled, self._sampled = self._sampled, []
        return self._reporter.sends(sampled=sampled)

    def _commit(self, sends: list[Send]) -> None:
        """Begin to commit; publications that wait are routed meanwhile."""
        for number, each in self._partitions.items():
            self._done[number] = each.next_offset
            if self._order.is_given:
                self._uptos[number] = each.upto
        self._commits.begin(sends, self._note())

    def _note(self) -> bytes:
        applied, is_exact = self._role.applied, self._config.is_exact
        return note_to_bytes(
            DispatcherNote(self._done, applied, self._horizon, self._uptos, self._incarnation, is_exact)
        )
