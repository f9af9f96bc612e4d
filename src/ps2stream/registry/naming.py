"""Kernels that find versions by their seqs, and name them.

Subscriptions that match lie anywhere in a registry that no cache holds. Kernels work in blocks and ask
for all lines of a block before they use the first, so that misses overlap.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Int32s, Int64s
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.registry.layout import N_STRETCHES, N_VERSIONS, STRETCH_BITS, RegistryArrays
from ps2stream.text.hashing import Bytes
from ps2stream.text.strings import copy_bytes

#: So many lines are on their way at once.
_BLOCK = 64
#: How many ids ahead bytes are asked for.
_AHEAD = 24


@kernel
def stretch_of(arrays: RegistryArrays, seq: int) -> int:
    """Return the number of the stretch that a seq lies in; -1 before the first version."""
    first = arrays.names[0]
    if seq < first:
        return -1
    # Unsigned: the first seq and the last may lie further apart than a signed number tells.
    return signed((np.uint64(seq) - np.uint64(first)) >> np.uint64(arrays.head[STRETCH_BITS]))


@kernel
def extend_directory(arrays: RegistryArrays, first: int) -> None:
    """Enter the versions from ``first`` on; the caller made room."""
    head = arrays.head
    for version in range(first, head[N_VERSIONS]):
        stretch = stretch_of(arrays, arrays.names[2 * version])
        while head[N_STRETCHES] <= stretch:
            arrays.directory[head[N_STRETCHES]] = version
            head[N_STRETCHES] += 1


@kernel
def _bounds_of(arrays: RegistryArrays, stretch: int) -> tuple[int, int]:
    """Return the first version of a stretch, and the first one behind it."""
    head = arrays.head
    last = head[N_STRETCHES] - 1
    stop = signed(arrays.directory[stretch + 1]) if stretch < last else head[N_VERSIONS]
    return signed(arrays.directory[stretch]), stop


@kernel
def _guess(arrays: RegistryArrays, seq: int) -> int:
    """Return where a version would be if the seqs of its stretch came evenly; -1 where none can be."""
    stretch = stretch_of(arrays, seq)
    if stretch < 0 or stretch >= arrays.head[N_STRETCHES]:
        return -1
    start, stop = _bounds_of(arrays, stretch)
    if start == stop:
        return -1
    bits = np.uint64(arrays.head[STRETCH_BITS])
    into = (np.uint64(seq) - np.uint64(arrays.names[0])) & ((np.uint64(1) << bits) - np.uint64(1))
    # As floats, since a long stretch times many versions would not fit; rounded, that may reach the end.
    return min(start + int(float(stop - start) * (float(into) / float(np.uint64(1) << bits))), stop - 1)


@kernel
def _search(arrays: RegistryArrays, seq: int, guess: int) -> int:
    """Return the version of a seq, looking ever further from a guess; -1 if there is none."""
    names = arrays.names
    if guess < 0 or names[2 * guess] == seq:
        return guess
    low, high = _bounds_of(arrays, stretch_of(arrays, seq))
    step = 1
    if names[2 * guess] < seq:
        low = guess + 1
        while guess + step < high and names[2 * (guess + step)] < seq:
            low = guess + step + 1
            step *= 2
        high = min(high, guess + step + 1)
    else:
        high = guess
        while guess - step >= low and names[2 * (guess - step)] > seq:
            high = guess - step
            step *= 2
        low = max(low, guess - step)
    while low < high:
        middle = (low + high) >> 1
        if names[2 * middle] < seq:
            low = middle + 1
        else:
            high = middle
    if low < arrays.head[N_VERSIONS] and names[2 * low] == seq:
        return low
    return -1


@kernel
def find_versions(arrays: RegistryArrays, seqs: Int64s, versions: Int64s) -> bool:
    """Find the versions of seqs; return whether all are known."""
    for block in range(0, len(seqs), _BLOCK):
        stop = min(block + _BLOCK, len(seqs))
        for i in range(block, stop):
            versions[i] = _guess(arrays, seqs[i])
            prefetch(arrays.names, 2 * versions[i])
        for i in range(block, stop):
            versions[i] = _search(arrays, seqs[i], versions[i])
            if versions[i] < 0:
                return False
    return True


@kernel
def find_spans(arrays: RegistryArrays, seqs: Int64s, starts: Int64s, lengths: Int32s) -> int:
    """Find where the ids of seqs lie; return how many bytes they take, or -1 if a seq is not known."""
    n_bytes = 0
    for block in range(0, len(seqs), _BLOCK):
        stop = min(block + _BLOCK, len(seqs))
        for i in range(block, stop):
            starts[i] = _guess(arrays, seqs[i])
            prefetch(arrays.names, 2 * starts[i])
        for i in range(block, stop):
            version = _search(arrays, seqs[i], starts[i])
            if version < 0:
                return -1
            starts[i] = arrays.names[2 * version + 1]
            length = arrays.names[2 * version + 3] - starts[i]
            lengths[i] = length
            n_bytes += length
    return n_bytes


@kernel
def copy_ids(id_data: Bytes, starts: Int64s, offsets: Int32s, data: Bytes) -> None:
    """Copy ids one behind the other; ``offsets`` has their lengths from its second entry on."""
    n = len(starts)
    at = 0
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(id_data, starts[i + _AHEAD])
        length = signed(offsets[i + 1])
        copy_bytes(id_data, starts[i], starts[i] + length, data, at)
        at += length
        offsets[i + 1] = at
