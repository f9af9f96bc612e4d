"""The registrar: the one place where subscriptions begin and end.

In the paper every dispatcher updates its own H2, and a publication that another dispatcher
handles can be dropped although a subscription waits for it. Here all updates of a batch pass
through one registrar before its publications are routed: it decides in the order of seq what
each update does, counts it in H2, and writes what workers have to know to the log. Parsing, the
expensive part, is done before, in parallel (:func:`compile_updates`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import HeapStorage, Int64s, Storage, frozen
from ps2stream.matching.layout import FOREVER
from ps2stream.model.events import check_updates, nothing_rejected, rejected_records, rejection
from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.index import Registry
from ps2stream.registry.segments import (
    BOUNDS,
    SEGMENT,
    begins,
    large_lists,
    ragged_of,
    subscriptions_of,
)
from ps2stream.routing.index import GridT
from ps2stream.routing.layout import Postings
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


class Registrar:
    """Own the registry and the writing side of grid^t."""

    def __init__(self, plan: Plan, storages: Storages = lambda name: HeapStorage()) -> None:
        self.plan = plan
        self._storages = storages
        self._generation = 0
        self.registry = Registry.create(storages("registry-0"))
        self.grid_t = GridT.create(plan, storages("routing"))
        self._leaving: list[Postings] = []

    @property
    def registry_name(self) -> str:
        """Name the storage that holds the registry now; compaction moves it."""
        return f"registry-{self._generation}"

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
            int(row): f"no live subscription has the id {compiled.column('id')[int(row)].as_py()!r}"
            for row in np.flatnonzero(verdicts.is_unknown)
        }
        rejected = concat([repeated, rejection(compiled, unknown, op=UNSUBSCRIBE)])
        return Decided(concat([begun, ended]), rejected)

    def restore(self, segment: pa.RecordBatch) -> None:
        """Apply what an earlier run decided."""
        self._count_out()
        rows = begins(segment)
        begun = segment.take(pa.array(rows))
        ended = segment.filter(pc.not_equal(segment.column("seq_to"), FOREVER))
        seqs = np.concatenate([begun.column("seq_from").to_numpy(), ended.column("seq_to").to_numpy()])
        is_subscribe = np.arange(len(seqs)) < begun.num_rows
        ids = pa.concat_arrays([begun.column("id"), ended.column("id")])
        # An end that a re-subscribe caused has the seq of that re-subscribe, and comes with it.
        by_itself = ~np.isin(seqs, begun.column("seq_from").to_numpy()) | is_subscribe
        order = np.argsort(seqs[by_itself], kind="stable")
        rows_of_all = np.flatnonzero(by_itself)[order]
        verdicts = self.registry.apply(
            seqs[rows_of_all], is_subscribe[rows_of_all], ids.take(pa.array(rows_of_all))
        )
        postings = _postings_of(begun)
        self.registry.describe(postings)
        self.grid_t.add(postings)
        ended_versions = verdicts.ended_version[verdicts.ended_version >= 0]
        self._leaving.append(self.registry.postings(ended_versions))

    def compact(self, horizon: int) -> None:
        """Forget the versions that ended at or before ``horizon`` when they have become many."""
        if self.registry.should_compact():
            self._generation += 1
            self.registry = self.registry.compacted(horizon, self._storages(self.registry_name))

    def _begin(self, begun: pa.RecordBatch) -> pa.RecordBatch:
        clauses = ragged_of(begun.column("clauses"), flat=False)
        terms = ragged_of(clauses.values)
        ordered = terms.values.copy()
        rarest_first(ordered, frozen(terms.offsets), self.plan.frequencies)
        lists = large_lists(pa.array(ordered), terms.offsets, clauses.offsets)
        columns = [
            begun.column("seq"),
            pa.array(np.full(begun.num_rows, FOREVER)),
            begun.column("id"),
            begun.column("expression"),
            *(begun.column(name) for name in BOUNDS),
            lists,
        ]
        without_workers = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(SEGMENT)[:-1]))
        postings = _postings_of(without_workers)
        self.registry.describe(postings)
        self.grid_t.add(postings)
        workers = self.grid_t.workers_of(postings)
        return without_workers.append_column(
            SEGMENT.field("workers"), large_lists(pa.array(workers.values), workers.offsets)
        )

    def _end(self, versions: Int64s, seq_to: Int64s) -> pa.RecordBatch:
        postings = self.registry.postings(versions)
        self._leaving.append(postings)
        workers = self.grid_t.workers_of(postings)
        n = len(versions)
        seq_from = self.registry.seq_from(versions)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(seq_from),
                pa.array(seq_to),
                self.registry.ids(seq_from),
                pa.nulls(n, pa.string()),
                *(pa.nulls(n, pa.float64()) for _ in BOUNDS),
                large_lists(pa.array([], pa.uint64()), np.zeros(1, np.int64), np.zeros(n + 1, np.int64)),
                large_lists(pa.array(workers.values), workers.offsets),
            ],
            schema=SEGMENT,
        )

    def _count_out(self) -> None:
        """Take what ended in the batch before out of H2: its publications have all been routed."""
        for postings in self._leaving:
            self.grid_t.remove(postings)
        self._leaving.clear()


def _postings_of(segment: pa.RecordBatch) -> Postings:
    """Pick the first, rarest, term of every clause."""
    subs = subscriptions_of(segment)
    terms = subs.terms[subs.term_offsets[:-1]]
    return Postings(subs.bounds, subs.clause_offsets, frozen(terms))


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
