"""The worker: packets of publications in, matches out (Sec. III-B, IV-D)."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, Ragged, frozen
from ps2stream.arrow import (
    array_of,
    list_values,
    lists_of,
    raw_spans_of,
    string_array,
    take_strings,
    views_of,
)
from ps2stream.kernels import kernel
from ps2stream.matching.contract import WORK_COUNTERS, Found, Probes, WorkerIndex, joined
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.registry.segments import concerning, subscriptions_of
from ps2stream.roles.packets import CELL_LOADS, FOUND

CellCounters = dict[str, Int64s]

_Index = TypeVar("_Index", bound=WorkerIndex)

#: Up to this many matches of a publication are sorted by insertion.
_FEW = 32
_SEQS = FOUND.field("subscription_seqs").type


class Worker(Generic[_Index]):
    """Keep one part of the subscriptions and match publications with it."""

    def __init__(self, worker_id: int, index: _Index) -> None:
        self.worker_id = worker_id
        self.index = index
        self.n_updates = 0

    def update(self, segment: pa.RecordBatch) -> None:
        """Apply what the registrar decided, as far as it concerns this worker.

        All updates of a batch come before its publications. That the seq decides what a
        publication sees makes this right, and applying a segment twice harmless.
        """
        concerned = concerning(segment, self.worker_id)
        if len(concerned.dropped):
            self.index.drop(concerned.dropped)
        if len(concerned.stored):
            self.index.insert(subscriptions_of(segment), concerned.stored)
        if len(concerned.ended):
            self.index.end(concerned.ended, concerned.seq_to)
        self.n_updates += concerned.n_rows

    def cell_counters(self) -> CellCounters:
        """Remember how much work has been counted so far, for :meth:`cell_loads`."""
        return self.index.cell_counters(WORK_COUNTERS)

    def cell_loads(self, before: CellCounters) -> pa.RecordBatch:
        """Report the work since, and the contents now, of every cell that had publications."""
        counters = self.index.cell_counters()
        work = {name: counters[name] - before[name] for name in WORK_COUNTERS}
        cells = np.flatnonzero(work["publications"])
        columns = {"cell": cells, **{name: {**counters, **work}[name][cells] for name in counters}}
        return pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in CELL_LOADS], schema=CELL_LOADS
        )

    def match(
        self, packet: pa.RecordBatch, horizon: int, switch_seq: int = BEFORE_ALL_SEQS
    ) -> pa.RecordBatch:
        """Find the matches of a packet of publications (schema FOUND).

        ``horizon``: below it no publication will come any more, not even in a replay.
        ``switch_seq``: subscriptions that began up to it are stored by an older plan.
        """
        return found_of(packet, self.probe(packet, horizon, switch_seq))

    def probe(self, packet: pa.RecordBatch, horizon: int, switch_seq: int) -> Found:
        """Find the matches of a packet by its rows, in any order."""
        terms = views_of(packet.column("terms"))
        return self.index.probe(
            Probes(
                frozen(packet.column("seq").to_numpy()),
                frozen(packet.column("lon").to_numpy()),
                frozen(packet.column("lat").to_numpy()),
                terms.offsets,
                terms.values,
                frozen(list_values(packet.column("probes"))),
                switch_seq,
            ),
            horizon,
        )


def found_of(packet: pa.RecordBatch, *found: Found) -> pa.RecordBatch:
    """Put the matches of a packet, by one index or several, into the order of its publications."""
    rows, seqs = by_publication(joined(found), packet.num_rows)
    if not len(rows):
        return empty(FOUND)
    columns = [
        array_of(packet.column("seq").to_numpy()[rows], _SEQS.value_type),
        string_array(*take_strings(raw_spans_of(packet.column("id")), rows)),
        lists_of(_SEQS, seqs.offsets, array_of(seqs.values, _SEQS.value_type)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FOUND)


def by_publication(found: Found, n_publications: int) -> tuple[Int64s, Ragged]:
    """Put the matches of each publication together: return the rows that have any, and ascending seqs."""
    offsets, rows = np.zeros(n_publications + 1, np.int64), np.empty(n_publications, np.int64)
    seqs = np.empty(len(found.subscription), np.int64)
    n_rows = _group(frozen(found.publication), frozen(found.subscription), (offsets, rows, seqs))
    return rows[:n_rows], Ragged(seqs, offsets[: n_rows + 1])


@kernel
def _group(publication: Int64s, subscription: Int64s, out: tuple[Int64s, Int64s, Int64s]) -> int:
    """Sort by counting, then within each publication; return how many rows have matches.

    ``out``: the offsets, zero at first, and one more than there are publications; the rows; the seqs.
    """
    offsets, rows, seqs = out
    ends = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(publication)):
        ends[publication[i] + 1] += 1
    n_rows = 0
    for row in range(len(rows)):
        if ends[row + 1] > 0:
            rows[n_rows] = row
            n_rows += 1
            offsets[n_rows] = ends[row] + ends[row + 1]
        ends[row + 1] += ends[row]
    # From here on an entry is where the next match of its row goes.
    for i in range(len(publication)):
        row = publication[i]
        seqs[ends[row]] = subscription[i]
        ends[row] += 1
    for i in range(n_rows):
        _sort(seqs, offsets[i], offsets[i + 1])
    return n_rows


@kernel
def _sort(seqs: Int64s, start: int, stop: int) -> None:
    """Sort a range in place; what one list of the index held comes ascending."""
    if stop - start > _FEW:
        seqs[start:stop].sort()
        return
    for i in range(start + 1, stop):
        seq = seqs[i]
        j = i - 1
        while j >= start and seqs[j] > seq:
            seqs[j + 1] = seqs[j]
            j -= 1
        seqs[j + 1] = seq
