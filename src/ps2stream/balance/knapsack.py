"""The dynamic program of Minimum Cost Migration (Sec. V-A, Phase II, DP).

A(i, j) is the largest load of any of the first i cells that together take j bytes or less. The answer is
the smallest j with A(n, j) >= target. Only one row of A is kept; which cells make it up is read back from
one bit per (cell, column). With P for the bytes of a first solution, that is n * P additions and n * P bits.
P may be in the millions, so where it is above :data:`MAX_COLUMNS`, or the bits are above
:data:`MAX_TABLE_BYTES`, bytes are counted in units of several. Loads stay as they are: an answer may cost
some units more than the best one, but it never falls short of the target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt8s
from ps2stream.kernels import kernel

#: The most columns of A. Heavy-tailed cells, 1,700 of 20,000 to move: what is found in units is within 0.05 %
#: of a lower bound for the best.
MAX_COLUMNS = 65_536

#: The most memory for the bits. It bounds the time, too: 2**31 entries of A take about two seconds. More
#: than 32,768 cells get fewer columns, that is, a coarser unit.
MAX_TABLE_BYTES = 256 << 20


class Packing(NamedTuple):
    """Rows of cells in ascending order, and how many bytes were counted as one (1: exact)."""

    rows: Int64s
    unit: int


class _Choice(NamedTuple):
    """What A is about: the cells to choose from, their sizes in units, and those that move in any case."""

    rows: Int64s
    weights: Int64s
    settled: Int64s
    n_columns: int
    unit: int


def cheapest_cells(
    loads: Float64s,
    sizes: Int64s,
    target: float,
    start: Int64s,
    *,
    max_columns: int = MAX_COLUMNS,
    max_table_bytes: int = MAX_TABLE_BYTES,
) -> Packing:
    """Return the cells of fewest bytes that reach the target, or ``start`` where none are cheaper than these.

    ``start`` is a solution, in ascending order: its bytes bound the columns (the paper's P).
    """
    cost = int(sizes[start].sum())
    if cost == 0 or loads[start].sum() < target:
        return Packing(start, 1)
    # A cell that is larger than all of a solution is in no better one.
    rows = np.flatnonzero((loads > 0) & (sizes <= cost))
    most = min(max_columns, 8 * (max_table_bytes // len(rows)) - 1)
    choice = _choice_of(sizes, rows, start, max(most, 1))
    found = _solve(loads, choice, target)
    # Both checks are about rounding, of sizes to units and of sums of loads.
    if int(sizes[found].sum()) < cost and loads[found].sum() >= target:
        return Packing(found, choice.unit)
    return Packing(start, choice.unit)


def _choice_of(sizes: Int64s, rows: Int64s, start: Int64s, max_columns: int) -> _Choice:
    """Count sizes in the smallest unit that lets ``start`` fit into the columns.

    They are rounded to the nearest; rounding all of them up or down lost three to four times as much among
    20,000 cells. A cell that rounds to nothing would be taken for free, however many there are of them, so
    it stays as ``start`` has it. Only cells that have no bytes at all are free indeed.
    """
    unit, n_columns = 1, int(sizes[start].sum())
    while n_columns > max_columns:
        unit = -(-unit * n_columns // max_columns)
        n_columns = int(_in_units(sizes[start], unit).sum())
    weights = _in_units(sizes[rows], unit)
    is_open = (weights > 0) & (weights <= n_columns)
    settled = np.union1d(start[_in_units(sizes[start], unit) == 0], rows[sizes[rows] == 0])
    return _Choice(rows[is_open], weights[is_open], settled, n_columns, unit)


def _in_units(sizes: Int64s, unit: int) -> Int64s:
    return (sizes + unit // 2) // unit


def _solve(loads: Float64s, choice: _Choice, target: float) -> Int64s:
    """Return the cells of the first column whose load reaches the target; no cells where none does."""
    bits = np.empty((len(choice.rows), choice.n_columns // 8 + 1), np.uint8)
    first_row = np.full(choice.n_columns + 1, loads[choice.settled].sum())
    last_row = fill(loads[choice.rows], choice.weights, first_row, bits)
    column = int(np.searchsorted(last_row, target))
    if column > choice.n_columns:
        return choice.rows[:0]
    is_taken = np.zeros(len(choice.rows), np.bool_)
    trace(choice.weights, bits, column, is_taken)
    return np.sort(np.concatenate([choice.settled, choice.rows[is_taken]]))


@kernel
def fill(loads: Float64s, weights: Int64s, first_row: Float64s, bits: UInt8s) -> Float64s:
    """Compute A row by row, mark where a cell is taken, and return the last row.

    ``first_row`` is A(0, j) and is overwritten. No weight is larger than the last column. The bit of a
    column is in byte ``column % stride`` of its row: neighbours in neighbouring bytes make the packing
    of bits a loop over bytes, which the compiler does 16 or more at a time (0.6 ns an entry, not 2).
    """
    row, other = first_row, np.empty_like(first_row)
    n_columns, stride = len(row), bits.shape[1]
    is_taken = np.zeros(8 * stride, np.uint8)
    for cell in range(len(weights)):
        load, weight = loads[cell], weights[cell]
        # The paper skips a cell where j <= S_g. There it would be lost exactly where it fills the budget
        # to the last byte: a single cell could not be chosen with a budget of its own size.
        other[:weight] = row[:weight]
        is_taken[:weight] = 0
        without, rest = row[weight:], row[: n_columns - weight]
        result, taken = other[weight:], is_taken[weight:n_columns]
        for column in range(len(without)):
            with_cell = rest[column] + load
            taken[column] = with_cell > without[column]
            result[column] = max(with_cell, without[column])
        packed = bits[cell]
        packed[:] = is_taken[:stride]
        for bit in range(1, 8):
            plane = is_taken[bit * stride : (bit + 1) * stride]
            for byte in range(stride):
                packed[byte] |= plane[byte] << np.uint8(bit)
        row, other = other, row
    return row


@kernel
def trace(weights: Int64s, bits: UInt8s, column: int, is_taken: np.ndarray) -> None:
    """Follow the bits back from a column of the last row."""
    stride = bits.shape[1]
    for cell in range(len(weights) - 1, -1, -1):
        if bits[cell, column % stride] >> np.uint8(column // stride) & 1:
            is_taken[cell] = True
            column -= weights[cell]
