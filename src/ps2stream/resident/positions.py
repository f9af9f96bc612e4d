"""Positions: one order for updates, adjustments and publications.

The order of updates is that of their topic, which has one partition. A seq follows from the offset that a
broker gave to a record and from the row in it, so whoever sent the record knows it with the acknowledgement:

    seq = (offset + 1) << 18 | row << 1             of an update
    seq = (offset + 1) << 18 | 1 << 17 | n << 1     of the n-th adjustment after the updates of that record

Seqs are even. A publication stands behind everything with a lower seq, at an odd position; publications may
share one. So ``seq_from < position < seq_to`` says what it sees, as for any other order of events. With 2^45
records there would be no numbers left: at a million a second, after a year.

Events may also come with an order of their own (a replay). Then seqs are what they say, and how far updates
are complete is said with them.
"""

from __future__ import annotations

from ps2stream.model.schemas import AFTER_ALL_SEQS

_BLOCK_BITS = 18
_ADJUSTMENTS = 1 << 17
#: Before the first update.
NOTHING_YET = 0


def update_seq(offset: int, row: int = 0) -> int:
    """Return the seq of an update."""
    return (offset + 1) << _BLOCK_BITS | row << 1


def last_update_seq(offset: int) -> int:
    """Return the last seq that an update of a record could have."""
    return (offset + 1) << _BLOCK_BITS | (_ADJUSTMENTS - 2)


def offset_of(seq: int) -> int:
    """Return the offset of the record that an update was in."""
    return (seq >> _BLOCK_BITS) - 1


def adjustment_seq(upto: int) -> int:
    """Return the seq of an adjustment that comes next, when all up to some seq is decided."""
    block = upto >> _BLOCK_BITS << _BLOCK_BITS
    return max(upto + 2, block | _ADJUSTMENTS)


def position_after(seq: int) -> int:
    """Return the position right behind a seq."""
    return min(seq, AFTER_ALL_SEQS - 1) + 1


def position_as_of(seq: int) -> int:
    """Return the position that sees an update and none after it; a position is its own."""
    return seq | 1
