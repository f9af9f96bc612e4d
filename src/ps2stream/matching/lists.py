"""Lists of postings by (cell, term): the table that finds them and the chunks they lie in.

An entry of the table is two words. The first is the key, with two flags in its lowest bits; 0 is free. The
second is the only posting of the list, or with ``LIST`` where its postings lie (start << 32 | length):
most lists have one posting, which costs neither memory nor another access. Behind ``SPLIT`` there is
more in the list of the next finer cell.

Entries are in the order of their keys: a key's home is its share of the table, and what does not find its
home free lies behind it. So a search for a key that is not there ends as early as one for a key that is,
the table can be filled to 85 %, and a larger one is written in one pass from front to back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, UInt64s
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.matching.layout import FREE, IS_TABLE_FULL, N_LISTS, N_POOL, N_POSTINGS
from ps2stream.model.space import cell_term_key

LIST, SPLIT = np.uint64(1), np.uint64(2)
LENGTH = np.uint64(0xFFFFFFFF)

_KEY = ~np.uint64(3)
_HALF = np.uint64(32)
#: Slots behind the last home, for what belongs there and found it taken: this many at least, and a share of
#: the table, or whoever makes up terms that all belong there could let it grow without end. The last slot
#: stays free.
_TAIL, _TAIL_SHARE = 256, 64
_FULL_PERCENT = 85


def list_table_size(n_lists: int) -> int:
    """Return how many words a table takes for this many lists: with capacity for a tenth more."""
    n_homes = n_lists * 110 // _FULL_PERCENT + 16
    return 2 * (n_homes + max(_TAIL, n_homes // (_TAIL_SHARE - 1) + 1))


class Lists(NamedTuple):
    """The part of the arrays that posting works on.

    numba takes a struct apart on every call: with all of the index an insert took half as long again
    (docs/performance.md).
    """

    head: Int64s
    table: UInt64s
    postings: UInt64s


@kernel
def list_key(seed: np.uint64, term: np.uint64) -> np.uint64:
    """Key the list of a (cell, term) pair; two bits shorter than the pair's own key, and never 0."""
    key = cell_term_key(seed, term) & _KEY
    return key if key != np.uint64(0) else np.uint64(4)


@kernel
def _n_homes(table: UInt64s) -> int:
    n_places = len(table) // 2
    return n_places - max(min(_TAIL, n_places >> 1), n_places // _TAIL_SHARE)


@kernel
def _home(key: np.uint64, n_homes: int) -> int:
    return signed((key >> _HALF) * np.uint64(n_homes) >> _HALF)


@kernel
def prefetch_list(table: UInt64s, key: np.uint64) -> None:
    """Prefetch what a search reads for a key."""
    prefetch(table, 2 * _home(key, _n_homes(table)))


@kernel
def find_list(table: UInt64s, key: np.uint64) -> int:
    """Return the slot of a key in the table, or that of the first larger one, or a free one."""
    slot = _home(key, _n_homes(table))
    while True:
        stored = table[2 * slot]
        if stored == np.uint64(0) or stored & _KEY >= key:
            return slot
        slot += 1


@kernel
def has_key(table: UInt64s, slot: int, key: np.uint64) -> bool:
    """Say whether the slot that a search returned is the key's own."""
    return bool(table[2 * slot] & _KEY == key)


@kernel
def add_key(head: Int64s, table: UInt64s, slot: int, key: np.uint64) -> bool:
    """Enter an empty list at the slot that a search returned; False, and nothing changed, when full."""
    free = slot
    while table[2 * free] != np.uint64(0):
        free += 1
    if 100 * (head[N_LISTS] + 1) > _FULL_PERCENT * _n_homes(table) or free >= len(table) // 2 - 1:
        head[IS_TABLE_FULL] = 1
        return False
    for at in range(2 * free + 1, 2 * slot + 1, -1):
        table[at] = table[at - 2]
    table[2 * slot] = key | LIST
    table[2 * slot + 1] = np.uint64(0)
    head[N_LISTS] += 1
    return True


@kernel
def is_empty(stored: np.uint64, value: np.uint64) -> bool:
    """Say whether an entry is a list without postings, here or behind it."""
    return bool(stored & (LIST | SPLIT) == LIST and value & LENGTH == np.uint64(0))


@kernel
def next_slot(table: UInt64s, stored: np.uint64, slot: int) -> int:
    """Return where an entry goes when a table is filled in the order of keys up to a slot."""
    return max(slot, _home(stored & _KEY, _n_homes(table)))


@kernel
def next_key(table: UInt64s, slot: int) -> np.uint64:
    """Return the key of the first entry from a slot on, 0 if there is none."""
    while slot < len(table) // 2:
        if table[2 * slot] != np.uint64(0):
            key: np.uint64 = table[2 * slot] & _KEY
            return key
        slot += 1
    return np.uint64(0)


@kernel
def move_lists(head: Int64s, old: UInt64s, table: UInt64s) -> bool:
    """Move the lists that are not empty into an empty table; False if they do not fit."""
    last = len(table) // 2 - 1
    n = slot = 0
    for at in range(len(old) // 2):
        stored, value = old[2 * at], old[2 * at + 1]
        if stored == np.uint64(0) or is_empty(stored, value):
            continue
        slot = next_slot(table, stored, slot)
        if slot >= last:
            return False
        table[2 * slot], table[2 * slot + 1] = stored, value
        slot += 1
        n += 1
    head[N_LISTS] = n
    return True


@kernel
def chunk_size(size_class: int) -> int:
    """Return the size of a class of chunks: 2, 3, 4, 6, 8, 12, 16 and so on."""
    return (2 + (size_class & 1)) << (size_class >> 1)


@kernel
def class_for(n_postings: int) -> int:
    """Return the smallest class of chunks for this many postings."""
    size_class = 0
    while chunk_size(size_class) < n_postings:
        size_class += 1
    return size_class


@kernel
def fills_chunk(length: int) -> bool:
    """Say whether a list of this length takes all of a chunk.

    After removals a list may have a larger chunk than its length tells; that part is lost until
    compaction. Keeping capacities in the table would cost four bytes a list.
    """
    lowest = length & -length
    return length == lowest or length == 3 * lowest


@kernel
def take_chunk(head: Int64s, postings: UInt64s, size_class: int) -> int:
    """Return the start of a chunk, one that was left or a new one, or -1 when the pool is full."""
    free = head[FREE + size_class] - 1
    if free >= 0:
        head[FREE + size_class] = signed(postings[free])
        return signed(free)
    start = head[N_POOL]
    if start + chunk_size(size_class) > len(postings):
        return -1
    head[N_POOL] = start + chunk_size(size_class)
    return signed(start)


@kernel
def leave_chunk(head: Int64s, postings: UInt64s, start: int, size_class: int) -> None:
    """Keep a chunk for the next list that needs one of its class."""
    postings[start] = np.uint64(head[FREE + size_class])
    head[FREE + size_class] = start + 1


@kernel
def range_of(value: np.uint64) -> tuple[int, int]:
    """Return where the postings of a ``LIST`` begin and how many there are."""
    return signed(value >> _HALF), signed(value & LENGTH)


@kernel
def list_value(start: int, length: int) -> np.uint64:
    return np.uint64(start) << _HALF | np.uint64(length)


@kernel
def append(lists: Lists, key: np.uint64, posting: np.uint64) -> bool:
    """Add a posting to the list of a key; False, and nothing changed, when there is no capacity.

    A posting that the list ends with already is not added again, so a subscription can be posted anew from
    the start when there was no capacity for all of it.
    """
    head, table, postings = lists
    slot = find_list(table, key)
    if not has_key(table, slot, key) and not add_key(head, table, slot, key):
        return False
    value = table[2 * slot + 1]
    if table[2 * slot] & LIST == np.uint64(0):
        if value == posting:
            return True
        start = take_chunk(head, postings, 0)
        if start < 0:
            return False
        postings[start], postings[start + 1] = value, posting
        table[2 * slot] |= LIST
        table[2 * slot + 1] = list_value(start, 2)
    else:
        start, length = range_of(value)
        if length == 0:
            table[2 * slot] &= ~LIST
            table[2 * slot + 1] = posting
        else:
            if postings[start + length - 1] == posting:
                return True
            if fills_chunk(length):
                size_class = class_for(length)
                chunk = take_chunk(head, postings, size_class + 1)
                if chunk < 0:
                    return False
                for i in range(length):
                    postings[chunk + i] = postings[start + i]
                leave_chunk(head, postings, start, size_class)
                start = chunk
            postings[start + length] = posting
            table[2 * slot + 1] = list_value(start, length + 1)
    head[N_POSTINGS] += 1
    return True


@kernel
def remove(lists: Lists, slot: int, posting: np.uint64) -> None:
    """Take a posting out of the list at a slot; the last one of the list fills its hole."""
    head, table, postings = lists
    value = table[2 * slot + 1]
    if table[2 * slot] & LIST == np.uint64(0):
        if value == posting:
            table[2 * slot] |= LIST
            table[2 * slot + 1] = np.uint64(0)
            head[N_POSTINGS] -= 1
        return
    start, length = range_of(value)
    for i in range(start, start + length):
        if postings[i] == posting:
            postings[i] = postings[start + length - 1]
            table[2 * slot + 1] = list_value(start, length - 1)
            head[N_POSTINGS] -= 1
            return
