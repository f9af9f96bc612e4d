"""Kernels that cut texts of any script: decode UTF-8, normalise, fold and hash in one pass."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Int64s, Ragged, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.text.characters import (
    ANY,
    CLOSED,
    CODE,
    FOLLOWS,
    HARD,
    KIND,
    LEADS,
    MARK,
    N_CODE_POINTS,
    STRING,
    WORD,
    Characters,
    pair_slot,
)
from ps2stream.text.combining_marks import MAX_MARKS
from ps2stream.text.hashing import Bytes, xxh64
from ps2stream.text.stop_words import is_stopped

#: No character becomes more than this many times its bytes: one of Arabic, of 3 bytes, becomes 18 letters.
GROWTH = 12
_NO_BASE = 0


@kernel
def _decode(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Read a character that is not ASCII; return its code point and bytes, 0 bytes for what is no UTF-8."""
    lead = signed(data[at])
    n_bytes = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or at + n_bytes > stop:
        return 0, 0
    second = signed(data[at + 1]) ^ 0x80
    if n_bytes == 2:
        return ((lead & 0x1F) << 6 | second, n_bytes) if second < 0x40 else (0, 0)
    third = signed(data[at + 2]) ^ 0x80
    if n_bytes == 3:
        code = (lead & 0x0F) << 12 | second << 6 | third
        # Not longer than need be, and no half of a surrogate pair.
        is_fine = (second | third) < 0x40 and code >= 0x800 and not 0xD800 <= code < 0xE000
        return (code, n_bytes) if is_fine else (0, 0)
    fourth = signed(data[at + 3]) ^ 0x80
    code = (lead & 0x07) << 18 | second << 12 | third << 6 | fourth
    is_fine = (second | third | fourth) < 0x40 and 0x10000 <= code < N_CODE_POINTS
    return (code, n_bytes) if is_fine else (0, 0)


@kernel
def _append(code: int, term: Bytes, n: int) -> int:
    """Write a character as UTF-8 behind the first ``n`` bytes of a term; return how many there are then."""
    if code < 0x80:
        term[n] = code
        return n + 1
    if code < 0x800:
        term[n] = 0xC0 | code >> 6
        term[n + 1] = 0x80 | code & 0x3F
        return n + 2
    if code < 0x10000:
        term[n] = 0xE0 | code >> 12
        term[n + 1] = 0x80 | code >> 6 & 0x3F
        term[n + 2] = 0x80 | code & 0x3F
        return n + 3
    term[n] = 0xF0 | code >> 18
    term[n + 1] = 0x80 | code >> 12 & 0x3F
    term[n + 2] = 0x80 | code >> 6 & 0x3F
    term[n + 3] = 0x80 | code & 0x3F
    return n + 4


@kernel
def _find_pair(pairs: UInt64s, first: int, second: int) -> int:
    """Return the slot of a pair in its table, or a free one."""
    key = np.uint64(first << LEADS | second)
    slot = pair_slot(first, second, len(pairs))
    while pairs[slot] != np.uint64(0) and pairs[slot] != key:
        slot = (slot + 1) & (len(pairs) - 1)
    return slot


@kernel
def cut_non_ascii(
    data: Bytes, offsets: Int64s, rows: Int64s, characters: Characters, stops: UInt64s
) -> tuple[Ragged, Int64s]:
    """Hash the terms of some rows; leave the hard ones empty and say which of the rows they are.

    One long function, with one branch where a term ends: handing arrays on to another one with every
    character or term took as long as all the rest, since numba counts their references each time.
    """
    n_bytes = longest = 0
    for row in rows:
        n_bytes += offsets[row + 1] - offsets[row]
        longest = max(longest, offsets[row + 1] - offsets[row])
    term = np.empty(GROWTH * longest, dtype=np.uint8)
    # No character has more gaps than bytes, and a term ends with a gap or with its row.
    hashes = np.empty(n_bytes + len(rows) + 1, dtype=np.uint64)
    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    hard = np.empty(len(rows), dtype=np.int64)
    n_hard = end = 0
    actions, strings, string_offsets, pairs, composites = characters
    for i in range(len(rows)):
        first = end
        at, stop = offsets[rows[i]], offsets[rows[i] + 1]
        part = last_part = 0  # what is still to come of a string
        n = before = 0  # bytes of the term so far, and without its last character
        # Of marks: how many in a row, the class of the last one, and of the last one that was not composed.
        n_marks = mark = rank = 0
        base, leads, closed = _NO_BASE, 0, False
        is_hard = False
        has_ended = False
        while not has_ended:
            code = action = 0
            if part < last_part:
                action = signed(strings[part])
                part += 1
            elif at == stop:
                has_ended = True
            else:
                code, size = signed(data[at]), 1
                if code >= 0x80:
                    code, size = _decode(data, at, stop)
                action = signed(actions[code])
                if size == 0 or action >> KIND == HARD or action >> FOLLOWS & leads:
                    is_hard = True
                    break
                if action >> KIND == MARK:
                    at += size
                    # Marks are composed in the order of their classes, and of one class only the first.
                    # What follows on thirty does not compose: the road through Python parts it from them.
                    n_marks += 1
                    if closed or action & CODE < mark or n_marks > MAX_MARKS:
                        is_hard = True
                        break
                    mark = action & CODE
                    slot = _find_pair(pairs, base, code)
                    if pairs[slot] == np.uint64(0) or mark == rank:
                        rank = mark
                    else:
                        base = signed(composites[slot])
                        action = signed(actions[base])
                        if action >> KIND != WORD:
                            is_hard = True
                            break
                        n = _append(action & CODE, term, before)
                    leads = ANY
                    continue
                mark = n_marks = 0
                if rank > 0:  # a mark that was not composed parts words: read this character again after it
                    action = leads = rank = 0
                else:
                    at += size
                    leads = action >> LEADS & ANY
            closed = action & CLOSED != 0
            if action >> KIND == WORD:
                base, before = code, n
                n = _append(action & CODE, term, n)
                continue
            base = _NO_BASE
            if action >> KIND == STRING:
                part, last_part = string_offsets[action & CODE], string_offsets[(action & CODE) + 1]
            elif n > 0:
                hashes[end] = xxh64(term, 0, n)
                end += not is_stopped(hashes[end], stops)
                n = 0
        if is_hard:
            end = first
            hard[n_hard] = i
            n_hard += 1
        ends[i + 1] = end
    return Ragged(hashes[:end], ends), hard[:n_hard]
