"""The check of updates as a kernel: which rows are valid, and what each asks for.

It says no more than yes or no. Why a row is rejected is told in :mod:`ps2stream.model.events`, which has all
the time it needs: few are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Flags, Float64s, Int64s, UInt8s
from ps2stream.arrow import Strings, is_valid
from ps2stream.kernels import kernel
from ps2stream.model.limits import MAX_EXPRESSION_BYTES, MAX_ID_BYTES
from ps2stream.model.schemas import SUBSCRIBE, UNSUBSCRIBE
from ps2stream.model.space import MAX_LAT, MAX_LON
from ps2stream.model.utf8 import is_utf8

_SUBSCRIBE = np.frombuffer(SUBSCRIBE.encode(), np.uint8)
_UNSUBSCRIBE = np.frombuffer(UNSUBSCRIBE.encode(), np.uint8)


class UpdateColumns(NamedTuple):
    """Updates as they lie in memory; a corner that is null is nan."""

    ops: Strings
    ids: Strings
    expressions: Strings
    west: Float64s
    south: Float64s
    east: Float64s
    north: Float64s


class Checked(NamedTuple):
    """What a check found; arrays have a row for each update, and one more."""

    is_bad: Flags
    is_subscribe: Flags
    subscribe_bits: UInt8s  # the same in the layout of Arrow
    begins: Int64s  # the rows that subscribe
    ends: Int64s  # where their expressions end, after where the first one begins


def room_for(n: int) -> Checked:
    """Return capacity for the check of some updates."""
    flags, numbers = np.empty((2, n + 1), np.bool_), np.empty((2, n + 1), np.int64)
    return Checked(flags[0], flags[1], np.zeros(n // 8 + 1, np.uint8), numbers[0], numbers[1])


@kernel
def check(updates: UpdateColumns, found: Checked) -> tuple[int, int, int, int]:
    """Check all rows; return how many are bad and how many subscribe.

    Return also how many of the others have an expression, and how many bytes lie between those of the rest:
    Arrow leaves open what is under a null.
    """
    ops, ids, expressions = updates.ops, updates.ids, updates.expressions
    n_bad = n_begins = n_idle = n_between = 0
    n = len(ops.offsets) - 1
    found.ends[0] = expressions.offsets[0] if n else 0
    for row in range(n):
        begins, ends = _is(ops, row, _SUBSCRIBE), _is(ops, row, _UNSUBSCRIBE)
        is_good = (begins or ends) and _is_string(ids, row, 1, MAX_ID_BYTES)
        if begins:
            is_good &= _is_string(expressions, row, 0, MAX_EXPRESSION_BYTES) and _is_region(updates, row)
            found.begins[n_begins] = row
            found.ends[n_begins + 1] = expressions.offsets[row + 1]
            found.subscribe_bits[row >> 3] |= np.uint8(1 << (row & 7))
            n_begins += 1
        else:
            n_idle += int(is_valid(expressions.bits, expressions.first_bit + row))
            n_between += expressions.offsets[row + 1] - expressions.offsets[row]
        found.is_bad[row], found.is_subscribe[row] = not is_good, begins
        n_bad += int(not is_good)
    return n_bad, n_begins, n_idle, n_between


@kernel
def _is(ops: Strings, row: int, wanted: UInt8s) -> bool:
    start = ops.offsets[row]
    if ops.offsets[row + 1] - start != len(wanted) or not is_valid(ops.bits, ops.first_bit + row):
        return False
    for i in range(len(wanted)):
        if ops.data[start + i] != wanted[i]:
            return False
    return True


@kernel
def _is_string(strings: Strings, row: int, least: int, most: int) -> bool:
    """Say whether a string is there, neither too short nor too long, and UTF-8."""
    start, stop = strings.offsets[row], strings.offsets[row + 1]
    if not least <= stop - start <= most or not is_valid(strings.bits, strings.first_bit + row):
        return False
    return is_utf8(strings.data, start, stop)


@kernel
def _is_region(updates: UpdateColumns, row: int) -> bool:
    # Written so that NaN, for which every comparison is false, is none.
    west, south, east, north = updates.west[row], updates.south[row], updates.east[row], updates.north[row]
    in_world = abs(west) <= MAX_LON and abs(east) <= MAX_LON and abs(south) <= MAX_LAT and north <= MAX_LAT
    return bool(in_world and south <= north)
