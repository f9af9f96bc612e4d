"""Kernels that find versions by their seqs, and name them.

Subscriptions that match lie anywhere in a registry that no cache holds. Kernels work in blocks and ask
for all lines of a block before they use the first, so that misses overlap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int32s, Int64s, UInt32s
from ps2stream.arrow import buffer_for, copy_bytes
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.registry.layout import INTERVAL_BITS, N_INTERVALS, N_VERSIONS, RegistryArrays
from ps2stream.text.hashing import Bytes

#: This many lines are on their way at once.
_BLOCK = 64
#: How many ids ahead bytes are asked for.
_AHEAD = 24
#: With fewer bits to an interval, its length times the versions in it fits into a word.
_MANY_BITS = 32


@kernel
def extend_directory(arrays: RegistryArrays, first: int) -> None:
    """Enter the versions from ``first`` on; the caller grew the arrays."""
    head, names, directory = arrays.head, arrays.names, arrays.directory
    bits = np.uint64(head[INTERVAL_BITS])
    n_intervals = head[N_INTERVALS]
    for version in range(first, head[N_VERSIONS]):
        interval = signed(_distance(names[0], names[2 * version]) >> bits)
        while n_intervals <= interval:
            directory[n_intervals] = version
            n_intervals += 1
    head[N_INTERVALS] = n_intervals


@kernel
def _distance(first: np.int64, seq: np.int64) -> np.uint64:
    """Subtract as unsigned numbers: two seqs may lie further apart than a signed one tells."""
    return np.uint64(seq) - np.uint64(first)


class Directory(NamedTuple):
    """As much of a registry as finding takes; kernels that get all of it spend their time passing it on."""

    names: Int64s
    intervals: UInt32s
    first_seq: np.int64  # of numpy also uncompiled, where it is taken as unsigned
    interval_bits: int
    n_intervals: int
    n_versions: int


def directory_of(arrays: RegistryArrays) -> Directory:
    """View the directory of a registry."""
    names, head = arrays.names, arrays.head.tolist()
    bits, n_intervals, n_versions = head[INTERVAL_BITS], head[N_INTERVALS], head[N_VERSIONS]
    return Directory(names, arrays.directory, names[0], bits, n_intervals, n_versions)


@kernel
def _guess(directory: Directory, seq: np.int64) -> int:
    """Return where a version would be if the seqs of its interval came evenly; -1 where none can be."""
    distance, bits = _distance(directory.first_seq, seq), np.uint64(directory.interval_bits)
    # Compared as unsigned numbers, too: one that is very far would be negative as a signed one.
    if seq < directory.first_seq or distance >> bits >= np.uint64(directory.n_intervals):
        return -1
    start, stop = _versions_in(directory, signed(distance >> bits))
    if start == stop:
        return -1
    into = distance & ((np.uint64(1) << bits) - np.uint64(1))
    if directory.interval_bits < _MANY_BITS:
        return start + signed((np.uint64(stop - start) * into) >> bits)
    # As floats, since the product would not fit; rounded, that may reach the end.
    share = float(into) / float(np.uint64(1) << bits)
    return min(start + int(float(stop - start) * share), stop - 1)


@kernel
def _versions_in(directory: Directory, interval: int) -> tuple[int, int]:
    """Return the first version of an interval, and the first one behind it."""
    is_last = interval + 1 == directory.n_intervals
    stop = directory.n_versions if is_last else signed(directory.intervals[interval + 1])
    return signed(directory.intervals[interval]), stop


@kernel
def _search(directory: Directory, seq: np.int64, guess: int) -> int:
    """Return the version of a seq, looking ever further from a guess that failed; -1 if there is none."""
    names = directory.names
    if guess < 0:
        return -1
    interval = signed(_distance(directory.first_seq, seq) >> np.uint64(directory.interval_bits))
    low, high = _versions_in(directory, interval)
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
    return low if low < directory.n_versions and names[2 * low] == seq else -1


@kernel
def _find_block(directory: Directory, seqs: Int64s, start: int, stop: int, versions: Int64s) -> bool:
    """Find the versions of some seqs; return whether all are known."""
    names = directory.names
    for i in range(start, stop):
        versions[i] = _guess(directory, seqs[i])
        prefetch(names, 2 * versions[i])
    is_known = True
    for i in range(start, stop):
        if versions[i] < 0 or names[2 * versions[i]] != seqs[i]:
            versions[i] = _search(directory, seqs[i], versions[i])
            is_known &= versions[i] >= 0
    return is_known


@kernel
def find_versions(directory: Directory, seqs: Int64s, versions: Int64s) -> bool:
    """Find the versions of seqs; return whether all are known."""
    for block in range(0, len(seqs), _BLOCK):
        if not _find_block(directory, seqs, block, min(block + _BLOCK, len(seqs)), versions):
            return False
    return True


@kernel
def name_seqs(directory: Directory, id_data: Bytes, seqs: Int64s) -> tuple[Int32s, Bytes, int]:
    """Return the ids of seqs as offsets and bytes, and how many bytes.

    -1 if a seq is not known. There are none where they are more than an array of strings takes.
    """
    starts, offsets = np.empty(len(seqs), np.int64), np.zeros(len(seqs) + 1, np.int32)
    n_bytes = find_ids(directory, seqs, starts, offsets[1:])
    data = buffer_for(n_bytes)
    if len(data) > 0:
        copy_ids(id_data, starts, offsets, data)
    return offsets, data, n_bytes


@kernel
def find_ids(directory: Directory, seqs: Int64s, starts: Int64s, lengths: Int32s) -> int:
    """Return the starts and the lengths of the ids of seqs.

    Return how many bytes they take in all, or -1 if a seq is not known.
    """
    names = directory.names
    n_bytes = 0
    for block in range(0, len(seqs), _BLOCK):
        stop = min(block + _BLOCK, len(seqs))
        if not _find_block(directory, seqs, block, stop, starts):
            return -1
        for i in range(block, stop):
            version = starts[i]
            starts[i] = names[2 * version + 1]
            lengths[i] = names[2 * version + 3] - starts[i]
            n_bytes += signed(lengths[i])
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
