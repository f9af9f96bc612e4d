"""The kd-tree partitioner (space; AQWA and Tornado): boxes halved until every worker has one.

Aly et al., AQWA: Adaptive query-workload-aware partitioning of big spatial data, PVLDB 8(13),
2015; Mahmood et al., Tornado, PVLDB 8(12), 2015. The cost of a box is the sum over its cells of
publications times overlapping subscriptions. Again and again the costliest box is cut in two that
cost as nearly the same as the lines of the grid allow; running sums make trying all lines cheap.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np

from ps2stream.arrays import Int32s, Int64s
from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import DENSE, PLAN_BITS, all_held, count_cells, dense_bounds
from ps2stream.partitioning.kdt_tree import Box, KdtTree, Node, SpaceLeaf, Split
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, Rates, load_of, rates_of
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.partitioning.sample import Cells, Digest, Sample, cells_of, digest_of
from ps2stream.partitioning.space_split import Cut, Held, count_held, cut_box


class KdTreePartitioner:
    """Give every worker a box of cells.

    Where the sample lies in fewer cells than there are workers, some workers own nothing that
    the sample reaches; on a grid with fewer cells than workers, some own nothing at all.
    """

    name = "kd-tree"

    def __init__(self, costs: Costs = STANDARD_COSTS, bits: int = PLAN_BITS, dense: float = DENSE) -> None:
        self.costs = costs
        self.bits = bits
        self.dense = dense

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.dense), self.bits)
        cells = cells_of(grid, digest.lon, digest.lat, digest.bounds)
        counts = count_cells(cells)
        cuts = cut_up(running_sums(counts.publications * counts.subscriptions), n_workers)
        rates = rates_of(self.costs, digest.live_weight, digest.churn_weight)
        tree = KdtTree(grid, _Planting(digest, cells, rates, cuts).node(all_held(grid, digest)))
        h1 = owners_of_cells(_cell_owners(tree))
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies, tree=tree)


def running_sums(costs: Int64s) -> Int64s:
    """Return sums over all cells before a row and before a column, so that any box is four look-ups."""
    return np.pad(costs.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))


def box_cost(sums: Int64s, box: Box) -> int:
    """Return the sum of the costs of a box."""
    upper = sums[box.row_stop, box.column_stop] - sums[box.row_stop, box.column]
    return int(upper - sums[box.row, box.column_stop] + sums[box.row, box.column])


def cut_up(sums: Int64s, n_boxes: int) -> dict[Box, Cut]:
    """Cut the whole grid into boxes, the costliest first, and say where each was cut.

    A box of one cell is final, whatever it costs. Of boxes with the same cost the larger is cut
    first: without any cost the map is shared out by area.
    """
    whole = Box(0, 0, sums.shape[1] - 1, sums.shape[0] - 1)
    cuts: dict[Box, Cut] = {}
    waiting: list[tuple[int, int, Box]] = []

    def wait(box: Box) -> None:
        if box.n_cells > 1:
            heapq.heappush(waiting, (-box_cost(sums, box), -box.n_cells, box))

    wait(whole)
    while waiting and len(cuts) < n_boxes - 1:
        box = heapq.heappop(waiting)[-1]
        cuts[box] = best_cut(sums, box)
        for half in box.halves(*cuts[box]):
            wait(half)
    return cuts


def best_cut(sums: Int64s, box: Box) -> Cut:
    """Find the line that leaves the least difference between the costs of both halves.

    AQWA leaves open which of several such lines to take. Here the costlier half, or the larger
    where both cost the same, has the fewest cells: a single cell that holds all the cost is
    bare after four cuts, and without any cost the line is in the middle. Last, the longer side is cut.
    """
    cost = box_cost(sums, box)
    width, height = box.column_stop - box.column, box.row_stop - box.row
    columns, rows = np.arange(1, width), np.arange(1, height)
    south, north = sums[box.row, box.column :], sums[box.row_stop, box.column :]
    west, east = sums[box.row :, box.column], sums[box.row :, box.column_stop]
    low = np.concatenate(
        [(north - south)[columns] - (north - south)[0], (east - west)[rows] - (east - west)[0]]
    )
    low_cells = np.concatenate([columns * height, rows * width])
    high_cells = box.n_cells - low_cells
    larger = np.maximum(low_cells, high_cells)
    costlier = np.select([2 * low > cost, 2 * low < cost], [low_cells, high_cells], larger)
    axis = np.repeat([0, 1], [len(columns), len(rows)])
    side = np.where(axis == 0, width, height)
    best = np.lexsort((-side, costlier, np.abs(cost - 2 * low)))[0]
    at = np.concatenate([box.column + columns, box.row + rows])[best]
    return Cut(int(axis[best]), int(at))


class _Planting:
    """Make a tree of cuts; leaves are numbered as workers, west before east and south before north."""

    def __init__(self, digest: Digest, cells: Cells, rates: Rates, cuts: dict[Box, Cut]) -> None:
        self._digest = digest
        self._cells = cells
        self._rates = rates
        self._cuts = cuts
        self._workers = count()

    def node(self, held: Held) -> Node:
        cut = self._cuts.get(held.box)
        if cut is None:
            load = load_of(self._rates, *map(float, count_held(self._digest, held)))
            return SpaceLeaf(held.box, next(self._workers), float(load))
        low, high = cut_box(self._cells, held, cut)
        return Split(held.box, cut.axis, cut.at, self.node(low), self.node(high))


def _cell_owners(tree: KdtTree) -> Int32s:
    side = 1 << tree.grid.bits
    owners = np.empty((side, side), np.int32)
    for leaf in tree.leaves():
        assert isinstance(leaf, SpaceLeaf)
        box = leaf.box
        owners[box.row : box.row_stop, box.column : box.column_stop] = leaf.worker
    return owners.reshape(-1)
