"""The names of a worker's subscriptions, which it learns and forgets in whatever order they come and go."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import HeapStorage, Int64s, Storage, create_struct, frozen
from ps2stream.arrow import spans_of, string_array
from ps2stream.errors import StateError
from ps2stream.registry.name_map import (
    HEAD_SIZE,
    N_NAMES,
    N_WORDS,
    NameArrays,
    enter,
    leave,
    n_slots_for,
    name_seqs_by,
    refill,
)

_DTYPES = {"head": np.int64, "slots": np.int64, "ids": np.int64}
_INITIAL_SIZES = {"head": HEAD_SIZE, "slots": 2048, "ids": 1024}


class _Ended(NamedTuple):
    """Subscriptions that ended, and where the last of them did."""

    upto: int
    seqs: Int64s


class Names:
    """Name subscriptions by their seqs; one writer. The memory of what is forgotten is used again."""

    def __init__(self, storage: Storage | None = None) -> None:
        self._storage = storage or HeapStorage()
        self._arrays = create_struct(NameArrays, _DTYPES, _INITIAL_SIZES, self._storage)
        self._ended: deque[_Ended] = deque()

    def __len__(self) -> int:
        return int(self._arrays.head[N_NAMES])

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def enter(self, seqs: Int64s, ids: pa.Array) -> None:
        """Learn names; one that is known stays."""
        spans = spans_of(ids)
        n_words = int(np.sum((np.diff(spans.offsets) + 7) // 8))
        self._reserve(len(seqs), n_words)
        enter(self._arrays, frozen(seqs), spans)

    def end(self, seqs: Int64s, seq_to: Int64s) -> None:
        """Forget names later: when no publication can come that lies before the ends of all of these.

        An end is for good: nobody comes back after it.
        """
        if len(seqs):
            self._ended.append(_Ended(int(seq_to.max()), seqs))

    def forget(self, horizon: int) -> None:
        """Forget what ended at or before a seq, in the order of ``end``."""
        while self._ended and self._ended[0].upto <= horizon:
            leave(self._arrays, frozen(self._ended.popleft().seqs))

    def drop(self, seqs: Int64s) -> None:
        """Forget names at once; they may come back. Those that are not known do no harm."""
        leave(self._arrays, frozen(seqs))

    def ids(self, seqs: Int64s) -> pa.Array:
        """Name the subscriptions of seqs."""
        named = name_seqs_by(self._arrays.slots, self._arrays.ids, frozen(seqs))
        if named[2] < 0:
            raise StateError("a worker matched a subscription whose name it does not know")
        return string_array(*named)

    def _reserve(self, n_names: int, n_words: int) -> None:
        arrays = self._arrays
        n_needed = int(arrays.head[N_WORDS]) + n_words + 1
        if n_needed > len(arrays.ids):
            longer = self._storage.grow("ids", arrays.ids, max(n_needed, len(arrays.ids) * 5 // 4))
            self._arrays = arrays = arrays._replace(ids=longer)
        n_slots = n_slots_for(len(self) + n_names)
        if 2 * n_slots > len(arrays.slots):
            larger = self._storage.create("slots", np.int64, 2 * n_slots)
            refill(arrays.slots, larger)
            self._arrays = arrays._replace(slots=larger)
