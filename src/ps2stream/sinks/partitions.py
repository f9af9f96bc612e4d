"""Which partition of a topic the matches of a subscription go to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.arrow import Spans, spans_of
from ps2stream.kernels import kernel
from ps2stream.text.hashing import xxh64


def partitions_of(ids: pa.Array, n_partitions: int) -> Int64s:
    """Return the partition of each id: the same for the same id, whoever asks."""
    if n_partitions == 1:
        return np.zeros(len(ids), np.int64)
    partitions = np.empty(len(ids), np.int64)
    _divide(spans_of(ids), n_partitions, partitions)
    return partitions


@kernel
def _divide(ids: Spans, n_partitions: int, partitions: Int64s) -> None:
    for row in range(len(partitions)):
        hashed = xxh64(ids.data, ids.offsets[row], ids.offsets[row + 1])
        partitions[row] = np.int64(hashed % np.uint64(n_partitions))
