"""The cells of a plan joined to tiles: rectangles of cells that have one owner, worker or table of terms.

A region as large as the world touches every cell of H1, 65,536 by default, and most plans consist of a few
dozen rectangles. Who stores a large subscription is found from these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.kernels import kernel
from ps2stream.model.space import Cover
from ps2stream.partitioning.plan import H1, owner, workers_of


class Tiles(NamedTuple):
    """The tiles of every owner, which is a number of ``H1.cell_owner``; workers come before tables."""

    owners: Int32s
    tile_offsets: Int64s
    tiles: Int64s  # a row each: west, east, south, north, half-open; an owner's largest come first
    worker_offsets: Int64s
    workers: Int64s  # all who may own a term under an owner


def tiles_of(h1: H1, bits: int) -> Tiles:
    """Join the cells of a plan with ``2**bits`` columns and rows."""
    owner_of, tiles = _joined(h1.cell_owner, bits)
    west, east, south, north = tiles.T
    # A table has to be looked at only for workers that are not marked yet, and a large tile is sooner hit.
    order = np.lexsort((-(east - west) * (north - south), owner_of, owner_of < 0))
    owner_of, tiles = owner_of[order], tiles[order]
    first = np.flatnonzero(_changes(owner_of))
    owners = owner_of[first]
    workers = [workers_of(h1, -1 - each) if each < 0 else np.array([each]) for each in owners.tolist()]
    return Tiles(
        owners,
        np.append(first, len(tiles)),
        np.ascontiguousarray(tiles),
        np.cumsum([0, *map(len, workers)]),
        np.concatenate(workers),
    )


def _joined(cell_owner: Int32s, bits: int) -> tuple[Int32s, npt.NDArray[np.int64]]:
    """Join cells along rows, then equal runs of consecutive rows; return owners and tiles."""
    starts = _changes(cell_owner)
    starts[:: 1 << bits] = True
    first = np.flatnonzero(starts)
    row, west = first >> bits, first & ((1 << bits) - 1)
    east = west + np.diff(first, append=len(cell_owner))
    order = np.lexsort((row, east, west, cell_owner[first]))
    row, west, east, owner_of = row[order], west[order], east[order], cell_owner[first][order]
    offset = row - np.arange(len(row))  # alike in rows that follow each other
    begins = np.flatnonzero(_changes(owner_of) | _changes(west) | _changes(east) | _changes(offset))
    south, n_rows = row[begins], np.diff(begins, append=len(row))
    return owner_of[begins], np.stack([west[begins], east[begins], south, south + n_rows], axis=1)


def _changes(values: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.bool_]:
    """Mark the values that differ from the one before, and the first."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes


@kernel
def mark_by_tiles(
    h1: H1, tiles: Tiles, bits: int, area: Cover, terms: UInt64s, marks: npt.NDArray[np.bool_]
) -> None:
    """Mark the workers that own one of some terms in one of the cells of an area."""
    for number in range(len(tiles.owners)):
        if _are_marked(tiles, number, marks) or not _touches(tiles, number, 1 << bits, area):
            continue
        if tiles.owners[number] >= 0:
            marks[tiles.owners[number]] = True
            continue
        # All cells of an owner are alike; any of them will do.
        tile = tiles.tile_offsets[number]
        cell = tiles.tiles[tile, 2] << bits | tiles.tiles[tile, 0]
        for term in terms:
            marks[owner(h1, cell, term)] = True


@kernel
def _are_marked(tiles: Tiles, number: int, marks: npt.NDArray[np.bool_]) -> bool:
    """Say whether an owner has nobody to add."""
    for i in range(tiles.worker_offsets[number], tiles.worker_offsets[number + 1]):
        if not marks[tiles.workers[i]]:
            return False
    return True


@kernel
def _touches(tiles: Tiles, number: int, side: int, area: Cover) -> bool:
    """Say whether an owner has a cell in an area, whose columns may wrap round."""
    stop = area.column + area.n_columns
    for i in range(tiles.tile_offsets[number], tiles.tile_offsets[number + 1]):
        west, east = tiles.tiles[i, 0], tiles.tiles[i, 1]
        if tiles.tiles[i, 2] >= area.row + area.n_rows or tiles.tiles[i, 3] <= area.row:
            continue
        if (west < stop and east > area.column) or west < stop - side:
            return True
    return False
