"""The map from a subscription's seq to its record.

Open addressing. An entry is the position of the record plus one, 0 is free; the bits that positions leave
free hold a part of the seq's hash. The seq itself is in the record alone: four bytes an entry are enough, and
nearly all records that are looked at are the right ones.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Flags, Int64s, UInt32s
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.matching.records import Records, is_gone, next_record, seqs_at
from ps2stream.model.space import mix

_HALF = np.uint64(32)
_FULL_PERCENT = 80
#: This many records ahead the slots they go to are prefetched.
_AHEAD = 16


def map_size(n_records: int) -> int:
    """Return the length of a map for this many records: with capacity for a quarter more."""
    return n_records * 125 // _FULL_PERCENT + 16


@kernel
def is_map_full(n_records: int, size: int) -> bool:
    return 100 * n_records > _FULL_PERCENT * size


@kernel
def _position_bits(records: Records) -> int:
    """Return how many bits positions take; as many for all positions that the records have capacity for."""
    bits = 1
    while len(records.ints) >> bits:
        bits += 1
    return bits


@kernel
def prefetch_seq(map_record: UInt32s, seq: int) -> None:
    """Prefetch what a search reads for a seq."""
    prefetch(map_record, signed((mix(np.uint64(seq)) >> _HALF) * np.uint64(len(map_record)) >> _HALF))


@kernel
def find_seq(map_record: UInt32s, records: Records, seq: int) -> int:
    """Return the slot of a subscription in the map, or the free slot where it belongs."""
    hashed = mix(np.uint64(seq))
    bits = _position_bits(records)
    slot = signed((hashed >> _HALF) * np.uint64(len(map_record)) >> _HALF)
    while map_record[slot] != 0:
        entry = signed(map_record[slot])
        if entry >> bits == signed(hashed) & ((1 << (32 - bits)) - 1):
            record = (entry & ((1 << bits) - 1)) - 1
            if not is_gone(records, record) and seqs_at(records, record)[0] == seq:
                break
        slot += 1
        if slot == len(map_record):
            slot = 0
    return slot


@kernel
def record_at(map_record: UInt32s, records: Records, slot: int) -> int:
    """Return the record that an entry leads to, or -1 for a free one."""
    return (signed(map_record[slot]) & ((1 << _position_bits(records)) - 1)) - 1


@kernel
def set_record(map_record: UInt32s, records: Records, slot: int, seq: int, record: int) -> None:
    """Enter a record at the slot that a search for its seq returned."""
    bits = _position_bits(records)
    part = signed(mix(np.uint64(seq))) & ((1 << (32 - bits)) - 1)
    map_record[slot] = part << bits | (record + 1)


@kernel
def find_records(map_record: UInt32s, records: Records, seqs: Int64s) -> Int64s:
    """List the records of those subscriptions that are stored here."""
    found = np.empty(len(seqs), np.int64)
    n = 0
    for i in range(len(seqs)):
        record = record_at(map_record, records, find_seq(map_record, records, seqs[i]))
        if record >= 0:
            found[n] = record
            n += 1
    return found[:n]


@kernel
def are_there(map_record: UInt32s, records: Records, seqs: Int64s) -> Flags:
    """Say of each subscription whether it is stored here."""
    found = np.empty(len(seqs), np.bool_)
    for i in range(len(seqs)):
        found[i] = map_record[find_seq(map_record, records, seqs[i])] != 0
    return found


@kernel
def refill_seq_map(records: Records, map_record: UInt32s, record: int, n: int) -> int:
    """Enter ``n`` records into a map that began empty; return where the next record lies.

    Each is there once, so any free slot will do and no other record has to be looked at.
    """
    bits = _position_bits(records)
    ahead = record
    for number in range(n + _AHEAD):
        if number < n:
            if not is_gone(records, ahead):
                prefetch_seq(map_record, seqs_at(records, ahead)[0])
            ahead = next_record(records.words, ahead)
        if number < _AHEAD:
            continue
        if not is_gone(records, record):
            hashed = mix(np.uint64(seqs_at(records, record)[0]))
            slot = signed((hashed >> _HALF) * np.uint64(len(map_record)) >> _HALF)
            while map_record[slot] != 0:
                slot += 1
                if slot == len(map_record):
                    slot = 0
            map_record[slot] = (signed(hashed) & ((1 << (32 - bits)) - 1)) << bits | (record + 1)
        record = next_record(records.words, record)
    return record
