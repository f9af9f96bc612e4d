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
from ps2stream.model.utf8 import behind_ascii, is_utf8

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


def capacity_for(n: int) -> Checked:
    """Return capacity for the check of some updates."""
    flags, numbers = np.empty((2, n + 1), np.bool_), np.empty((2, n + 1), np.int64)
    return Checked(flags[0], flags[1], np.zeros(n // 8 + 1, np.uint8), numbers[0], numbers[1])


@kernel
def check(updates: UpdateColumns, found: Checked) -> tuple[int, int, int, int]:
    """Check all rows; return how many are bad and how many subscribe.

    Return also how many of the others have an expression, and how many bytes lie between those of the rest:
    Arrow leaves open what is under a null.
    Column by column: a call for each row counts the references of all that it is given, which took most of
    the time.
    """
    expressions = updates.expressions
    offsets, bits, first_bit = expressions.offsets, expressions.bits, expressions.first_bit
    is_bad, is_subscribe, ends = found.is_bad, found.is_subscribe, found.ends
    n_bad = n_begins = n_idle = n_between = 0
    n = len(updates.ops.offsets) - 1
    _check_ops(updates.ops, is_bad, is_subscribe)
    _check_regions(updates, is_subscribe, is_bad)
    _check_strings(expressions, is_subscribe, 0, MAX_EXPRESSION_BYTES, is_bad)
    found.ends[0] = offsets[0]
    for row in range(n):
        if is_subscribe[row]:
            found.begins[n_begins] = row
            n_begins += 1
            ends[n_begins] = offsets[row + 1]
            found.subscribe_bits[row >> 3] |= np.uint8(1 << (row & 7))
        else:
            n_idle += int(is_valid(bits, first_bit + row))
            n_between += offsets[row + 1] - offsets[row]
    everything = np.ones(n, np.bool_)
    _check_strings(updates.ids, everything, 1, MAX_ID_BYTES, is_bad)
    for row in range(n):
        n_bad += int(is_bad[row])
    return n_bad, n_begins, n_idle, n_between


@kernel
def _check_ops(ops: Strings, is_bad: Flags, is_subscribe: Flags) -> None:
    data, offsets, bits, first_bit = ops
    for row in range(len(offsets) - 1):
        start, n_bytes = offsets[row], offsets[row + 1] - offsets[row]
        begins = n_bytes == len(_SUBSCRIBE)
        is_good = (begins or n_bytes == len(_UNSUBSCRIBE)) and is_valid(bits, first_bit + row)
        if is_good:
            for i in range(n_bytes):
                is_good &= data[start + i] == (_SUBSCRIBE[i] if begins else _UNSUBSCRIBE[i])
        is_bad[row], is_subscribe[row] = not is_good, is_good and begins


@kernel
def _check_strings(strings: Strings, is_asked: Flags, least: int, most: int, is_bad: Flags) -> None:
    """Mark the rows that are asked for and are null, too short, too long or no UTF-8."""
    data, offsets, bits, first_bit = strings
    for row in range(len(offsets) - 1):
        if is_asked[row]:
            n_bytes = offsets[row + 1] - offsets[row]
            is_bad[row] |= not (least <= n_bytes <= most and is_valid(bits, first_bit + row))
    first, last = offsets[0], offsets[-1]
    if behind_ascii(data, first, last) == last:
        return
    for row in range(len(offsets) - 1):
        if is_asked[row] and not is_bad[row]:
            is_bad[row] = not is_utf8(data, offsets[row], offsets[row + 1])


@kernel
def _check_regions(updates: UpdateColumns, is_asked: Flags, is_bad: Flags) -> None:
    west, south, east, north = updates.west, updates.south, updates.east, updates.north
    for row in range(len(west)):
        if is_asked[row]:
            # Written so that NaN, for which every comparison is false, is none.
            in_world = abs(west[row]) <= MAX_LON and abs(east[row]) <= MAX_LON
            in_world &= abs(south[row]) <= MAX_LAT and abs(north[row]) <= MAX_LAT
            is_bad[row] |= not (in_world and south[row] <= north[row])
