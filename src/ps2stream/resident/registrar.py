"""A registrar that stays: updates and adjustments in, entries of the log out.

It is the only one who writes the log, and what it knows is a function of the log: one that takes over reads
the newest snapshot and what came after it, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from ps2stream.adjusting.controller import Adjusted, Controller
from ps2stream.arrays import Int64s
from ps2stream.arrow import concat, pick
from ps2stream.balance.adjustments import Adjustment
from ps2stream.errors import StateError
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import SEGMENT, ended_rows
from ps2stream.resident.archive import Archive
from ps2stream.resident.dispatcher import ReadPlan
from ps2stream.resident.entries import Entry, EntryKind, PlanPlace
from ps2stream.resident.positions import adjustment_seq
from ps2stream.roles.living import Living
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import Served

#: Put a plan where all roles can read it.
WritePlan = Callable[[Plan], PlanPlace]


class Decided(NamedTuple):
    """An entry of the log, and updates that were rejected."""

    entry: Entry
    rejected: pa.RecordBatch


class AdjustedEntry(NamedTuple):
    """An entry of the log, and the record of the adjustment."""

    entry: Entry
    record: Adjustment


class SnapshotBasis(NamedTuple):
    """What a snapshot is made of. It stays as it is, whatever is decided next.

    ``entry``: but for its rows. ``ends``: of each subscription that is needed; FOREVER of one that lives.
    """

    entry: Entry
    needed: Living
    ends: Int64s
    archived: Sequence[pa.RecordBatch]

    def made(self) -> Snapshot:
        """Make the snapshot, which takes a while."""
        begun = self.needed.rows(self.archived)
        has_ended = self.ends != FOREVER
        gone = ended_rows(pick(begun, has_ended), self.ends[has_ended])
        return Snapshot(replace(self.entry, segment=concat([begun, gone])), begun)


class Snapshot(NamedTuple):
    """An entry that stands for all before it, and those of its rows that begin subscriptions."""

    entry: Entry
    begun: pa.RecordBatch


class ResidentRegistrar:
    """Decide in the order of the log; ``gives_order``: seqs are given to updates, and not brought by them."""

    def __init__(self, entries: Iterable[Entry], read_plan: ReadPlan, *, gives_order: bool) -> None:
        """Go on after some entries, the first of which is a snapshot."""
        self._gives_order = gives_order
        self._archive = Archive()
        self._compact_beyond = BEFORE_ALL_SEQS
        self.n_since_snapshot = self._n_in_snapshot = 0  # entries' rows
        segments = []
        last: Entry | None = None
        for last in entries:
            self._archive.add(last.segment)
            segments.append(last.segment)
            if last.kind is EntryKind.SNAPSHOT:
                self.n_since_snapshot, self._n_in_snapshot = 0, last.segment.num_rows
            else:
                self.n_since_snapshot += last.segment.num_rows
        if last is None:
            raise StateError("a log must begin with a snapshot")
        self.upto, self._routing, self._since, self._generation = (
            last.upto,
            last.routing,
            last.since,
            last.generation,
        )
        plans = last.routing.map(read_plan)
        # Dispatchers count by the log, each for itself.
        self.registrar = Registrar(plans.newest, has_h2=False)
        self.registrar.restore(segments, plans)

    @property
    def n_subscriptions(self) -> int:
        return self.registrar.registry.n_live

    def decide(self, compiled: pa.RecordBatch, upto: int) -> Decided:
        """Decide on updates, which are complete up to a seq."""
        self.upto = max(self.upto, upto)
        decided = self.registrar.decide(compiled)
        self._archive.add(decided.segment)
        return Decided(self._entry(EntryKind.UPDATES, decided.segment), decided.rejected)

    def adjust(
        self, number: int, controller: Controller, contents: Sequence[Int64s], write_plan: WritePlan
    ) -> AdjustedEntry | None:
        """Let a controller adjust the load; ``contents``: bytes in each cell, by worker."""
        registrar, before = self.registrar, self.registrar.plan_numbers
        hosts = [_Source(worker, self._archive, sizes) for worker, sizes in enumerate(contents)]
        adjusted = controller.adjust(number, registrar, hosts)
        if adjusted is None:
            return None
        places = {place.number: place for place in self._routing.parts}
        if registrar.plan.number not in places:
            places[registrar.plan.number] = write_plan(registrar.plan)
        self._routing = registrar.plan_numbers.map(places.__getitem__)
        if self._gives_order:
            self._since = self.upto = adjustment_seq(self.upto)
        else:
            # Seqs leave no place in between. One publication may stand right behind what is decided, and be
            # routed before this is known; those after it wait for more of the log, and so for this.
            self._since = self.upto + 1
        kind = _kind_of(adjusted)
        self._generation += kind is EntryKind.SWITCH
        assert before != registrar.plan_numbers
        entry = self._entry(kind, adjusted.migrated.rows)
        return AdjustedEntry(entry, replace(adjusted.record, position=entry.since))

    def stop(self, run: str) -> Entry:
        """Tell the roles of a run to end."""
        return Entry(EntryKind.STOP, self.upto, self._routing, self._since, self._generation, run=run)

    def compact(self, horizon: int) -> None:
        """Forget what ended and cannot be asked for any more, when it is much.

        What can still be asked for may be much, too, and would be copied again and again: so the next time is
        when all that has ended by now can go.
        """
        if horizon > self._compact_beyond and self.registrar.compact(horizon) is not None:
            self._compact_beyond = self.upto

    def may_snapshot(self, horizon: int) -> bool:
        """Say whether no packet from before the newest adjustment can come any more.

        Until then subscriptions that have moved are needed at two places, which a snapshot does not tell.
        """
        return self._since == BEFORE_ALL_SEQS or self._since < horizon

    def is_snapshot_due(self, every: int) -> bool:
        """Say whether the log has become long: longer than what a snapshot of it has to write again."""
        return self.n_since_snapshot > max(every, self.n_subscriptions, self._n_in_snapshot)

    def snapshot(self, horizon: int) -> SnapshotBasis:
        """Return what a snapshot is made of: what lives, and what ended beyond the horizon."""
        registry = self.registrar.registry
        versions = registry.versions_ending_after(horizon)
        self.n_since_snapshot = 0
        return SnapshotBasis(
            replace(self._entry(EntryKind.SNAPSHOT, empty(SEGMENT)), horizon=horizon),
            self.registrar.living()._replace(seqs=registry.seq_from(versions)),
            registry.seq_to(versions),
            self._archive.sealed(),
        )

    def has_snapshot(self, snapshot: Snapshot) -> None:
        """Let go of what is not in a snapshot, made of what this gave last."""
        self._n_in_snapshot = snapshot.entry.segment.num_rows
        self._archive.replace_sealed(snapshot.begun)

    def _entry(self, kind: EntryKind, segment: pa.RecordBatch) -> Entry:
        self.n_since_snapshot += segment.num_rows if kind is not EntryKind.SNAPSHOT else 0
        return Entry(kind, self.upto, self._routing, self._since, self._generation, segment)


class _Source:
    """Stand for a worker where subscriptions are handed over: the archive has them all."""

    def __init__(self, worker_id: int, archive: Archive, contents: Int64s) -> None:
        self.worker_id = worker_id
        self._archive = archive
        self._contents = contents

    def apply(self) -> None:
        """Do nothing: the archive is always up to date."""

    def match(self, packets: Iterable[pa.RecordBatch], *, with_loads: bool = False) -> Served:
        raise NotImplementedError("subscriptions are matched where workers are")

    def fetch(self, seqs: Int64s) -> Subscriptions:
        return self._archive.fetch(self.worker_id, seqs)

    def contents(self) -> Int64s:
        return self._contents


def _kind_of(adjusted: Adjusted) -> EntryKind:
    kinds = {"local": EntryKind.RELOCATE, "switch": EntryKind.SWITCH, "unite": EntryKind.UNITE}
    return kinds[adjusted.record.kind]
