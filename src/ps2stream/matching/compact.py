"""Kernels that copy what can still match into an index of its own, a piece at a time.

Nothing is posted again: records move up by the words of the dead ones before them, so where the record of a
posting has gone is counted, not looked up. One pass goes over the records and two over the table: the
first finds out how much capacity the second one needs.

Between two pieces the index may be used and changed, as long as no list is divided: that would move postings
from where the copy has not been yet to where it has. The copy is that of the moment of the plan. What was
inserted later is not in it; what ended later lives in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Flags, Int64s, UInt32s, UInt64s
from ps2stream.kernels import kernel, prefetch, signed
from ps2stream.matching.layout import (
    FINER_LEVELS,
    LEVELS,
    N_ENDED,
    N_ENDS,
    N_LISTS,
    N_POOL,
    N_POSTINGS,
    N_RECORDS,
    N_WORDS,
    GI2Arrays,
)
from ps2stream.matching.lists import (
    LIST,
    SPLIT,
    chunk_size,
    class_for,
    find_list,
    list_value,
    next_key,
    next_slot,
    range_of,
)
from ps2stream.matching.posting import moved_to, record_of
from ps2stream.matching.records import (
    ENDED,
    GONE,
    REGION,
    SEQ,
    STATE,
    Records,
    is_live,
    next_record,
    seqs_at,
    views_of,
)
from ps2stream.model.space import Grid, cover

_WORD = 64
_AHEAD = 16
#: Records lie one behind the other, but where the next one begins is known only from this one.
_WORDS_AHEAD = 256


class Moves(NamedTuple):
    """Which words of the records die, a bit each, and how many do before each 64 of them.

    ``n_words`` and ``n_ends`` are those of the moment of the plan.
    """

    dead: UInt64s
    before: UInt32s
    n_words: int
    n_ends: int


@kernel
def _count_bits(word: np.uint64) -> int:
    word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return signed(word * np.uint64(0x0101010101010101) >> np.uint64(56))


@kernel
def _is_past(head: Int64s, records: Records, horizon: int) -> Flags:
    """Say of each end whether it lies up to the horizon.

    Records and ends are in different orders. To read the ends from the records, at random, took a third of
    the time of a plan; a byte for each stays in the cache.
    """
    is_past = np.empty(head[N_ENDS], np.bool_)
    for at in range(len(is_past)):
        is_past[at] = records.ends[2 * at + 1] <= horizon
    return is_past


@kernel
def _mark(dead: UInt64s, start: int, stop: int) -> None:
    """Mark words as dead, up to a whole block of them at once."""
    while start < stop:
        behind = min(stop, (start // _WORD + 1) * _WORD)
        marks = ~np.uint64(0) >> np.uint64(_WORD - (behind - start))
        dead[start // _WORD] |= marks << np.uint64(start % _WORD)
        start = behind


@kernel
def is_dead(moves: Moves, record: int) -> bool:
    """Say whether a record is not copied: it dies, or came after the plan."""
    if record >= moves.n_words:
        return True
    return bool(moves.dead[record // _WORD] >> np.uint64(record % _WORD) & np.uint64(1))


@kernel
def new_position(moves: Moves, record: int) -> int:
    """Return where a record that lives goes."""
    earlier = (np.uint64(1) << np.uint64(record % _WORD)) - np.uint64(1)
    n_dead = _count_bits(moves.dead[record // _WORD] & earlier)
    return record - signed(moves.before[record // _WORD]) - n_dead


@kernel
def plan_moves(arrays: GI2Arrays, horizon: int) -> tuple[Moves, int, int, int]:
    """Mark what dies; return the moves, and how many records, words and ends are left."""
    head = arrays.head
    records = views_of(arrays.records, arrays.ends)
    n_blocks = head[N_WORDS] // _WORD + 1
    moves = Moves(np.zeros(n_blocks, np.uint64), np.zeros(n_blocks, np.uint32), head[N_WORDS], head[N_ENDS])
    is_past, ints, words = _is_past(head, records, horizon), records.ints, records.words
    n_records = n_words = n_ends = record = 0
    for _ in range(head[N_RECORDS]):
        prefetch(words, record + _WORDS_AHEAD)
        behind = next_record(words, record)
        # Not in a function of its own: calls that count references of all these arrays took most of the time.
        state = words[record] & STATE
        if state == GONE or (state == ENDED and is_past[ints[record + SEQ]]):
            _mark(moves.dead, record, behind)
        else:
            n_records += 1
            n_words += behind - record
            n_ends += int(state == ENDED)
        record = behind
    n_dead = 0
    for block in range(n_blocks):
        moves.before[block] = n_dead
        n_dead += _count_bits(moves.dead[block])
    return moves, n_records, n_words, n_ends


@kernel
def count_lists(arrays: GI2Arrays, moves: Moves, key: np.uint64, n_slots: int) -> tuple[int, int, np.uint64]:
    """Count the lists that are left, and the capacity their postings take, in some slots from a key on.

    Returns (lists, capacity, key to go on with, 0 behind the last). It is known by its key where to go on:
    entries move from slot to slot.
    """
    table, postings = arrays.list_table, arrays.postings
    first = find_list(table, key)
    stop = min(first + n_slots, len(table) // 2)
    n_lists = n_pool = 0
    for slot in range(first, stop):
        _prefetch(table, postings, slot + _AHEAD)
        if table[2 * slot] == np.uint64(0):
            continue
        n = _n_alive(table, postings, slot, moves)
        n_lists += int(n > 0 or table[2 * slot] & SPLIT != np.uint64(0))
        n_pool += chunk_size(class_for(n)) if n > 1 else 0
    return n_lists, n_pool, next_key(table, stop)


@kernel
def _prefetch(table: UInt64s, postings: UInt64s, slot: int) -> None:
    if 2 * slot < len(table) and table[2 * slot] & LIST:
        prefetch(postings, range_of(table[2 * slot + 1])[0])


@kernel
def _n_alive(table: UInt64s, postings: UInt64s, slot: int, moves: Moves) -> int:
    value = table[2 * slot + 1]
    if table[2 * slot] & LIST == np.uint64(0):
        return int(not is_dead(moves, record_of(value)))
    start, length = range_of(value)
    n = 0
    for i in range(start, start + length):
        n += int(not is_dead(moves, record_of(postings[i])))
    return n


@kernel
def copy_records(
    old: GI2Arrays, new: GI2Arrays, grid: Grid, max_cells: int, moves: Moves, record: int, n: int
) -> int:
    """Copy those of ``n`` records that live; return where the next record lies.

    The others are taken off the counts of their levels.
    """
    records, copies, head = views_of(old.records, old.ends), views_of(new.records, new.ends), new.head
    for _ in range(n):
        prefetch(records.words, record + _WORDS_AHEAD)
        behind = next_record(records.words, record)
        if is_dead(moves, record):
            level = cover(grid, records.floats, record + REGION, max_cells, FINER_LEVELS).level
            head[LEVELS + level] -= 1
        else:
            to = head[N_WORDS]
            for word in range(record, behind):
                copies.ints[to + word - record] = records.ints[word]
            state = records.words[record] & STATE
            if state == ENDED and records.ints[record + SEQ] >= moves.n_ends:
                copies.words[to] &= ~STATE
                copies.ints[to + SEQ] = seqs_at(records, record)[0]
            elif state == ENDED:
                at = head[N_ENDS]
                copies.ends[2 * at], copies.ends[2 * at + 1] = seqs_at(records, record)
                copies.ints[to + SEQ] = at
                head[N_ENDS] += 1
            head[N_ENDED] += int(not is_live(copies, to))
            head[N_WORDS] += behind - record
            head[N_RECORDS] += 1
        record = behind
    return record


@kernel
def copy_lists(
    old: GI2Arrays, new: GI2Arrays, moves: Moves, key: np.uint64, n_slots: int, to: int
) -> tuple[np.uint64, int]:
    """Copy what lives of the lists in some slots from a key on, behind the slot ``to`` of the copy.

    Returns the key and the slot to go on with; a slot of -1 if the table is too small for them.
    """
    table, postings, head = old.list_table, old.postings, new.head
    first = find_list(table, key)
    stop = min(first + n_slots, len(table) // 2)
    for slot in range(first, stop):
        _prefetch(table, postings, slot + _AHEAD)
        stored, value = table[2 * slot], table[2 * slot + 1]
        if stored == np.uint64(0):
            continue
        n = _n_alive(table, postings, slot, moves)
        if n == 0 and stored & SPLIT == np.uint64(0):
            continue
        to = next_slot(new.list_table, stored, to)
        if to >= len(new.list_table) // 2 - 1:
            return key, -1
        start, length = range_of(value)
        if n == 0:
            value = np.uint64(0)
        elif stored & LIST == np.uint64(0):
            value = moved_to(value, new_position(moves, record_of(value)))
        else:
            at = head[N_POOL]
            for i in range(start, start + length):
                if not is_dead(moves, record_of(postings[i])):
                    value = moved_to(postings[i], new_position(moves, record_of(postings[i])))
                    if n > 1:
                        new.postings[at] = value
                        at += 1
            if n > 1:
                value = list_value(head[N_POOL], n)
                head[N_POOL] += chunk_size(class_for(n))
        new.list_table[2 * to] = stored | LIST if n != 1 else stored & ~LIST
        new.list_table[2 * to + 1] = value
        to += 1
        head[N_LISTS] += 1
        head[N_POSTINGS] += n
    return next_key(table, stop), to
