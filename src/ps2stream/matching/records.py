"""A subscription as one record: whatever decides a match lies in one or two cache lines.

    words   0..3 region   4 seq_from   5 seq_to   6.. clauses: a head, then the terms; rarest first

A clause's head packs how many words it lies behind the record's start (32 bits), its number
of terms (31 bits) and whether it is the last one. Records start at multiples of four words, so that
``slot = position / 4`` addresses the region for :func:`contains` and :func:`cover`. One array a field
instead, for records and for the table of lists, was two to three times slower (docs/performance.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.matching.layout import Subscriptions

SLOT_WORDS = 4
SEQ_FROM, SEQ_TO, CLAUSES = 4, 5, 6
#: The most words of a record that are neither term nor clause head.
OVERHEAD_WORDS = CLAUSES + SLOT_WORDS - 1


class Records(NamedTuple):
    """Three views of the same memory."""

    ints: Int64s
    words: UInt64s
    floats: Float64s


@kernel
def views_of(pool: Int64s) -> Records:
    return Records(pool, pool.view(np.uint64), pool.view(np.float64))


@kernel
def n_terms_at(records: Records, clause: int) -> int:
    """Return how many terms follow the head of a clause."""
    return signed((records.ints[clause] & 0xFFFFFFFF) >> 1)


@kernel
def is_last(records: Records, clause: int) -> bool:
    return bool(records.ints[clause] & 1)


@kernel
def start_of(records: Records, clause: int) -> int:
    """Return the position of the record that a clause belongs to."""
    return signed(clause - (records.ints[clause] >> 32))


@kernel
def end_of(records: Records, slot: int) -> int:
    """Return the slot that follows a record."""
    clause = SLOT_WORDS * slot + CLAUSES
    while not is_last(records, clause):
        clause += 1 + n_terms_at(records, clause)
    return (clause + n_terms_at(records, clause)) // SLOT_WORDS + 1


@kernel
def pack(records: Records, slot: int, subs: Subscriptions, row: int) -> int:
    """Write a subscription; return the slot behind it."""
    start = SLOT_WORDS * slot
    for i in range(4):
        records.floats[start + i] = subs.bounds[4 * row + i]
    records.ints[start + SEQ_FROM] = subs.seq_from[row]
    records.ints[start + SEQ_TO] = subs.seq_to[row]
    at = start + CLAUSES
    last = subs.clause_offsets[row + 1] - 1
    for clause in range(subs.clause_offsets[row], last + 1):
        first, stop = subs.term_offsets[clause], subs.term_offsets[clause + 1]
        records.ints[at] = (at - start) << 32 | (stop - first) << 1 | int(clause == last)
        for term in range(first, stop):
            at += 1
            records.words[at] = subs.terms[term]
        at += 1
    return (at - 1) // SLOT_WORDS + 1


@kernel
def size_at(records: Records, slot: int) -> int:
    """Count the bytes of a subscription when it is moved: seqs, region, clauses and terms (S_g)."""
    size = 48
    clause = SLOT_WORDS * slot + CLAUSES
    while True:
        n_terms = n_terms_at(records, clause)
        size += 4 + 8 * n_terms
        if is_last(records, clause):
            return size
        clause += 1 + n_terms


@kernel
def slots_after(records: Records, n_subs: int, horizon: int) -> Int64s:
    """List the slots of the subscriptions that end after ``horizon``."""
    slots = np.empty(n_subs, np.int64)
    n = slot = 0
    for _ in range(n_subs):
        if records.ints[SLOT_WORDS * slot + SEQ_TO] > horizon:
            slots[n] = slot
            n += 1
        slot = end_of(records, slot)
    return slots[:n]


@kernel
def n_words_of(records: Records, slots: Int64s) -> int:
    """Count the words of records; every clause and every term of theirs takes one."""
    n = 0
    for i in range(len(slots)):
        n += SLOT_WORDS * (end_of(records, slots[i]) - slots[i])
    return n


@kernel
def unpack(records: Records, slots: Int64s, out: Subscriptions) -> int:
    """Write subscriptions in columns, which have room for them; return how many clauses they have."""
    n_clauses = n_terms = 0
    for n_rows in range(len(slots)):
        start = SLOT_WORDS * slots[n_rows]
        for i in range(4):
            out.bounds[4 * n_rows + i] = records.floats[start + i]
        out.seq_from[n_rows] = records.ints[start + SEQ_FROM]
        out.seq_to[n_rows] = records.ints[start + SEQ_TO]
        clause = start + CLAUSES
        while True:
            for i in range(n_terms_at(records, clause)):
                out.terms[n_terms] = records.words[clause + 1 + i]
                n_terms += 1
            n_clauses += 1
            out.term_offsets[n_clauses] = n_terms
            if is_last(records, clause):
                break
            clause += 1 + n_terms_at(records, clause)
        out.clause_offsets[n_rows + 1] = n_clauses
    return n_clauses
