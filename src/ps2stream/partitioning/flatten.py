"""Flatten a grown tree: the kd^t-tree to keep, and H1 for grid^t to route by (Sec. IV-C)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ps2stream.arrays import Int32s, Int64s, UInt64s
from ps2stream.partitioning.growth import Ground, TreeRegion, Unit
from ps2stream.partitioning.kdt_tree import KdtTree, Node, SpaceLeaf, Split, TermPart, TextLeaf
from ps2stream.partitioning.plan import H1


def flatten(ground: Ground, root: TreeRegion, units: Sequence[Unit], workers: Int32s) -> tuple[KdtTree, H1]:
    """Return the tree and its flat form; ``workers`` are those of the units."""
    return _Flattening(ground, units, workers).run(root)


class _Flattening:
    """Write the owners of cells and the text tables leaf by leaf."""

    def __init__(self, ground: Ground, units: Sequence[Unit], workers: Int32s) -> None:
        self._ground = ground
        self._side = 1 << ground.grid.bits
        self._owner = np.zeros((self._side, self._side), np.int32)
        self._terms: list[UInt64s] = []
        self._workers: list[Int32s] = []
        self._defaults: list[Int64s] = []
        self._units: dict[TreeRegion, list[tuple[Unit, int]]] = {}
        for unit, worker in zip(units, workers.tolist(), strict=True):
            self._units.setdefault(unit.region, []).append((unit, worker))

    def run(self, root: TreeRegion) -> tuple[KdtTree, H1]:
        tree = KdtTree(self._ground.grid, self._node(root))
        h1 = H1(
            self._owner.reshape(-1),
            _offsets(self._terms),
            np.concatenate([np.empty(0, np.uint64), *self._terms]),
            np.concatenate([np.empty(0, np.int32), *self._workers]),
            _offsets(self._defaults),
            np.concatenate([np.empty(0, np.int32), *self._defaults]).astype(np.int32),
        )
        return tree, h1

    def _node(self, region: TreeRegion) -> Node:
        box = region.held.box
        if region.halves is not None and region.cut is not None:
            low, high = map(self._node, region.halves)
            return Split(box, region.cut.axis, region.cut.at, low, high)
        units = self._units[region]
        cells = self._owner[box.row : box.row_stop, box.column : box.column_stop]
        owners = sorted({worker for _, worker in units})
        if len(owners) == 1:  # also when all sets of its terms have come to the same worker
            cells[:] = owners[0]
            return SpaceLeaf(box, owners[0], sum(unit.load for unit, _ in units))
        table = len(self._terms)
        cells[:] = -1 - table
        self._add_table(region, units, owners)
        parts = [
            TermPart(worker, 0 if unit.terms is None else len(unit.terms), unit.load)
            for unit, worker in units
        ]
        return TextLeaf(box, table, tuple(parts))

    def _add_table(self, region: TreeRegion, units: list[tuple[Unit, int]], owners: list[int]) -> None:
        rows = [(unit.terms, worker) for unit, worker in units if unit.terms is not None]
        positions = np.concatenate([terms for terms, _ in rows])
        workers = np.concatenate([np.full(len(terms), worker, np.int32) for terms, worker in rows])
        terms = self._ground.digest.vocabulary[self._ground.table(region).terms[positions]]
        order = np.argsort(terms)
        self._terms.append(terms[order])
        self._workers.append(workers[order])
        self._defaults.append(np.array(owners))


def _offsets(rows: Sequence[np.ndarray]) -> Int64s:
    return np.cumsum([0, *map(len, rows)], dtype=np.int64)
