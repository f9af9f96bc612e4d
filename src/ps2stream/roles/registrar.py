"""The registrar: where all subscriptions begin and end.

In the paper every dispatcher updates its own H2, and a publication that another dispatcher
handles can be dropped although a subscription waits for it. Here all updates of a batch pass
through one registrar before its publications are routed: it decides in the order of seq what
each update does, counts it in H2, and writes what workers have to know to the log. Parsing, the
expensive part, is done before, in parallel (:func:`compile_updates`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Flags, HeapStorage, Int64s, Storage, frozen
from ps2stream.arrow import concat
from ps2stream.errors import StateError, quoted
from ps2stream.kernels import kernel
from ps2stream.matching.contract import Subscriptions
from ps2stream.model.events import nothing_rejected, rejected_records, rejection
from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.index import Registry
from ps2stream.registry.segments import (
    BEGIN,
    DROP,
    END,
    MOVE,
    SEGMENT,
    changes,
    postings_of,
)
from ps2stream.roles.decided_rows import Begun, CompiledColumns, begun_by, columns_of, segment_of
from ps2stream.roles.living import Living
from ps2stream.roles.migration import (
    Fetch,
    Migrated,
    Stored,
    fetched,
    migrate,
    touching_cells,
    workers_column,
)
from ps2stream.routing.index import GridT
from ps2stream.routing.layout import Postings
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.routing.update import Destinations

#: Where a new registrar keeps names, and grid^t of its plans: the newest, then the older.
REGISTRY_NAME, ROUTING_NAMES = "registry-1", ("routing-2", "routing-3")


class Decided(NamedTuple):
    """What a batch of updates came to."""

    segment: pa.RecordBatch
    rejected: pa.RecordBatch


class Storages(Protocol):
    """Where the registrar's indexes live."""

    def __call__(self, name: str) -> Storage: ...


@dataclass(frozen=True, slots=True)
class StoredGridT:
    """The grid^t index of a plan, and the name of the storage it lies in."""

    grid_t: GridT
    name: str

    @property
    def plan(self) -> Plan:
        return self.grid_t.plan


class Registrar:
    """Own the registry and the writing side of grid^t.

    ``routing`` has an older part for the subscriptions that began before the newest plan; it only loses some.
    ``has_h2``: dispatchers route by its grid^t. Where they have their own, nothing is counted here.
    """

    def __init__(
        self,
        plan: Plan,
        storages: Storages = lambda name: HeapStorage(),
        name_end: str = "",
        *,
        has_h2: bool = True,
    ) -> None:
        self._storages, self._name_end = storages, name_end
        self._has_h2 = has_h2
        self._n_storages = 0
        self.registry_name, storage = self._storage("registry")
        self.registry = Registry.create(storage)
        self.routing = Routing(self._stored(plan))
        self._leaving: list[tuple[GridT, Postings]] = []

    @property
    def plan(self) -> Plan:
        """Return the newest plan."""
        return self.routing.newest.plan

    @property
    def grid_ts(self) -> Routing[GridT]:
        """Return what dispatchers route by."""
        if not self._has_h2:
            raise StateError("a registrar without H2 has nothing to route publications by")
        return self.routing.map(lambda stored: stored.grid_t)

    @property
    def plan_numbers(self) -> PlanNumbers:
        return self.routing.map(lambda stored: stored.plan.number)

    def decide(self, compiled: pa.RecordBatch) -> Decided:
        """Apply a batch of updates; they need not be sorted. Call once a batch, also with none."""
        self._count_out()
        if compiled.num_rows == 0:
            return Decided(empty(SEGMENT), nothing_rejected())
        updates, repeated = columns_of(compiled), nothing_rejected()
        if not _ascend(updates.seq):
            compiled, repeated = _sorted(compiled)
            updates = columns_of(compiled)
        verdicts = self.registry.decide(updates.seq, updates.is_subscribe, updates.ids)
        ended, n_ended_bytes, n_unknown = self.registry.ended_by(updates.seq, verdicts)
        begun, begun_postings, n_begun_bytes = self._begin(updates)
        ended_postings = self._end(ended.versions)
        n_begun = len(begun.rows)
        marks = np.zeros((n_begun + len(ended.versions), self.plan.n_workers), np.bool_)
        self.routing.newest.grid_t.mark(begun_postings, marks[:n_begun])
        self._mark(ended.versions, ended_postings, marks[n_begun:])
        segment = segment_of(
            updates,
            (begun, begun_postings, n_begun_bytes),
            (ended, ended_postings, n_ended_bytes),
            self.registry.id_data,
            marks,
        )
        if not n_unknown:
            return Decided(segment, repeated)
        unknown = {
            row: f"no live subscription has the id {quoted(compiled.column('id')[row].as_py())}"
            for row in np.flatnonzero(verdicts.is_unknown).tolist()
        }
        return Decided(segment, concat([repeated, rejection(compiled, unknown, op=UNSUBSCRIBE)]))

    def restore(self, segments: Iterable[pa.RecordBatch], plans: Routing[Plan] | None = None) -> None:
        """Apply what an earlier run decided; call once, on a new registrar.

        ``plans``: the present one, and the older one that some subscriptions still go by.
        """
        if plans is not None and plans.older is not None:
            self.routing = Routing(self.routing.newest, self._stored(plans.older), plans.switch_seq)
        ended = np.empty(0, np.int64)
        for segment in segments:
            ended = _restored(self.registry, segment)
        if not self._has_h2:
            return
        live = self.registry.live_versions()
        for versions in (live, ended):
            for stored, rows in self._by_routing(versions):
                stored.grid_t.add(self.registry.postings(versions[rows]))
        # The batch of the last segment may run once more: what ended in it is counted out after that.
        self._leave(ended, self.registry.postings(ended))

    def compact(self, horizon: int) -> str | None:
        """Forget the versions that ended at or before ``horizon`` when they have become many.

        Return the name of the storage that is of no use any more.
        """
        if not self.registry.should_compact():
            return None
        old = self.registry_name
        self.registry_name, storage = self._storage("registry")
        self.registry = self.registry.compacted(horizon, storage)
        return old

    def relocate(self, plan: Plan, cells: Int64s, fetch: Fetch) -> Migrated:
        """Adopt a plan that differs from the newest one in who owns what in some cells."""
        self._count_out()
        before = self.routing.newest
        live = self.registry.live_versions()
        live = live[self.registry.seq_from(live) > self.routing.switch_seq]
        live = live[touching_cells(plan.grid, self.registry.bounds(live), cells)]
        after = replace(before, grid_t=before.grid_t.adjusted(plan))
        self.routing = replace(self.routing, newest=after)
        postings = self.registry.postings(live)
        was, becomes = before.grid_t.marks_of(postings), after.grid_t.marks_of(postings)
        stored = Stored(self.registry.seq_from(live), was)
        return migrate(stored, becomes & ~was, was & ~becomes, fetch, self.registry, plan.frequencies)

    def switch(self, plan: Plan) -> None:
        """Route subscriptions that begin from now on by another plan; earlier ones stay where they are."""
        if self.routing.older is not None:
            raise StateError(
                f"plan {self.routing.older.plan.number} must be dropped before plan {plan.number} is adopted"
            )
        self._count_out()
        self.routing = Routing(self._stored(plan), self.routing.newest, self.registry.newest_seq())

    def n_older(self) -> int:
        """Count the live subscriptions that still go by the older plan."""
        if self.routing.older is None:
            return 0
        return int(np.count_nonzero(self.registry.live_seqs() <= self.routing.switch_seq))

    def unite(self, fetch: Fetch) -> tuple[Migrated, str]:
        """Move what the older plan still routes to where the newest one wants it, and drop the older.

        Return also the name of the storage that is of no use any more.
        """
        self._count_out()
        newest, older = self.routing.newest, self.routing.older
        if older is None:
            raise StateError(f"there must be an older plan to drop; plan {newest.plan.number} is alone")
        live = self.registry.live_versions()
        seqs = self.registry.seq_from(live)
        is_older = seqs <= self.routing.switch_seq
        live, seqs = live[is_older], seqs[is_older]
        was = older.grid_t.marks_of(self.registry.postings(live))
        stored = Stored(seqs, was)
        # Two steps, as where they go depends on the terms that only the workers know.
        moved = migrate(stored, was, was, fetch, self.registry, newest.plan.frequencies)
        moves = changes(moved.rows, MOVE)
        postings = postings_of(moves)
        self.registry.repost(moves.column("seq_from").to_numpy(), postings)
        if self._has_h2:
            newest.grid_t.add(postings)
        takers = workers_column(newest.grid_t.marks_of(postings))
        moves = moves.set_column(len(SEGMENT) - 1, SEGMENT.field("workers"), takers)
        self.routing = Routing(newest)
        rows = pa.concat_batches([changes(moved.rows, DROP), moves])
        return moved._replace(rows=rows), older.name

    def some_live(self, n: int, random: np.random.Generator, fetch: Fetch) -> Subscriptions:
        """Draw live subscriptions and copy them from the workers that store them."""
        live = self.registry.live_versions()
        if len(live) > n:
            live = np.sort(random.choice(live, n, replace=False))
        return fetched(Stored(self.registry.seq_from(live), self._marks(live)), fetch)

    def living(self) -> Living:
        """Return what lives now; it stays as it is, whatever is decided next."""
        return Living(self.registry.live_seqs(), self.routing.map(lambda stored: stored.grid_t))

    def _begin(self, updates: CompiledColumns) -> tuple[Begun, Postings, int]:
        """Begin the subscriptions of updates that the registry has decided on."""
        begun, postings, n_bytes = begun_by(updates, self.plan.frequencies)
        postings = Postings(*map(frozen, postings))
        self.registry.describe(postings)
        if self._has_h2:
            self.routing.newest.grid_t.add(postings)
        return begun, postings, n_bytes

    def _end(self, versions: Int64s) -> Postings:
        postings = self.registry.postings(versions)
        if len(versions):
            self._leave(versions, postings)
        return postings

    def _by_routing(self, versions: Int64s) -> list[tuple[StoredGridT, Flags]]:
        """Part versions of subscriptions by the plan that they go by."""
        return self._parted(self.registry.seq_from(versions))

    def _parted(self, seq_from: Int64s) -> list[tuple[StoredGridT, Flags]]:
        """Say for each plan which of some subscriptions go by it."""
        is_older = seq_from <= self.routing.switch_seq
        return list(zip(self.routing.parts, (~is_older, is_older), strict=False))

    def _marks(self, versions: Int64s) -> Destinations:
        """Mark who stores versions, each by the routing that it goes by."""
        marks = np.zeros((len(versions), self.plan.n_workers), np.bool_)
        self._mark(versions, self.registry.postings(versions), marks)
        return marks

    def _mark(self, versions: Int64s, postings: Postings, marks: Destinations) -> None:
        if self.routing.older is None:
            self.routing.newest.grid_t.mark(postings, marks)
            return
        for stored, rows in self._by_routing(versions):
            marks[rows] = stored.grid_t.marks_of(self.registry.postings(versions[rows]))

    def _leave(self, versions: Int64s, postings: Postings) -> None:
        """Count versions out of H2 with the next batch, each by the routing that it goes by."""
        if not self._has_h2:
            return
        if self.routing.older is None:
            self._leaving.append((self.routing.newest.grid_t, postings))
            return
        self._leaving += [
            (stored.grid_t, self.registry.postings(versions[rows]))
            for stored, rows in self._by_routing(versions)
        ]

    def _count_out(self) -> None:
        """Take what ended in the batch before out of H2: its publications have all been routed."""
        for grid_t, postings in self._leaving:
            grid_t.remove(postings)
        self._leaving.clear()

    def _stored(self, plan: Plan) -> StoredGridT:
        name, storage = self._storage("routing")
        return StoredGridT(GridT.create(plan, storage), name)

    def _storage(self, kind: str) -> tuple[str, Storage]:
        self._n_storages += 1
        name = f"{kind}-{self._n_storages}{self._name_end}"
        return name, self._storages(name)


def follow(registry: Registry, newest: GridT, segment: pa.RecordBatch) -> None:
    """Apply to copies of a registrar's indexes what it decided next, by the plans that they have.

    What ended stays in H2, which may hold too much: copies are made anew now and then.
    """
    _restored(registry, segment)
    newest.add(postings_of(changes(segment, BEGIN)))


def _restored(registry: Registry, segment: pa.RecordBatch) -> Int64s:
    """Bring a registry up to a segment; return the versions that ended in it."""
    begun, ended = changes(segment, BEGIN), changes(segment, END)
    seqs = np.concatenate([begun.column("seq_from").to_numpy(), ended.column("seq_to").to_numpy()])
    is_subscribe = np.arange(len(seqs)) < begun.num_rows
    ids = pa.concat_arrays([begun.column("id"), ended.column("id")])
    # An end that a re-subscribe caused has the seq of that re-subscribe, and comes with it.
    by_itself = ~np.isin(seqs, begun.column("seq_from").to_numpy()) | is_subscribe
    order = np.argsort(seqs[by_itself], kind="stable")
    rows_of_all = np.flatnonzero(by_itself)[order]
    moved = changes(segment, MOVE)
    registry.repost(moved.column("seq_from").to_numpy(), postings_of(moved))
    verdicts = registry.apply(seqs[rows_of_all], is_subscribe[rows_of_all], ids.take(pa.array(rows_of_all)))
    registry.describe(postings_of(begun))
    return verdicts.ended_version[verdicts.ended_version >= 0]


def _sorted(compiled: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Order updates by seq and reject those that repeat one."""
    seq = compiled.column("seq").to_numpy()
    if not np.all(seq[1:] >= seq[:-1]):
        compiled = compiled.take(pa.array(np.argsort(seq, kind="stable")))
        seq = compiled.column("seq").to_numpy()
    repeats = np.flatnonzero(seq[1:] == seq[:-1]) + 1
    if not len(repeats):
        return compiled, nothing_rejected()
    keep = np.ones(len(seq), np.bool_)
    keep[repeats] = False
    records = [
        (
            int(seq[row]),
            SUBSCRIBE if compiled.column("is_subscribe")[row].as_py() else UNSUBSCRIBE,
            compiled.column("id")[row].as_py(),
            f"seq {seq[row]} was used before",
        )
        for row in map(int, repeats)
    ]
    return compiled.filter(pa.array(keep)), rejected_records(records)


@kernel
def _ascend(seq: Int64s) -> bool:
    for row in range(1, len(seq)):  # a kernel knows no generators
        if seq[row - 1] >= seq[row]:
            return False
    return True
