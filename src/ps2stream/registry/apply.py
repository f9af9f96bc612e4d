"""Kernels of the registry: decide on updates one after the other, in the order of their seq."""

from __future__ import annotations

from ps2stream.arrays import Int64s, UInt8s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.matching.layout import FOREVER
from ps2stream.registry.layout import (
    N_ENDED,
    N_ID_BYTES,
    N_IDS,
    N_VERSIONS,
    IdUpdates,
    RegistryArrays,
    Verdicts,
)
from ps2stream.text.hashing import xxh64


@kernel
def hash_ids(data: UInt8s, offsets: Int64s, hashes: UInt64s) -> None:
    for row in range(len(hashes)):
        hashes[row] = xxh64(data, offsets[row], offsets[row + 1])


@kernel
def _same_id(arrays: RegistryArrays, version: int, updates: IdUpdates, row: int) -> bool:
    start = arrays.names[2 * version + 1]
    length = arrays.names[2 * version + 3] - start
    first = updates.id_offsets[row]
    if updates.id_offsets[row + 1] - first != length:
        return False
    for i in range(length):
        if arrays.id_data[start + i] != updates.id_data[first + i]:
            return False
    return True


@kernel
def find_id(arrays: RegistryArrays, updates: IdUpdates, row: int) -> int:
    """Return the place of an id in the map, or the free place where it belongs."""
    last = len(arrays.map_hash) - 1
    key = updates.id_hash[row]
    place = int(key) & last
    while arrays.map_version[place] != 0:
        if arrays.map_hash[place] == key and _same_id(
            arrays, int(arrays.map_version[place]) - 1, updates, row
        ):
            return place
        place = (place + 1) & last
    return place


@kernel
def apply(arrays: RegistryArrays, updates: IdUpdates, verdicts: Verdicts) -> None:
    """Begin and end versions; the caller made room and fills in regions and postings."""
    head = arrays.head
    for row in range(len(updates.seq)):
        place = find_id(arrays, updates, row)
        current = int(arrays.map_version[place]) - 1
        is_live = current >= 0 and arrays.seq_to[current] == FOREVER
        verdicts.ended_version[row] = -1
        verdicts.is_unknown[row] = not (is_live or updates.is_subscribe[row])
        if is_live:
            arrays.seq_to[current] = updates.seq[row]
            verdicts.ended_version[row] = current
            head[N_ENDED] += 1
        if updates.is_subscribe[row]:
            version = head[N_VERSIONS]
            arrays.names[2 * version] = updates.seq[row]
            arrays.seq_to[version] = FOREVER
            for i in range(updates.id_offsets[row], updates.id_offsets[row + 1]):
                arrays.id_data[head[N_ID_BYTES]] = updates.id_data[i]
                head[N_ID_BYTES] += 1
            arrays.names[2 * version + 3] = head[N_ID_BYTES]
            if current < 0:
                head[N_IDS] += 1
            arrays.map_hash[place] = updates.id_hash[row]
            arrays.map_version[place] = version + 1
            head[N_VERSIONS] = version + 1


@kernel
def refill_map(arrays: RegistryArrays, ids: IdUpdates) -> None:
    """Enter all versions into an emptied map; a later version of an id replaces an earlier one."""
    n_ids = 0
    for version in range(len(ids.id_hash)):
        place = find_id(arrays, ids, version)
        if arrays.map_version[place] == 0:
            n_ids += 1
        arrays.map_hash[place] = ids.id_hash[version]
        arrays.map_version[place] = version + 1
    arrays.head[N_IDS] = n_ids
