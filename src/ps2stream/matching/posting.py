"""A posting: one word that rejects most publications without leaving its list.

    bits 63..32  position of the record
    bits 31..24  fingerprint of the clause's second term, 0 for none
    bits 23..0   bounds within the cell: min x, 63 - max x, min y, 63 - max y, in 1/64 of its sides

Maxima are kept as what is left to the far side, so that one subtraction for each pair of fields
compares a point with all four bounds at once.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s, UInt64s
from ps2stream.kernels import kernel, signed
from ps2stream.model.space import Grid, column_of, row_of

#: A posting tells positions within a cell apart by this many steps a side.
STEPS = 64
#: Words of the filter of a publication's fingerprints: a bit for each of 256.
FILTER_WORDS = 4

_FAR = STEPS - 1
_REF_SHIFT = np.uint64(32)
_PRINT_SHIFT = np.uint64(24)
_BYTE = np.uint64(255)
_ONE_FIELD = np.uint64(6)
#: Every other field of the bounds, and the bit above each of them.
_FIELDS = np.uint64(0x03F03F)
_GUARDS = np.uint64(0x040040)


@kernel
def quantise(position: float, level: int, cell: int) -> int:
    """Return where in a cell of a level a grid position lies, in steps of its side.

    Monotone in the position, so comparing quantised bounds never rejects a point inside.
    """
    side = float(1 << level)
    part = int((position - cell * side) / side * STEPS)
    return min(max(part, 0), _FAR)


@kernel
def _packed(min_x: int, max_x: int, min_y: int, max_y: int) -> np.uint64:
    return np.uint64(min_x | (_FAR - max_x) << 6 | min_y << 12 | (_FAR - max_y) << 18)


@kernel
def point_in_cell(x: float, y: float, level: int, column: int, row: int) -> np.uint64:
    """Pack a point within a cell as :func:`admits` compares it."""
    at_x, at_y = quantise(x, level, column), quantise(y, level, row)
    return _packed(at_x, at_x, at_y, at_y)


@kernel
def bounds_in_cell(
    bounds: Float64s, at: int, grid: Grid, level: int, column: int, row: int
) -> tuple[int, int, int, int]:
    """Return the steps between which the region at ``bounds[at]`` covers a cell: x from, to, y from, to."""
    min_x, max_x, min_y, max_y = 0, _FAR, 0, _FAR
    if bounds[at] <= bounds[at + 2]:  # one that crosses the antimeridian keeps the full width
        if column_of(grid, bounds[at]) >> level == column:
            min_x = quantise((bounds[at] - grid.min_lon) * grid.columns_per_degree, level, column)
        if column_of(grid, bounds[at + 2]) >> level == column:
            max_x = quantise((bounds[at + 2] - grid.min_lon) * grid.columns_per_degree, level, column)
    if row_of(grid, bounds[at + 1]) >> level == row:
        min_y = quantise((bounds[at + 1] - grid.min_lat) * grid.rows_per_degree, level, row)
    if row_of(grid, bounds[at + 3]) >> level == row:
        max_y = quantise((bounds[at + 3] - grid.min_lat) * grid.rows_per_degree, level, row)
    return min_x, max_x, min_y, max_y


@kernel
def posting_of(record: int, fingerprint: np.uint64, steps: tuple[int, int, int, int]) -> np.uint64:
    """Build a posting; ``steps`` are those of :func:`bounds_in_cell`."""
    word = np.uint64(record) << _REF_SHIFT | fingerprint << _PRINT_SHIFT
    return word | _packed(steps[0], steps[1], steps[2], steps[3])


@kernel
def record_of(posting: np.uint64) -> int:
    """Return the position of the record that a posting stands for."""
    return signed(posting >> _REF_SHIFT)


@kernel
def fingerprint_in(posting: np.uint64) -> np.uint64:
    """Return the fingerprint that a posting holds, 0 for none."""
    fingerprint: np.uint64 = posting >> _PRINT_SHIFT & _BYTE
    return fingerprint


@kernel
def moved_to(posting: np.uint64, record: int) -> np.uint64:
    """Return the same posting of a record that lies elsewhere."""
    return np.uint64(record) << _REF_SHIFT | posting & ~(~np.uint64(0) << _REF_SHIFT)


@kernel
def fingerprint_of(term: np.uint64) -> np.uint64:
    """Return eight bits of a term that are not all 0."""
    fingerprint = term >> np.uint64(56)
    return fingerprint if fingerprint != np.uint64(0) else np.uint64(1)


@kernel
def fill_filter(terms: UInt64s, start: int, stop: int, bits: UInt64s, at: int) -> None:
    """Set the bit of every term's fingerprint in ``bits[at : at + FILTER_WORDS]``, and that of none."""
    for i in range(FILTER_WORDS):
        bits[at + i] = np.uint64(0)
    bits[at] = np.uint64(1)
    for i in range(start, stop):
        fingerprint = fingerprint_of(terms[i])
        bits[at + signed(fingerprint >> np.uint64(6))] |= np.uint64(1) << (fingerprint & np.uint64(63))


@kernel
def admits(posting: np.uint64, point: np.uint64, bits: UInt64s, at: int) -> np.uint64:
    """Return 1 if a publication may match, 0 if it cannot; no branch, for nobody could predict it."""
    low = ((point & _FIELDS) | _GUARDS) - (posting & _FIELDS)
    high = ((point >> _ONE_FIELD & _FIELDS) | _GUARDS) - (posting >> _ONE_FIELD & _FIELDS)
    both = low & high
    fingerprint = fingerprint_in(posting)
    bit = bits[at + signed(fingerprint >> np.uint64(6))] >> (fingerprint & np.uint64(63))
    passes: np.uint64 = both >> np.uint64(6) & both >> np.uint64(18) & bit & np.uint64(1)
    return passes
