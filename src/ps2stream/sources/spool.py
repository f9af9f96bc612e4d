"""Events that were written to a store first, as a source."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.journal.packets import decode_publications
from ps2stream.model.events import conform, not_late, nothing_rejected, numbered, renumbered, split
from ps2stream.model.schemas import BEFORE_ALL_SEQS, PUBLICATIONS, REJECTED, UPDATES, empty
from ps2stream.sources.source import Source, SourceBatch, UpdateBatch
from ps2stream.store.contract import Store, delete_all

#: Spools as rows of a DataFrame: what the tasks that write them return. A part is a prefix of the store,
#: a partition that of the DataFrame whose events are there.
SPOOLS = pa.schema(
    [
        ("partition", pa.int32()),
        ("part", pa.string()),
        ("n_publications", pa.int64()),
        ("n_updates", pa.int64()),
        ("last_seq", pa.int64()),
    ]
)

#: The first seq that a stream gives to events which come without.
FIRST_SEQ = 1

_PUBLICATIONS_KEY, _UPDATES_KEY, _REJECTED_KEY = "publications.arrow", "updates.arrow", "rejected.arrow"


@dataclass(frozen=True, slots=True)
class Spool:
    """A part of a store with events; it has those of one batch, or of a part of one, and nothing else.

    ``update_shift`` and ``publication_shift`` are added to the seqs that lie there: of events that came
    without, those are the numbers of rows, updates and publications each from 0 (:func:`in_arrival_order`).
    """

    store: Store
    n_publications: int
    n_updates: int
    last_seq: int
    update_shift: int = 0
    publication_shift: int = 0

    @classmethod
    def of_row(cls, row: dict[str, Any], store: Store) -> Spool:
        """Return a spool from a row of SPOOLS."""
        return cls(store.under(row["part"]), row["n_publications"], row["n_updates"], row["last_seq"])

    def row(self, partition: int, part: str) -> pa.RecordBatch:
        """Return the spool as a row of SPOOLS."""
        counts = {"n_publications": self.n_publications, "n_updates": self.n_updates}
        return pa.RecordBatch.from_pylist(
            [{"partition": partition, "part": part, **counts, "last_seq": self.last_seq}], schema=SPOOLS
        )

    @property
    def is_local(self) -> bool:
        """Say no: a spool is where the state of its job is (``State.spool``)."""
        return False

    def updates(self) -> Iterator[UpdateBatch]:
        for batch in self._read(_UPDATES_KEY):
            yield UpdateBatch(_shifted(batch, self.update_shift), nothing_rejected())

    def publications(self) -> Iterator[SourceBatch]:
        for batch in self._read(_PUBLICATIONS_KEY):
            yield SourceBatch(_shifted(batch, self.publication_shift), nothing_rejected())
        for batch in self._read(_REJECTED_KEY):
            yield SourceBatch(decode_publications(None), batch)

    def waits(self, now: float) -> list[tuple[float, int]]:
        """Return nothing: when these events were made is known to their own source only."""
        return []

    def forget(self) -> None:
        delete_all(self.store)

    def _read(self, key: str) -> Iterator[pa.RecordBatch]:
        yield from pa.ipc.open_stream(self.store.get(key))


class _Kinds(NamedTuple):
    """Events by kind, and what was rejected of them."""

    publications: pa.RecordBatch
    updates: pa.RecordBatch
    rejected: pa.RecordBatch


def spool(events: Iterable[pa.RecordBatch], store: Store, high_water: int) -> Spool:
    """Write events to an empty part of a store.

    Events need not be sorted within a batch of the stream, but none may lie at or below the last
    seq of the batches before: whoever waited for it has been told already.
    """
    return _written((_in_time(batch, high_water) for batch in events), store, high_water)


def spool_without_seq(events: Iterable[pa.RecordBatch], store: Store) -> Spool:
    """Write events that come without a seq to an empty part of a store; :func:`in_arrival_order` gives one.

    How many events other tasks have is not known yet, so rows are numbered here, each kind by itself.
    """
    return _written(_by_row(events), store, BEFORE_ALL_SEQS)


def in_arrival_order(spools: Sequence[Spool], after: int) -> tuple[Spool, ...]:
    """Give seqs to events that came without: to all updates, spool by spool, then to all publications.

    The first seq comes next to ``after``, the last of the batches before. So an update counts for all
    publications of its batch, and the same spools in the same order have the same seqs each time.
    """
    update = max(after + 1, FIRST_SEQ)
    publication = update + sum(each.n_updates for each in spools)
    placed = []
    for each in spools:
        # Of a spool without publications the last update; of an empty one some seq before, which is no harm.
        last = publication + each.n_publications if each.n_publications else update + each.n_updates
        placed.append(replace(each, last_seq=last - 1, update_shift=update, publication_shift=publication))
        update += each.n_updates
        publication += each.n_publications
    return tuple(placed)


def copied(source: Source, store: Store) -> Spool:
    """Copy the events of a source to an empty part of a store, which other hosts can read, too."""
    no_publications, no_updates = empty(PUBLICATIONS), empty(UPDATES)
    publications = (_Kinds(part.publications, no_updates, part.rejected) for part in source.publications())
    updates = (_Kinds(no_publications, *batch) for batch in source.updates())
    written = _written(itertools.chain(publications, updates), store, source.last_seq)
    return replace(written, last_seq=source.last_seq)


def _in_time(batch: pa.RecordBatch, high_water: int) -> _Kinds:
    kept, late = not_late(conform(batch), high_water)
    return _Kinds(*split(kept), late)


def _by_row(batches: Iterable[pa.RecordBatch]) -> Iterator[_Kinds]:
    """Number publications and updates by their rows, each from 0."""
    n_publications = n_updates = 0
    for batch in batches:
        publications, updates = split(numbered(batch, 0))
        yield _Kinds(
            renumbered(publications, n_publications), renumbered(updates, n_updates), nothing_rejected()
        )
        n_publications += publications.num_rows
        n_updates += updates.num_rows


def _shifted(batch: pa.RecordBatch, shift: int) -> pa.RecordBatch:
    if not shift:
        return batch
    column = batch.schema.get_field_index("seq")
    return batch.set_column(column, batch.schema.field(column), pc.add(batch.column(column), shift))


def _written(batches: Iterable[_Kinds], store: Store, last_seq: int) -> Spool:
    n_publications = n_updates = 0
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(pa.ipc.new_stream(stack.enter_context(store.writer(key)), schema))
            for key, schema in (
                (_PUBLICATIONS_KEY, PUBLICATIONS),
                (_UPDATES_KEY, UPDATES),
                (_REJECTED_KEY, REJECTED),
            )
        ]
        for kinds in batches:
            for file, batch in zip(files, kinds, strict=True):
                if batch.num_rows:
                    file.write_batch(batch)
            n_publications += kinds.publications.num_rows
            n_updates += kinds.updates.num_rows
            seqs = [pc.max(each.column("seq")).as_py() for each in kinds[:2] if each.num_rows]
            last_seq = max(last_seq, *seqs) if seqs else last_seq
    return Spool(store, n_publications, n_updates, last_seq)
