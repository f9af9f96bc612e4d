"""The archive: every subscription that somebody may still need, whole, as the registrar wrote it.

So the registrar can hand subscriptions over by itself: no worker has to be asked, and none has to be alive,
when cells move or a snapshot is made. Rows lie in the order of their seqs: first those of the newest
snapshot, as it has them, then later ones as they came.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s, frozen
from ps2stream.errors import StateError
from ps2stream.matching.contract import Subscriptions
from ps2stream.model.schemas import empty
from ps2stream.registry.segments import BEGIN, SEGMENT, changes, subscriptions_of

#: Batches that are small are joined when there are this many, or looking through them would take long.
_MANY = 256


class Archive:
    """Keep the rows that began subscriptions."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._firsts: list[int] = []  # seq of each batch's first row
        self._n_small = 0
        self._n_sealed = 0

    def add(self, segment: pa.RecordBatch) -> None:
        """Keep what begins in a segment; all of it begins after what is here."""
        begun = changes(segment, BEGIN)
        if begun.num_rows:
            self._append(begun)
            self._n_small += 1
        if self._n_small > _MANY:
            tail = pa.concat_batches(self._batches[-self._n_small :])
            del self._batches[-self._n_small :], self._firsts[-self._n_small :]
            self._append(tail)
            self._n_small = 0

    def rows(self, seqs: Int64s) -> pa.RecordBatch:
        """Return the rows of subscriptions by ascending seq; all must be here."""
        parts = [empty(SEGMENT)]
        batch_of = np.searchsorted(np.array(self._firsts, np.int64), seqs, side="right") - 1
        for number in np.unique(batch_of):
            batch = self._batches[number] if number >= 0 else empty(SEGMENT)
            wanted = seqs[batch_of == number]
            own = batch.column("seq_from").to_numpy()
            at = np.searchsorted(own, wanted)
            if not np.array_equal(own[at[at < len(own)]], wanted):
                raise StateError("the archive does not know a subscription that is alive")
            parts.append(batch if len(at) == len(own) else batch.take(pa.array(at)))
        return pa.concat_batches(parts)

    def fetch(self, worker: int, seqs: Int64s) -> Subscriptions:
        """Copy subscriptions by seq, whoever stores them (``roles.migration.Fetch``)."""
        return subscriptions_of(self.rows(frozen(np.sort(seqs))))

    def sealed(self) -> list[pa.RecordBatch]:
        """Return all that is here; what is added from now on stays apart from it."""
        self._n_small, self._n_sealed = 0, len(self._batches)
        return list(self._batches)

    def replace_sealed(self, rows: pa.RecordBatch) -> None:
        """Keep rows, by ascending seq, in place of all that was here when it was sealed."""
        later, firsts = self._batches[self._n_sealed :], self._firsts[self._n_sealed :]
        self._batches, self._firsts, self._n_sealed = [], [], 0
        if rows.num_rows:
            self._append(rows)
        self._batches += later
        self._firsts += firsts

    def _append(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._firsts.append(int(batch.column("seq_from")[0].as_py()))
