"""Kernels of the registry: decide on updates one after the other, in the order of their seq."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, UInt8s, UInt32s, UInt64s
from ps2stream.arrow import COPY_MARGIN
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.matching.contract import FOREVER
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.layout import (
    INTERVAL_BITS,
    N_ENDED,
    N_ID_BYTES,
    N_IDS,
    N_VERSIONS,
    IdUpdates,
    RegistryArrays,
    Verdicts,
)
from ps2stream.registry.naming import extend_directory
from ps2stream.text.hashing import xxh64

#: What came of a call: all is done, or something is missing.
DONE, OUT_OF_ORDER, NO_CAPACITY, NO_DIRECTORY = range(4)
#: Up to this many intervals the directory may have; beyond, one for this many versions.
_FEW_INTERVALS = 1024
_VERSIONS_PER_INTERVAL = 16

#: How many updates ahead slots of the map are asked for.
_AHEAD = 12


@kernel
def hash_ids(data: UInt8s, offsets: Int64s, hashes: UInt64s) -> None:
    for row in range(len(hashes)):
        hashes[row] = xxh64(data, offsets[row], offsets[row + 1])


class IdMap(NamedTuple):
    """As much of a registry as finding an id takes; passing all of it costs more than to look."""

    names: Int64s
    id_data: UInt8s
    hashes: UInt64s
    versions: UInt32s


@kernel
def id_map_of(arrays: RegistryArrays) -> IdMap:
    return IdMap(arrays.names, arrays.id_data, arrays.map_hash, arrays.map_version)


@kernel
def _same_id(ids: IdMap, version: int, data: UInt8s, start: int, stop: int) -> bool:
    first = ids.names[2 * version + 1]
    if ids.names[2 * version + 3] - first != stop - start:
        return False
    for i in range(stop - start):
        if ids.id_data[first + i] != data[start + i]:
            return False
    return True


@kernel
def find_id(ids: IdMap, key: np.uint64, data: UInt8s, start: int, stop: int) -> int:
    """Return the slot of an id in the map, or the free slot where it belongs."""
    last = len(ids.hashes) - 1
    slot = signed(key) & last
    while ids.versions[slot] != 0:
        if ids.hashes[slot] == key and _same_id(ids, signed(ids.versions[slot]) - 1, data, start, stop):
            return slot
        slot = (slot + 1) & last
    return slot


@kernel
def _prefetch_slot(ids: IdMap, key: np.uint64) -> None:
    slot = signed(key) & (len(ids.hashes) - 1)
    prefetch(ids.hashes, slot)
    prefetch(ids.versions, slot)


@kernel
def apply(arrays: RegistryArrays, updates: IdUpdates, verdicts: Verdicts) -> int:
    """Begin and end versions and enter them into the directory; regions and postings are to follow.

    Return what is missing before that can be done (nothing is changed then), or that only the directory is.
    """
    head, first = arrays.head, arrays.head[N_VERSIONS]
    n_new = _count_new(arrays, updates)
    if n_new < 0:
        return OUT_OF_ORDER
    if not _has_capacity(arrays, first + n_new, len(updates.id_data)):
        return NO_CAPACITY
    _decide(arrays, updates, verdicts)
    if n_new == 0:
        return DONE
    span = arrays.names[2 * (head[N_VERSIONS] - 1)] - arrays.names[0]
    # A span that no signed number holds is for those who reckon with larger ones.
    last = span >> head[INTERVAL_BITS]
    if span < 0 or last >= most_intervals(head[N_VERSIONS]) or last >= len(arrays.directory):
        return NO_DIRECTORY
    extend_directory(arrays, first)
    return DONE


@kernel
def most_intervals(n_versions: int) -> int:
    """Return how many intervals the directory of so many versions may have."""
    return max(_FEW_INTERVALS, n_versions // _VERSIONS_PER_INTERVAL)


@kernel
def _count_new(arrays: RegistryArrays, updates: IdUpdates) -> int:
    """Count the versions that begin; -1 unless each has a later seq than all before."""
    n, n_versions = 0, arrays.head[N_VERSIONS]
    newest = arrays.names[2 * (n_versions - 1)] if n_versions else BEFORE_ALL_SEQS
    for row in range(len(updates.seq)):
        if updates.is_subscribe[row]:
            if updates.seq[row] <= newest:
                return -1
            newest = updates.seq[row]
            n += 1
    return n


@kernel
def _has_capacity(arrays: RegistryArrays, n_versions: int, n_id_bytes: int) -> bool:
    """Say whether everything but postings and the directory has capacity."""
    return (
        2 * (n_versions + 1) <= len(arrays.names)
        and n_versions <= len(arrays.seq_to)
        and n_versions < len(arrays.posting_offsets)
        and 4 * n_versions <= len(arrays.bounds)
        and arrays.head[N_ID_BYTES] + n_id_bytes + COPY_MARGIN <= len(arrays.id_data)
        and 10 * n_versions <= 7 * len(arrays.map_hash)
    )


@kernel
def _decide(arrays: RegistryArrays, updates: IdUpdates, verdicts: Verdicts) -> None:
    ids, seq_to = id_map_of(arrays), arrays.seq_to
    keys, offsets, data = updates.id_hash, updates.id_offsets, updates.id_data
    head = arrays.head
    version, n_bytes, n_ended, n_ids = head[N_VERSIONS], head[N_ID_BYTES], head[N_ENDED], head[N_IDS]
    for row in range(len(keys)):
        if row + _AHEAD < len(keys):
            _prefetch_slot(ids, keys[row + _AHEAD])
        start, stop = offsets[row], offsets[row + 1]
        slot = find_id(ids, keys[row], data, start, stop)
        current = signed(ids.versions[slot]) - 1
        is_live = current >= 0 and seq_to[current] == FOREVER
        verdicts.ended_version[row] = -1
        verdicts.is_unknown[row] = not (is_live or updates.is_subscribe[row])
        if is_live:
            seq_to[current] = updates.seq[row]
            verdicts.ended_version[row] = current
            n_ended += 1
        if updates.is_subscribe[row]:
            ids.names[2 * version] = updates.seq[row]
            seq_to[version] = FOREVER
            for i in range(start, stop):
                ids.id_data[n_bytes] = data[i]
                n_bytes += 1
            ids.names[2 * version + 3] = n_bytes
            n_ids += current < 0
            ids.hashes[slot] = keys[row]
            version += 1
            ids.versions[slot] = version
    head[N_VERSIONS], head[N_ID_BYTES], head[N_ENDED], head[N_IDS] = version, n_bytes, n_ended, n_ids


@kernel
def refill_id_map(arrays: RegistryArrays, hashes: UInt64s) -> None:
    """Enter all versions into an emptied map; a later version of an id replaces an earlier one."""
    ids = id_map_of(arrays)
    n_ids = 0
    for version in range(len(hashes)):
        if version + _AHEAD < len(hashes):
            _prefetch_slot(ids, hashes[version + _AHEAD])
        start, stop = ids.names[2 * version + 1], ids.names[2 * version + 3]
        slot = find_id(ids, hashes[version], ids.id_data, start, stop)
        n_ids += ids.versions[slot] == 0
        ids.hashes[slot] = hashes[version]
        ids.versions[slot] = version + 1
    arrays.head[N_IDS] = n_ids
