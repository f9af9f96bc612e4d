"""A kd^t-tree can be read, printed, and comes back from plain values."""

from __future__ import annotations

import json

from ps2stream.model.space import Grid
from ps2stream.partitioning.kdt_tree import Box, KdtTree, SpaceLeaf, Split, TermPart, TextLeaf

GRID = Grid.over((0.0, 0.0, 8.0, 8.0), 3)
WHOLE = Box(0, 0, 8, 8)
WEST, EAST = WHOLE.halves(0, 2)
SOUTH, NORTH = EAST.halves(1, 4)
TREE = KdtTree(
    GRID,
    Split(
        WHOLE,
        0,
        2,
        SpaceLeaf(WEST, 1, 10.0),
        Split(
            EAST,
            1,
            4,
            TextLeaf(SOUTH, 0, (TermPart(0, 7, 5.0), TermPart(2, 9, 6.0))),
            SpaceLeaf(NORTH, 2, 4.0),
        ),
    ),
)


def test_halves_divide_a_box() -> None:
    assert (Box(0, 0, 2, 8), Box(2, 0, 8, 8)) == (WEST, EAST)
    assert (Box(2, 0, 8, 4), Box(2, 4, 8, 8)) == (SOUTH, NORTH)
    assert WEST.n_cells + SOUTH.n_cells + NORTH.n_cells == WHOLE.n_cells


def test_leaves_come_from_west_to_east_and_south_to_north() -> None:
    assert [leaf.box for leaf in TREE.leaves()] == [WEST, SOUTH, NORTH]
    assert [leaf.load for leaf in TREE.leaves()] == [10.0, 11.0, 4.0]


def test_bounds_of_outer_boxes_reach_the_edge_of_the_world() -> None:
    assert TREE.bounds_of(WEST) == (-180.0, -90.0, 2.0, 90.0)
    assert TREE.bounds_of(SOUTH) == (2.0, -90.0, 180.0, 4.0)


def test_a_tree_survives_json() -> None:
    assert KdtTree.from_dict(json.loads(json.dumps(TREE.as_dict()))) == TREE


def test_a_printed_tree_names_boxes_workers_and_loads() -> None:
    assert str(TREE).splitlines() == [
        "[-180.00, -90.00, 180.00, 90.00] split at lon 2.000",
        "  [-180.00, -90.00, 2.00, 90.00] space: worker 1, load 10",
        "  [2.00, -90.00, 180.00, 90.00] split at lat 4.000",
        "    [2.00, -90.00, 180.00, 4.00] text, 2 parts",
        "      worker 0: 7 terms, load 5",
        "      worker 2: 9 terms, load 6",
        "    [2.00, 4.00, 180.00, 90.00] space: worker 2, load 4",
    ]
