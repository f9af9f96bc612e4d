"""A worker that stays: it follows the log with an index for each generation of plans.

*Moved in at once, moved out late.* A publication marks the terms that its worker owns by the plan of its
position. So a subscription that has moved in is not looked up by earlier packets, and one that is to move out
must stay until no earlier packet can come. Where a switch of plans ends (unite), subscriptions go on in
another form, posted under other terms; the new form is in the index of the new generation, which earlier
packets look up with their marks of that generation only, and the old index goes as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, frozen
from ps2stream.arrow import large_lists, ragged_of, taken
from ps2stream.config import Settings
from ps2stream.matching.contract import FOREVER, OWNED_BEFORE, OWNED_NOW
from ps2stream.matching.steady import SteadyGI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.names import Names
from ps2stream.registry.segments import BEGIN, DROP, END, MOVE, changes, rows_of, subscriptions_of
from ps2stream.resident.dispatcher import ReadPlan
from ps2stream.resident.entries import Entry, EntryKind
from ps2stream.resident.positions import NOTHING_YET
from ps2stream.resident.routed import RoutedHeader
from ps2stream.roles.merger import Merger
from ps2stream.roles.packets import ROUTED
from ps2stream.roles.worker import Worker, found_of

_PROBES = ROUTED.get_field_index("probes")


class _Dropping(NamedTuple):
    """Subscriptions that move out of a generation; packets from beyond ``since`` do not look for them."""

    since: int
    generation: int
    seqs: set[int]


class ResidentWorker:
    """Match packets with the subscriptions of one worker; ``applied`` as for a dispatcher."""

    def __init__(self, worker_id: int, settings: Settings, read_plan: ReadPlan) -> None:
        self.worker_id = worker_id
        self._settings = settings
        self._read_plan = read_plan
        self._workers: dict[int, Worker[SteadyGI2]] = {}  # by generation
        self._leaving: list[tuple[int, int]] = []  # generations that end, and beyond which position
        self._dropping: list[_Dropping] = []
        self._names = Names()
        self._newest = 0
        self._compact_beyond = BEFORE_ALL_SEQS
        self.applied = NOTHING_YET
        self.n_updates = 0

    @property
    def newest(self) -> Worker[SteadyGI2]:
        """Return the worker of the newest generation of plans."""
        return self._workers[self._newest]

    @property
    def workers(self) -> list[Worker[SteadyGI2]]:
        return list(self._workers.values())

    def follow(self, entry: Entry) -> None:
        """Take in what was decided next, as far as it concerns this worker."""
        for number, place in enumerate(entry.routing.parts):
            if entry.generation - number not in self._workers:
                settings = self._settings.index_settings(self._read_plan(place))
                index = SteadyGI2.create(settings)
                self._workers[entry.generation - number] = Worker(self.worker_id, index)
        self._newest = entry.generation
        self._end_leaving(entry.segment)
        rows = rows_of(entry.segment, self.worker_id)
        if len(rows):
            self._apply(entry, rows)
            self.n_updates += len(rows)
        if entry.kind is EntryKind.UNITE:
            self._leaving.append((entry.since, entry.generation - 1))
        self.applied = max(self.applied, entry.upto)

    def match(self, packet: pa.RecordBatch, header: RoutedHeader, horizon: int) -> pa.RecordBatch:
        """Find the matches of a packet, for which the log must be applied as far as it says.

        ``horizon``: below it no publication will come any more, whatever happens to this process.
        """
        newest = self._workers[header.generation]
        if not header.has_older:
            return newest.match(packet, horizon, header.switch_seq)
        older = self._workers[header.generation - 1]
        # Together: who subscribed anew since the switch is in both, and gets publications in their order.
        return found_of(
            packet,
            newest.probe(_marked(packet, OWNED_NOW), horizon, header.switch_seq),
            older.probe(_marked(packet, OWNED_BEFORE), horizon, header.switch_seq),
        )

    def name(self, found: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Name the subscriptions that were found, in the order of the packets."""
        return Merger(self._names).in_order(found)

    def forget(self, horizon: int) -> None:
        """Drop what only packets below a position would need."""
        for dropping in [each for each in self._dropping if each.since < horizon]:
            self._dropping.remove(dropping)
            seqs = np.array(sorted(dropping.seqs), np.int64)
            if dropping.generation in self._workers:
                self._workers[dropping.generation].index.drop(frozen(seqs))
            self._names.drop(seqs)
        for since, generation in [each for each in self._leaving if each[0] < horizon]:
            self._leaving.remove((since, generation))
            self._workers.pop(generation, None)
        self._names.forget(horizon)
        self._compact(horizon)

    def _compact(self, horizon: int) -> None:
        """Leave out what ended by the horizon, where that is much: a piece at a time, for publications wait.

        What ended beyond it may be much, too. It would be copied again and again: so not before all that has
        ended by now can go.
        """
        for worker in self.workers:
            worker.index.go_on_compacting()
        if horizon <= self._compact_beyond:
            return
        for worker in self.workers:
            if worker.index.should_compact() and not worker.index.is_compacting:
                worker.index.begin_compaction(horizon)
                self._compact_beyond = self.applied

    def _apply(self, entry: Entry, rows: Int64s) -> None:
        segment = entry.segment
        subscriptions = subscriptions_of(segment)
        change = segment.column("change").to_numpy()[rows]
        self._enter_names(segment, rows, change)
        moved = rows[change == MOVE]
        self._keep(subscriptions.seq_from[moved])
        for generation, is_own in entry.by_generation(subscriptions.seq_from[rows]):
            index = self._workers[generation].index
            index.insert(subscriptions, frozen(rows[is_own & (change == BEGIN)]))
            ends = rows[is_own & (change == END)]
            index.end(frozen(subscriptions.seq_from[ends]), frozen(subscriptions.seq_to[ends]))
        self._workers[entry.generation].index.insert(subscriptions, frozen(moved))
        dropped = rows[change == DROP]
        if len(dropped):
            # Where plans unite, some go on here in another form.
            seqs = set(subscriptions.seq_from[dropped].tolist()) - set(subscriptions.seq_from[moved].tolist())
            generation = entry.generation - (entry.kind is EntryKind.UNITE)
            self._dropping.append(_Dropping(entry.since, generation, seqs))

    def _end_leaving(self, segment: pa.RecordBatch) -> None:
        """End what is to move out, too: the log tells its new owners only, and its cells may come back."""
        if not self._dropping:
            return
        ended = changes(segment, END)
        seqs, seq_to = (ended.column(name).to_numpy() for name in ("seq_from", "seq_to"))
        for dropping in self._dropping:
            if dropping.generation in self._workers:
                # Few end while many may leave: the many are not gone through.
                is_leaving = np.array([seq in dropping.seqs for seq in seqs.tolist()], np.bool_)
                index = self._workers[dropping.generation].index
                index.end(frozen(seqs[is_leaving]), frozen(seq_to[is_leaving]))

    def _keep(self, seqs: Int64s) -> None:
        """Let those stay that come back before they have gone; their form is the same."""
        if len(seqs) and self._dropping:
            back = set(seqs.tolist())
            for dropping in self._dropping:
                dropping.seqs.difference_update(back)

    def _enter_names(self, segment: pa.RecordBatch, rows: Int64s, change: Int64s) -> None:
        seqs = segment.column("seq_from").to_numpy()
        for kind in (BEGIN, MOVE):
            chosen = rows[change == kind]
            if len(chosen):
                self._names.enter(seqs[chosen], taken(segment.column("id"), chosen))
        # Of a snapshot, some that begin here have ended already.
        seq_to = segment.column("seq_to").to_numpy()
        ended = rows[(change != DROP) & (seq_to[rows] != FOREVER)]
        self._names.end(seqs[ended], seq_to[ended])


def _marked(packet: pa.RecordBatch, mark: int) -> pa.RecordBatch:
    """Leave only the marks of one plan."""
    probes = ragged_of(packet.column("probes"))
    kept = large_lists(pa.array(probes.values & np.uint8(mark)), probes.offsets)
    return packet.set_column(_PROBES, ROUTED.field(_PROBES), kept)
