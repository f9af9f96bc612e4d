"""The merger: matches of all workers in, one ordered set of deliveries out (Sec. III-B)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Int64s, frozen
from ps2stream.kernels import kernel
from ps2stream.model.schemas import MATCHES
from ps2stream.pipeline.packets import FOUND
from ps2stream.registry.index import Registry

#: Up to this many matches of a publication are sorted by insertion.
_FEW = 48


class Merger:
    """Drop repeats, order by publication and name the subscriptions.

    Workers report every match once; repeats come only from hand-overs of cells and from the
    one hash collision in 2**64 that leads to the same list twice.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def merge(self, found: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the deliveries of a batch, ordered by publication seq, then subscription seq."""
        table = pa.Table.from_batches(found, schema=FOUND)
        publication = table.column("publication_seq").to_numpy()
        subscription = table.column("subscription_seq").to_numpy()
        # A worker's matches come by publication: a stable sort joins such runs in little over one pass.
        order = np.argsort(publication, kind="stable")
        _order_within(frozen(publication), frozen(subscription), order)
        publication, subscription = publication[order], subscription[order]
        ids = table.column("publication_id").combine_chunks()
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (publication[1:] != publication[:-1]) | (subscription[1:] != subscription[:-1])
        if not is_first.all():
            # Publications should not share a seq, but if they do, neither may be lost.
            repeats = np.flatnonzero(~is_first)
            same = pc.equal(ids.take(pa.array(order[repeats])), ids.take(pa.array(order[repeats - 1])))
            is_first[repeats[~np.asarray(same)]] = True
            order, publication, subscription = order[is_first], publication[is_first], subscription[is_first]
        publication_ids = ids.take(pa.array(order))
        if isinstance(publication_ids, pa.ChunkedArray):
            publication_ids = publication_ids.combine_chunks()
        return pa.RecordBatch.from_arrays(
            [
                self._registry.ids(subscription),
                pa.array(subscription),
                publication_ids,
                pa.array(publication),
            ],
            schema=MATCHES,
        )


@kernel
def _order_within(publication: Int64s, subscription: Int64s, order: Int64s) -> None:
    """Order the matches of each publication by subscription; they are few, and stay in the cache."""
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and publication[order[stop]] == publication[order[start]]:
            stop += 1
        if stop - start <= _FEW:
            for i in range(start + 1, stop):
                row = order[i]
                j = i - 1
                while j >= start and subscription[order[j]] > subscription[row]:
                    order[j + 1] = order[j]
                    j -= 1
                order[j + 1] = row
        else:
            rows = order[start:stop].copy()
            order[start:stop] = rows[np.argsort(subscription[rows], kind="mergesort")]
        start = stop
