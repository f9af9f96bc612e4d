"""Stop words as a hash set that kernels ask."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ps2stream.arrays import UInt64s
from ps2stream.kernels import kernel
from ps2stream.text.hashing import hash_term


def stop_table(terms: Iterable[str]) -> UInt64s:
    """Build an open-addressing hash set, at most a quarter full; 0 marks a free slot."""
    hashes = sorted(map(hash_term, terms))
    table = np.zeros(1 << (4 * len(hashes) - 1).bit_length(), dtype=np.uint64)
    for hashed in hashes:
        slot = hashed % len(table)
        while table[slot] != 0:
            slot = (slot + 1) % len(table)
        table[slot] = hashed
    return table


@kernel
def is_stopped(hashed: np.uint64, stops: UInt64s) -> bool:
    """Tell whether a hash is in a table of stop words."""
    mask = len(stops) - 1
    slot = np.int64(hashed & np.uint64(mask))
    while stops[slot] != np.uint64(0):
        if stops[slot] == hashed:
            return True
        slot = (slot + 1) & mask
    return False
