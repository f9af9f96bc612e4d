"""The registrar: the one place where subscriptions begin and end.

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
import pyarrow.compute as pc

from ps2stream.arrays import HeapStorage, Int64s, Storage, frozen
from ps2stream.errors import StateError, quoted
from ps2stream.matching.layout import FOREVER, Subscriptions
from ps2stream.model.events import check_updates, nothing_rejected, rejected_records, rejection
from ps2stream.model.schemas import BEFORE_ALL_SEQS, SUBSCRIBE, UNSUBSCRIBE, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.pipeline.migration import (
    Fetch,
    Migrated,
    Stored,
    fetched,
    first_terms,
    migrate,
    touching,
    workers_column,
)
from ps2stream.registry.index import Registry
from ps2stream.registry.segments import (
    BEGIN,
    DROP,
    END,
    MOVE,
    SEGMENT,
    bare_rows,
    begin_rows,
    bounds_of,
    changes,
    large_lists,
    pick,
    ragged_of,
    subscriptions_of,
)
from ps2stream.routing.index import GridT
from ps2stream.routing.layout import Postings
from ps2stream.routing.update import Destinations
from ps2stream.routing.versions import RoutingVersion, RoutingVersions
from ps2stream.text.clauses import compile_expressions
from ps2stream.text.frequencies import rarest_first
from ps2stream.text.tokenizer import Tokenizer

#: Updates with their expressions in normal form; what remains is to decide what they do.
COMPILED = pa.schema(
    [
        ("seq", pa.int64()),
        ("is_subscribe", pa.bool_()),
        ("id", pa.string()),
        ("expression", pa.string()),
        ("min_lon", pa.float64()),
        ("min_lat", pa.float64()),
        ("max_lon", pa.float64()),
        ("max_lat", pa.float64()),
        ("clauses", pa.large_list(pa.large_list(pa.uint64()))),
    ]
)


def compile_updates(batch: pa.RecordBatch, tokenizer: Tokenizer) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Check updates and parse their expressions; return (compiled, rejected)."""
    updates, rejected = check_updates(batch)
    # Unsubscribing needs no expression; any cheap one keeps the column whole.
    expressions = pc.if_else(pa.array(updates.is_subscribe), updates.expressions, pa.scalar("x", pa.string()))
    compiled = compile_expressions(expressions, tokenizer)
    bounds = updates.bounds.reshape(-1, 4)
    columns = [
        pa.array(updates.seq),
        pa.array(updates.is_subscribe),
        updates.ids,
        updates.expressions,
        *(pa.array(bounds[:, i]) for i in range(4)),
        large_lists(pa.array(compiled.terms), compiled.term_offsets, compiled.clause_offsets),
    ]
    result = pa.RecordBatch.from_arrays(columns, schema=COMPILED)
    failed = {row: reason for row, reason in compiled.errors.items() if updates.is_subscribe[row]}
    if failed:
        keep = np.ones(result.num_rows, np.bool_)
        keep[list(failed)] = False
        rejected = concat([rejected, rejection(result, failed, op=SUBSCRIBE)])
        result = result.filter(pa.array(keep))
    return result, rejected


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class Decided(NamedTuple):
    """What a batch of updates came to."""

    segment: pa.RecordBatch
    rejected: pa.RecordBatch


class Storages(Protocol):
    """Where the registrar's indexes live."""

    def __call__(self, name: str) -> Storage: ...


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the routing: grid^t, where it is stored, and the seq after which it holds."""

    grid_t: GridT
    name: str
    after_seq: int

    @property
    def plan(self) -> Plan:
        return self.grid_t.plan


class Registrar:
    """Own the registry and the writing side of grid^t.

    ``versions`` are newest first. All of them but the newest are left to the subscriptions that
    began before it, and only lose some.
    """

    def __init__(self, plan: Plan, storages: Storages = lambda name: HeapStorage()) -> None:
        self._storages = storages
        self._n_storages = 0
        self.registry_name, storage = self._storage("registry")
        self.registry = Registry.create(storage)
        self.versions = [self._version(plan, BEFORE_ALL_SEQS)]
        self._leaving: list[tuple[int, Postings]] = []

    @property
    def plan(self) -> Plan:
        """Return the newest plan."""
        return self.versions[0].plan

    @property
    def grid_ts(self) -> list[GridT]:
        return [version.grid_t for version in self.versions]

    @property
    def routing(self) -> RoutingVersions:
        return tuple(RoutingVersion(each.plan.version, each.after_seq) for each in self.versions)

    @property
    def switch_seq(self) -> int:
        """Return the last seq whose subscription may be routed by an older version."""
        return self.versions[0].after_seq

    def decide(self, compiled: pa.RecordBatch) -> Decided:
        """Apply a batch of updates; they need not be sorted. Call once a batch, also with none."""
        self._count_out()
        if compiled.num_rows == 0:
            return Decided(empty(SEGMENT), nothing_rejected())
        compiled, repeated = _sorted(compiled)
        is_subscribe = compiled.column("is_subscribe").to_numpy(zero_copy_only=False)
        verdicts = self.registry.apply(compiled.column("seq").to_numpy(), is_subscribe, compiled.column("id"))
        begun = self._begin(compiled.filter(compiled.column("is_subscribe")))
        ended_rows = np.flatnonzero(verdicts.ended_version >= 0)
        ended = self._end(verdicts.ended_version[ended_rows], compiled.column("seq").to_numpy()[ended_rows])
        unknown = {
            int(row): f"no live subscription has the id {quoted(compiled.column('id')[int(row)].as_py())}"
            for row in np.flatnonzero(verdicts.is_unknown)
        }
        rejected = concat([repeated, rejection(compiled, unknown, op=UNSUBSCRIBE)])
        return Decided(concat([begun, ended]), rejected)

    def restore(self, segments: Iterable[pa.RecordBatch], older: tuple[Plan, int] | None = None) -> None:
        """Apply what an earlier run decided; call once, on a new registrar.

        ``older``: the plan that subscriptions up to a seq are still routed by.
        """
        if older is not None:
            plan, switch_seq = older
            self.versions = [
                replace(self.versions[0], after_seq=switch_seq),
                self._version(plan, BEFORE_ALL_SEQS),
            ]
        ended = np.empty(0, np.int64)
        for segment in segments:
            ended = self._restore(segment)
        live = self.registry.live_versions()
        for versions in (live, ended):
            for number, chosen in self._by_version(versions):
                self.versions[number].grid_t.add(self.registry.postings(chosen))
        # The batch of the last segment may run once more: what ended in it is counted out after that.
        self._leave(ended)

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
        before = self.versions[0]
        live = self.registry.live_versions()
        live = live[self.registry.seq_from(live) > before.after_seq]
        live = live[touching(plan.grid, self.registry.bounds(live), cells)]
        after = replace(before, grid_t=before.grid_t.adjusted(plan))
        self.versions[0] = after
        postings = self.registry.postings(live)
        was, becomes = before.grid_t.marks_of(postings), after.grid_t.marks_of(postings)
        stored = Stored(self.registry.seq_from(live), was)
        return migrate(stored, becomes & ~was, was & ~becomes, fetch, self.registry, plan.frequencies)

    def switch(self, plan: Plan) -> None:
        """Route subscriptions that begin from now on by another plan; earlier ones stay where they are."""
        if len(self.versions) > 1:
            raise StateError("the routing can have two versions at most")
        self._count_out()
        self.versions.insert(0, self._version(plan, self.registry.newest_seq()))

    def n_older(self) -> int:
        """Count the live subscriptions that an older version still routes."""
        if len(self.versions) == 1:
            return 0
        return int(np.count_nonzero(self.registry.live_seqs() <= self.switch_seq))

    def unite(self, fetch: Fetch) -> tuple[Migrated, str]:
        """Move what the older version still routes to where the newer one wants it, and drop the older.

        Return also the name of the storage that is of no use any more.
        """
        self._count_out()
        newer, older = self.versions
        live = self.registry.live_versions()
        seqs = self.registry.seq_from(live)
        live, seqs = live[seqs <= self.switch_seq], seqs[seqs <= self.switch_seq]
        was = older.grid_t.marks_of(self.registry.postings(live))
        stored = Stored(seqs, was)
        # Two steps, as where they go depends on the terms that only the workers know.
        moved = migrate(stored, was, was, fetch, self.registry, newer.plan.frequencies)
        moves = changes(moved.rows, MOVE)
        postings = _postings_of(moves)
        self.registry.repost(moves.column("seq_from").to_numpy(), postings)
        newer.grid_t.add(postings)
        takers = workers_column(newer.grid_t.marks_of(postings))
        moves = moves.set_column(len(SEGMENT) - 1, SEGMENT.field("workers"), takers)
        self.versions = [replace(newer, after_seq=BEFORE_ALL_SEQS)]
        rows = pa.concat_batches([changes(moved.rows, DROP), moves])
        return moved._replace(rows=rows), older.name

    def some_live(self, n: int, random: np.random.Generator, fetch: Fetch) -> Subscriptions:
        """Draw live subscriptions and copy them from the workers that store them."""
        live = self.registry.live_versions()
        if len(live) > n:
            live = np.sort(random.choice(live, n, replace=False))
        return fetched(Stored(self.registry.seq_from(live), self._marks(live)), fetch)

    def as_stored(self, begun: pa.RecordBatch) -> pa.RecordBatch:
        """Bring rows that begin live subscriptions up to date with what was moved since."""
        parts = []
        is_older = begun.column("seq_from").to_numpy() <= self.switch_seq
        for version, rows in zip(self.versions, (~is_older, is_older), strict=False):
            part = pick(begun, rows)
            subs = subscriptions_of(part)
            terms = subs.terms.copy()
            rarest_first(terms, subs.term_offsets, version.plan.frequencies)
            subs = subs._replace(terms=terms)
            versions = self.registry.versions_of(subs.seq_from)
            workers = self._workers_column(versions)
            parts.append(begin_rows(subs, part.column("id"), part.column("expression"), workers))
        rows = concat(parts)
        # In order but for what an older plan holds; sorting takes longer than all the rest.
        is_sorted = bool((np.diff(rows.column("seq_from").to_numpy()) > 0).all())
        return rows if is_sorted else rows.sort_by("seq_from")

    def _begin(self, begun: pa.RecordBatch) -> pa.RecordBatch:
        clauses = ragged_of(begun.column("clauses"), flat=False)
        terms = ragged_of(clauses.values)
        ordered = terms.values.copy()
        rarest_first(ordered, frozen(terms.offsets), self.plan.frequencies)
        subs = Subscriptions(
            begun.column("seq").to_numpy(),
            np.full(begun.num_rows, FOREVER),
            bounds_of(begun),
            clauses.offsets,
            terms.offsets,
            ordered,
        )
        postings = Postings(frozen(subs.bounds), frozen(subs.clause_offsets), first_terms(subs))
        self.registry.describe(postings)
        grid_t = self.versions[0].grid_t
        grid_t.add(postings)
        workers = workers_column(grid_t.marks_of(postings))
        return begin_rows(subs, begun.column("id"), begun.column("expression"), workers)

    def _end(self, versions: Int64s, seq_to: Int64s) -> pa.RecordBatch:
        self._leave(versions)
        seq_from = self.registry.seq_from(versions)
        ids = self.registry.ids(seq_from)
        return bare_rows(END, seq_from, seq_to, ids, self._workers_column(versions))

    def _restore(self, segment: pa.RecordBatch) -> Int64s:
        """Bring the registry up to a segment; return the versions that ended in it."""
        begun, ended = changes(segment, BEGIN), changes(segment, END)
        seqs = np.concatenate([begun.column("seq_from").to_numpy(), ended.column("seq_to").to_numpy()])
        is_subscribe = np.arange(len(seqs)) < begun.num_rows
        ids = pa.concat_arrays([begun.column("id"), ended.column("id")])
        # An end that a re-subscribe caused has the seq of that re-subscribe, and comes with it.
        by_itself = ~np.isin(seqs, begun.column("seq_from").to_numpy()) | is_subscribe
        order = np.argsort(seqs[by_itself], kind="stable")
        rows_of_all = np.flatnonzero(by_itself)[order]
        moved = changes(segment, MOVE)
        self.registry.repost(moved.column("seq_from").to_numpy(), _postings_of(moved))
        verdicts = self.registry.apply(
            seqs[rows_of_all], is_subscribe[rows_of_all], ids.take(pa.array(rows_of_all))
        )
        self.registry.describe(_postings_of(begun))
        return verdicts.ended_version[verdicts.ended_version >= 0]

    def _by_version(self, versions: Int64s) -> list[tuple[int, Int64s]]:
        """Part versions of subscriptions by the version of the routing that they go by."""
        is_older = self.registry.seq_from(versions) <= self.switch_seq
        parts = (versions[~is_older], versions[is_older])
        return list(enumerate(parts[: len(self.versions)]))

    def _workers_column(self, versions: Int64s) -> pa.Array:
        return workers_column(self._marks(versions))

    def _marks(self, versions: Int64s) -> Destinations:
        """Mark who stores versions, each by the routing that it goes by."""
        marks = np.zeros((len(versions), self.plan.n_workers), np.bool_)
        is_older = self.registry.seq_from(versions) <= self.switch_seq
        for number, chosen in self._by_version(versions):
            rows = is_older if number else ~is_older
            marks[rows] = self.versions[number].grid_t.marks_of(self.registry.postings(chosen))
        return marks

    def _leave(self, versions: Int64s) -> None:
        self._leaving += [
            (number, self.registry.postings(chosen)) for number, chosen in self._by_version(versions)
        ]

    def _count_out(self) -> None:
        """Take what ended in the batch before out of H2: its publications have all been routed."""
        for number, postings in self._leaving:
            self.versions[number].grid_t.remove(postings)
        self._leaving.clear()

    def _version(self, plan: Plan, after_seq: int) -> Version:
        name, storage = self._storage("routing")
        return Version(GridT.create(plan, storage), name, after_seq)

    def _storage(self, kind: str) -> tuple[str, Storage]:
        self._n_storages += 1
        name = f"{kind}-{self._n_storages}"
        return name, self._storages(name)


def _postings_of(segment: pa.RecordBatch) -> Postings:
    """Pick the first, rarest, term of every clause."""
    subs = subscriptions_of(segment)
    return Postings(subs.bounds, subs.clause_offsets, first_terms(subs))


def _sorted(compiled: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Order updates by seq and turn down those that repeat one."""
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
