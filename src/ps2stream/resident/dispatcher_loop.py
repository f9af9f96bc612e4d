"""The loop of a dispatcher: publications and the log in, packets for workers out."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from ps2stream.arrow import concat
from ps2stream.metrics.recorder import Recorder
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.committing import Commits
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.dispatcher import ResidentDispatcher, RoutingAt
from ps2stream.resident.handover import HEARTBEAT, handed_over, still_to_repeat
from ps2stream.resident.log_tail import LOG, LogTail
from ps2stream.resident.notes import DispatcherNote, Repeat, Repeats, note_from_bytes, note_to_bytes
from ps2stream.resident.pace import Pace
from ps2stream.resident.partitions import Partition
from ps2stream.resident.positions import NOTHING_YET, last_update_seq, offset_of, position_after
from ps2stream.resident.reading import ReadPublications
from ps2stream.resident.rejecting import rejected_sends
from ps2stream.resident.reporting import Reporter
from ps2stream.resident.routed import RoutedHeader, Source, to_record
from ps2stream.resident.trimming import Trimming
from ps2stream.resident.wire import DISPATCHER, Place, Send, Topic, Wire
from ps2stream.roles.packets import fitting

#: The controller needs no more publications in a report.
_MOST_SAMPLED = 500


class _Routed(NamedTuple):
    """What a step sends; ``is_whole``: in one piece with its note (``handover.py``)."""

    sends: list[Send]
    is_whole: bool = False


_NOTHING = _Routed([])


class _Batch(NamedTuple):
    """Publications that have their positions, and what their packets say of them.

    ``needs``: what they came after; one that asks for a position may ask to come after more than that.
    """

    publications: pa.RecordBatch
    rejected: list[pa.RecordBatch]
    sources: tuple[Source, ...]
    appended: Counter[int]
    applied: int
    horizon: int
    needs: int


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
        mine = handed_over(wire, number, config.settings.n_workers)
        self._incarnation, self._n_steps = mine.incarnation, 0
        #: Up to where records of workers' partitions are accounted for: in the next note, and in one that is
        #: there for good.
        self._ends, self._noted_ends = dict(mine.routed), dict.fromkeys(mine.routed, 0)
        note = self._predecessors()
        #: Of partitions that are another's now, too: that one may not have come to write its own note yet.
        self._done, self._uptos, self._repeats = note.publications, note.uptos, note.repeats
        follow_from = self._catch_up()
        self._partitions: dict[int, Partition] = {}
        self._n_known = 0
        starts = self._new_partitions()
        self._promised = max(note.horizon, self._tail.snapshot.horizon)
        if self._order.is_given:  # a partition that was another's may be behind
            self._promised = min([self._promised, *(each.upto + 1 for each in self._partitions.values())])
        #: What is to be repeated goes by the horizon of then.
        self._horizon = min([self._promised, *(each.horizon for each, _ in self._in_order_of_steps())])
        #: As the last commit has it, and as a note has it that is there for good.
        self._committed_horizon = self._noted_horizon = mine.horizon
        self._told = dict.fromkeys(range(config.settings.n_workers), BEFORE_ALL_SEQS)
        self._told_at = 0.0
        self._trimming = Trimming(wire, config.trim_s)
        #: When positions began; what its predecessor would have answered, this one does.
        self._applied_at = deque([(time.monotonic(), self._promised)] if note.applied else [])
        wire.follow({LOG: follow_from, **starts})

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
        routed = self._repeated() if self._to_repeat() else self._routed()
        sends = [*routed.sends, *self._heartbeats()]
        self._recorder.count("busy_seconds", time.thread_time() - started)
        sends += self._reports()
        if sends:
            self._commit(sends, is_whole=routed.is_whole)
        if self._tail.is_stopped or not self._is_ready():
            self._commits.settle()
        if not self._to_repeat():
            self._role.forget(self._horizon)
        self._trim_when_due()
        return not self._tail.is_stopped

    def _catch_up(self) -> int:
        """Follow the log as far as it goes now; return from where on it is to be followed.

        Positions must not fall: no dispatcher before this one has known more of it.
        """
        records = self._wire.read(LOG, self._tail.start)
        for entry in self._tail.entries(records):
            self._role.follow(entry)
        return records[-1].offset + 1 if records else self._tail.start

    def _predecessors(self) -> DispatcherNote:
        """Return how far dispatchers before this one have got.

        There may have been more or fewer of them: a partition may come from any. Offsets only rise; and
        nothing is answered as of a position that one of them has promised not to go back to. Where events
        bring their order, each dispatcher goes by that of its partitions.
        """
        done: dict[int, int] = {}
        uptos: dict[int, int] = {}
        repeats: Repeats = {}
        horizon, applied = BEFORE_ALL_SEQS, NOTHING_YET
        for number, said in self._wire.notes(DISPATCHER).items():
            note = note_from_bytes(DispatcherNote, said)
            if number == self.number or not self._order.is_given:
                horizon = max(horizon, note.horizon)
            applied = max(applied, note.applied)
            for partition, some in note.repeats.items():
                # Others keep what they have read of it when they began, for as long as they live.
                if partition not in repeats or some[-1].stop > repeats[partition][-1].stop:
                    repeats[partition] = some
            for partition, offset in note.publications.items():
                done[partition] = max(done.get(partition, 0), offset)
            for partition, upto in note.uptos.items():
                uptos[partition] = max(uptos.get(partition, BEFORE_ALL_SEQS), upto)
        return DispatcherNote(done, applied, horizon, uptos, repeats=still_to_repeat(repeats, done))

    def _is_mine(self, partition: int) -> bool:
        return partition % self._config.settings.n_dispatchers == self.number

    def _new_partitions(self) -> dict[Place, int]:
        """Take the partitions of this dispatcher that are new to it; return where they are to be read."""
        known, self._n_known = self._n_known, self._wire.n_partitions(Topic.PUBLICATIONS)
        new = list(filter(self._is_mine, range(known, self._n_known)))
        for each in new:
            self._partitions[each] = Partition(
                each, self._done.get(each, 0), self._uptos.get(each, BEFORE_ALL_SEQS)
            )
        return {Place(Topic.PUBLICATIONS, each): self._partitions[each].next_offset for each in new}

    def _look_for_partitions(self) -> None:
        """Follow partitions that were added; a replay has those that it began with."""
        if not self._order.is_given and (starts := self._new_partitions()):
            self._wire.follow_also(starts)

    def _to_repeat(self) -> Repeats:
        """Return which partitions begin with records that a predecessor has routed already."""
        return {each: some for each, some in self._repeats.items() if self._is_mine(each)}

    def _in_order_of_steps(self) -> list[tuple[Repeat, int]]:
        """Return what is to be repeated, with its partition; horizons only rise from step to step."""
        steps = [(each, number) for number, some in self._to_repeat().items() for each in some]
        return sorted(steps, key=lambda step: (step[0].horizon, step[0].stop))

    def _is_ready(self) -> bool:
        """Say whether something can be routed that has come."""
        if to_repeat := self._to_repeat():
            return all(
                self._partitions[each].has_all_before(some[-1].stop) for each, some in to_repeat.items()
            )
        return any(each.is_ready(self._role.applied) for each in self._partitions.values())

    def _repeated(self) -> _Routed:
        """Route what some workers may have, in the same way, when all of it has come; first of all."""
        if not self._is_ready():
            return _NOTHING
        sends: list[Send] = []
        for repeat, number in self._in_order_of_steps():
            partition = self._partitions[number]
            read = partition.read_before(self._order, repeat.stop)
            placed, late = self._order.placed(read.publications, repeat.needs, repeat.horizon)
            source, appended = partition.take()
            rejected = [read.rejected, late]
            batch = _Batch(placed, rejected, (source,), appended, repeat.needs, repeat.horizon, read.needs)
            sends += self._sent(batch).sends
            self._repeats.pop(number, None)
        return _Routed(sends, is_whole=True)

    def _routed(self) -> _Routed:
        """Route the publications of all partitions that need nothing more of the log."""
        ready: list[pa.RecordBatch] = []
        rejected: list[pa.RecordBatch] = []
        sources: list[Source] = []
        appended: Counter[int] = Counter()
        needs = BEFORE_ALL_SEQS
        for partition in self._partitions.values():
            read = self._read(partition)
            if read is None:
                continue
            needs = max(needs, read.needs)
            placed, late = self._order.placed(read.publications, self._role.applied, self._horizon)
            ready.append(placed)
            rejected += [read.rejected, late]
            source, counts = partition.take()
            sources.append(source)
            appended += counts
        if not ready:
            return _NOTHING
        batch = (concat(ready), rejected, tuple(sources), appended, self._role.applied, self._horizon, needs)
        return self._sent(_Batch(*batch))

    def _read(self, partition: Partition) -> ReadPublications | None:
        """Return the publications that a partition has, if they can be routed now."""
        read = partition.read(self._order, self._config.most_events)
        if read is None or read.needs <= self._role.applied:
            return read
        if not self._order.is_given and time.monotonic() - partition.waits_since > self._config.after_s:
            # An update that is in its topic is decided some time: whoever asked for it waits for that.
            needs = min(read.needs, self._newest_update())
            partition.first = read._replace(needs=needs)
            partition.waits_since = time.monotonic()
            return partition.first if needs <= self._role.applied else None
        return None

    def _newest_update(self) -> int:
        """Return the seq up to which updates have been sent."""
        waiting = self._wire.read(Place(Topic.UPDATES), offset_of(self._role.applied) + 1)
        return last_update_seq(waiting[-1].offset) if waiting else self._role.applied

    def _sent(self, batch: _Batch) -> _Routed:
        """Return the packets of a batch, and what is rejected of it."""
        sends = list(self._packets(batch)) if batch.publications.num_rows else []
        has_parts = len({send.place for send in sends}) < len(sends)
        is_rejected = False
        for rejected in batch.rejected:
            if rejected.num_rows:
                is_rejected = True
                self._recorder.count("rejected_records", rejected.num_rows)
                sends += rejected_sends(rejected)
        return _Routed(sends, is_whole=has_parts or is_rejected)

    def _packets(self, batch: _Batch) -> Iterator[Send]:
        is_sampled = (
            self._config.settings.adjustment.scope != "off"
            and sum(each.num_rows for each in self._sampled) < _MOST_SAMPLED
        )
        last = int(batch.publications.column("seq").to_numpy().max()) - 1
        needs = min(max(last, batch.needs), batch.applied)
        self._n_steps += 1
        for routing, done in self._role.dispatch(batch.publications, with_sample=is_sampled):
            batch.rejected.append(done.rejected)
            self._recorder.count("publications", done.n_publications)
            self._recorder.count("discarded_publications", done.n_discarded)
            if is_sampled:
                self._sampled.append(done.sampled)
            header = self._header(batch, routing, needs)
            for worker, packet in done.packets.items():
                self._recorder.count("sent_publications", packet.num_rows)
                own = header._replace(noted=self._noted_ends.get(worker, 0))
                for part in fitting(packet):
                    yield Send(Place(Topic.ROUTED, worker), to_record(part, own))
                self._told[worker] = header.horizon

    def _header(self, batch: _Batch, routing: RoutingAt, needs: int) -> RoutedHeader:
        plans = routing.plans
        return RoutedHeader(
            self.number,
            batch.horizon,
            needs,
            routing.generation,
            plans.older is not None,
            plans.switch_seq,
            tuple(sorted(batch.appended.items())),
            self._incarnation,
            self._n_steps,
            batch.sources,
        )

    def _heartbeats(self) -> Iterator[Send]:
        """Tell workers that get no packets how far this dispatcher is."""
        due = [worker for worker, told in self._told.items() if told < self._horizon]
        if due and time.monotonic() - self._told_at >= self._config.heartbeat_s:
            header = RoutedHeader(self.number, self._horizon, BEFORE_ALL_SEQS, incarnation=self._incarnation)
            for worker in due:
                own = header._replace(noted=self._noted_ends.get(worker, 0))
                yield Send(Place(Topic.ROUTED, worker), to_record(HEARTBEAT, own))
                self._told[worker] = self._horizon
            self._told_at = time.monotonic()

    def _move_horizon(self) -> None:
        """Say below which position nothing will come: what is applied, but for those who may ask as of."""
        if self._to_repeat():
            return
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
        self._horizon = max(self._horizon, self._promised, horizon)

    def _reports(self) -> list[Send]:
        if not self._reporter.is_due():
            return []
        if self._wire.is_noted:
            self._noted_horizon = self._committed_horizon
        recorder = self._recorder
        recorder.set("position", position_after(self._role.applied))
        # A successor keeps what a note has promised, or a packet: others must not rely on more than that.
        recorder.set("horizon", self._noted_horizon)
        recorder.set(
            "lag_events", sum(len(each.records) for each in self._partitions.values()), "publications"
        )
        sampled, self._sampled = self._sampled, []
        return self._reporter.sends(sampled=sampled)

    def _commit(self, sends: list[Send], *, is_whole: bool) -> None:
        """Begin to commit; publications that wait are routed meanwhile."""
        for number, each in self._partitions.items():
            self._done[number] = each.next_offset
            if self._order.is_given:
                self._uptos[number] = each.upto
        horizon = self._horizon

        def then(ago_s: float, offsets: Sequence[int]) -> None:
            self._committed_horizon = horizon
            for send, offset in zip(sends, offsets, strict=True):
                if send.place.topic == Topic.ROUTED:
                    self._ends[send.place.partition] = offset + 1

        self._commits.begin(sends, self._note(), then, is_whole=is_whole)

    def _note(self) -> bytes:
        note = DispatcherNote(
            self._done,
            self._role.applied,
            self._horizon,
            self._uptos,
            self._incarnation,
            self._ends,
            self._repeats,
        )
        return note_to_bytes(note)

    def _trim_when_due(self) -> None:
        """Note how far workers' partitions are accounted for, and tell workers, who trim up to there."""
        if not self._trimming.is_due():
            return
        self._commits.settle()
        for worker, end in enumerate(self._wire.ends(Topic.ROUTED)):
            self._ends[worker] = max(end, self._ends.get(worker, 0))  # nothing of its own is under way
        self._commits.commit([], self._note())
        self._trimming.trim({})  # notes what was kept back
        self._noted_ends = dict(self._ends)
        self._told = dict.fromkeys(self._told, BEFORE_ALL_SEQS)
