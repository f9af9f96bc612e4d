"""A stream without an end: what a part of it changes, the next part takes back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE
from ps2stream_bench.workloads.events import events_of


def endless_parts(loading: pa.RecordBatch, mixed: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Repeat a mix of publications and updates forever, in parts of ``size``; its seqs mean nothing.

    ``loading`` has the subscriptions that are there before. Every second time round the mix ends what it
    began and begins what it ended, so that the same subscriptions live whenever it starts over.
    """
    for events in cycle((mixed, taken_back(loading, mixed))):
        for start in range(0, events.num_rows, size):
            yield events.slice(start, size)


def taken_back(loading: pa.RecordBatch, mixed: pa.RecordBatch) -> pa.RecordBatch:
    """Return the mix with every subscribe and unsubscribe exchanged."""
    begins, ends = (np.flatnonzero(pc.equal(mixed.column("op"), op)) for op in (SUBSCRIBE, UNSUBSCRIBE))
    begun = mixed.column("id").take(pa.array(begins))
    unsubscribes = events_of({"op": pa.repeat(UNSUBSCRIBE, len(begun)), "id": begun}, len(begun))
    subscribes = pc.index_in(mixed.column("id").take(pa.array(ends)), loading.column("id"))
    if subscribes.null_count:
        raise ValueError("a mix that can be taken back ends only what was loaded before it")
    known = [mixed, *unsubscribes.to_batches(), loading.take(subscribes)]
    rows = np.arange(mixed.num_rows)
    rows[begins] = mixed.num_rows + np.arange(len(begins))
    rows[ends] = mixed.num_rows + len(begins) + np.arange(len(ends))
    return pa.concat_batches(known).take(pa.array(rows))
