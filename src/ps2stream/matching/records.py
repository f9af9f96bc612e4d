"""A subscription as one record: whatever decides a match lies in one or two cache lines.

    words   0 header   1 seq   2..5 region   6.. terms, clause by clause, each clause's rarest first

The header says whether the subscription has ended and how many terms each clause has: in a byte each up to
seven clauses of up to 255 terms; for more (``LONG``) it has their number, and a word a clause
comes before the terms. The seq is where the subscription began. Once it has ended, the seqs of
its begin and its end lie in ``ends``, and the record says where: most live, and need no capacity for an end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.matching.layout import N_ENDS

SEQ, REGION, TERMS = 1, 2, 6

STATE = np.uint64(3)
LIVE, ENDED, GONE = np.uint64(0), np.uint64(1), np.uint64(2)
_LONG = np.uint64(4)
#: What a header has bytes for; more than that takes a word a clause.
SHORT_CLAUSES, SHORT_TERMS = 7, 255
_SHAPE = np.uint64(8)
_EVEN_BYTES, _ONES = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0001000100010001)


class Records(NamedTuple):
    """Three views of the records, and the seqs of what has ended, two words each."""

    ints: Int64s
    words: UInt64s
    floats: Float64s
    ends: Int64s


@kernel
def views_of(pool: Int64s, ends: Int64s) -> Records:
    return Records(pool, pool.view(np.uint64), pool.view(np.float64), ends)


@kernel
def n_terms_at(words: UInt64s, record: int, clause: int) -> int:
    """Return how many terms a clause has; 0 behind the last one."""
    header = words[record]
    if header & _LONG:
        n_clauses = signed(header >> _SHAPE)
        return signed(words[record + TERMS + clause]) if clause < n_clauses else 0
    return signed(header >> np.uint64(8 + 8 * clause) & np.uint64(255)) if clause < SHORT_CLAUSES else 0


@kernel
def terms_at(words: UInt64s, record: int) -> int:
    """Return the position of a record's first term."""
    header = words[record]
    return record + TERMS + (signed(header >> _SHAPE) if header & _LONG else 0)


@kernel
def next_record(words: UInt64s, record: int) -> int:
    """Return the position behind a record.

    Of a short one the bytes of its header are added up at once. Asked for clause by clause, in calls that
    count the references of the array, going over all records took four times as long.
    """
    header = words[record]
    if header & _LONG:
        n_clauses = signed(header >> _SHAPE)
        at = record + TERMS + n_clauses
        for clause in range(n_clauses):
            at += signed(words[record + TERMS + clause])
        return at
    sizes = header >> _SHAPE
    pairs = (sizes & _EVEN_BYTES) + (sizes >> _SHAPE & _EVEN_BYTES)
    return record + TERMS + signed(pairs * _ONES >> np.uint64(48))


@kernel
def is_gone(records: Records, record: int) -> bool:
    """Say whether another worker has taken the subscription over."""
    return bool(records.words[record] & STATE == GONE)


@kernel
def is_live(records: Records, record: int) -> bool:
    """Say whether nobody has ended the subscription, here or for good."""
    return bool(records.words[record] & STATE == LIVE)


@kernel
def seqs_at(records: Records, record: int) -> tuple[int, int]:
    """Return where a subscription begins and ends; it must not be gone."""
    seq = records.ints[record + SEQ]
    if records.words[record] & STATE == ENDED:
        return records.ends[2 * seq], records.ends[2 * seq + 1]
    return seq, FOREVER


@kernel
def set_end(head: Int64s, records: Records, record: int, seq_to: int) -> None:
    """End a subscription that is live or ends later; ``ends`` has capacity."""
    if records.words[record] & STATE == LIVE:
        at = head[N_ENDS]
        head[N_ENDS] = at + 1
        records.ends[2 * at] = records.ints[record + SEQ]
        records.ints[record + SEQ] = at
        records.words[record] |= ENDED
    records.ends[2 * records.ints[record + SEQ] + 1] = seq_to


@kernel
def set_gone(records: Records, record: int) -> None:
    records.words[record] = records.words[record] & ~STATE | GONE


@kernel
def write_record(records: Records, record: int, subs: Subscriptions, row: int) -> int:
    """Write a live subscription; return the position behind it."""
    first, last = subs.clause_offsets[row], subs.clause_offsets[row + 1]
    longest = 0
    for clause in range(first, last):
        longest = max(longest, subs.term_offsets[clause + 1] - subs.term_offsets[clause])
    records.ints[record + SEQ] = subs.seq_from[row]
    for i in range(4):
        records.floats[record + REGION + i] = subs.bounds[4 * row + i]
    at = record + TERMS
    if last - first > SHORT_CLAUSES or longest > SHORT_TERMS:
        records.words[record] = np.uint64(last - first) << _SHAPE | _LONG
        for clause in range(first, last):
            records.ints[at] = subs.term_offsets[clause + 1] - subs.term_offsets[clause]
            at += 1
    else:
        header = np.uint64(0)
        for clause in range(first, last):
            n_terms = subs.term_offsets[clause + 1] - subs.term_offsets[clause]
            header |= np.uint64(n_terms) << np.uint64(8 + 8 * (clause - first))
        records.words[record] = header
    for term in range(subs.term_offsets[first], subs.term_offsets[last]):
        records.words[at] = subs.terms[term]
        at += 1
    return at


@kernel
def needed_for(subs: Subscriptions, rows: Int64s) -> tuple[int, int]:
    """Return how many words and how many ends some subscriptions take."""
    n_words = TERMS * len(rows)
    n_ends = 0
    for row in rows:
        first, last = subs.clause_offsets[row], subs.clause_offsets[row + 1]
        n_terms = subs.term_offsets[last] - subs.term_offsets[first]
        # More words than it takes where it has many terms and none of its clauses is long.
        is_long = last - first > SHORT_CLAUSES or n_terms > SHORT_TERMS
        n_words += n_terms + (last - first if is_long else 0)
        n_ends += int(subs.seq_to[row] != FOREVER)
    return n_words, n_ends


@kernel
def size_at(words: UInt64s, record: int) -> int:
    """Count the bytes of a subscription when it is moved: seqs, region, clauses and terms (S_g)."""
    size = 48
    clause = 0
    while True:
        n_terms = n_terms_at(words, record, clause)
        if n_terms == 0:
            return size
        size += 4 + 8 * n_terms
        clause += 1


@kernel
def n_words_of(records: Records, chosen: Int64s) -> int:
    """Count the words of records; there are at least as many as terms, or as clauses."""
    n = 0
    for record in chosen:
        n += next_record(records.words, record) - record
    return n


@kernel
def unpack(records: Records, chosen: Int64s, out: Subscriptions) -> int:
    """Write subscriptions in columns, which have capacity for them; return how many clauses they have."""
    n_clauses = n_terms = 0
    for row in range(len(chosen)):
        record = chosen[row]
        for i in range(4):
            out.bounds[4 * row + i] = records.floats[record + REGION + i]
        out.seq_from[row], out.seq_to[row] = seqs_at(records, record)
        at = terms_at(records.words, record)
        clause = 0
        while True:
            n_more = n_terms_at(records.words, record, clause)
            if n_more == 0:
                break
            for _ in range(n_more):
                out.terms[n_terms] = records.words[at]
                n_terms += 1
                at += 1
            clause += 1
            n_clauses += 1
            out.term_offsets[n_clauses] = n_terms
        out.clause_offsets[row + 1] = n_clauses
    return n_clauses
