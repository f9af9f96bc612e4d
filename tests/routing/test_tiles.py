"""Tiles are the cells of a plan, and say of any region what its cells say."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.scan import TERMS, Stored, cells_of
from ps2stream.model.space import WORLD, Region, cover
from ps2stream.partitioning.plan import H1, Plan, owner
from ps2stream.routing.tiles import Tiles, mark_by_tiles, tiles_of
from ps2stream.testing.generators import random_region
from routing.plans import text_plan
from routing.postings import postings_of

pytestmark = pytest.mark.kernel

N_WORKERS = 5


def _plan(rng: random.Random, bits: int) -> Plan:
    """Make a plan of some blocks and single cells, some by terms and some by renamed tables of terms."""
    plan = text_plan(rng, N_WORKERS, bits)
    n_tables = len(plan.h1.table_offsets) - 1
    side = 1 << bits
    owners = np.full((side, side), rng.randrange(-n_tables - 2, N_WORKERS), np.int32)
    for _ in range(rng.randrange(8)):
        west, south = rng.randrange(side), rng.randrange(side)
        block = owners[south : south + rng.randint(1, side), west : west + rng.randint(1, side)]
        block[:] = rng.randrange(-n_tables - 2, N_WORKERS)
    is_single = np.array([rng.random() < rng.choice((0.0, 0.1)) for _ in range(side * side)])
    h1 = plan.h1._replace(
        cell_owner=np.where(is_single, plan.h1.cell_owner, owners.ravel()),
        renamed_tables=np.array([rng.randrange(n_tables) for _ in range(2)], np.int32),
        renames=np.array([rng.choices(range(N_WORKERS), k=N_WORKERS) for _ in range(2)], np.int32),
    )
    return replace(plan, h1=h1)


def _cells(tiles: Tiles, bits: int) -> list[tuple[int, int]]:
    """Return (cell, owner) for every cell of every tile."""
    return [
        (row << bits | column, int(tiles.owners[number]))
        for number in range(len(tiles.owners))
        for west, east, south, north in tiles.tiles[
            tiles.tile_offsets[number] : tiles.tile_offsets[number + 1]
        ]
        for row in range(south, north)
        for column in range(west, east)
    ]


@given(st.integers(0, 1 << 32), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_every_cell_is_in_one_tile_of_its_owner(seed: int, bits: int) -> None:
    plan = _plan(random.Random(seed), bits)
    tiles = tiles_of(plan.h1, bits)
    assert sorted(_cells(tiles, bits)) == list(enumerate(plan.h1.cell_owner.tolist()))
    assert len(set(tiles.owners.tolist())) == len(tiles.owners)


def test_a_block_of_cells_is_one_tile_and_workers_come_before_tables() -> None:
    plan = text_plan(random.Random(1), 2, 3)
    owners = np.full((8, 8), -1, np.int32)
    owners[:, :3] = 1
    owners[2:5, 3:8] = 0
    tiles = tiles_of(plan.h1._replace(cell_owner=owners.ravel()), 3)
    assert tiles.owners.tolist() == [0, 1, -1]
    assert tiles.tiles.tolist() == [[3, 8, 2, 5], [0, 3, 0, 8], [3, 8, 5, 8], [3, 8, 0, 2]]
    assert tiles.tile_offsets.tolist() == [0, 1, 2, 4]


def _expected(h1: H1, cells: set[int], terms: list[int]) -> list[int]:
    return sorted({int(owner(h1, cell, np.uint64(term))) for cell in cells for term in terms})


@given(st.integers(0, 1 << 32), st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_tiles_mark_the_owners_of_terms_in_all_cells_of_any_region(seed: int, bits: int) -> None:
    rng = random.Random(seed)
    plan = _plan(rng, bits)
    tiles = tiles_of(plan.h1, bits)
    # The world, its halves on either side of the antimeridian, and what lies in the outermost cells only.
    boxes = [WORLD, (90.0, -90.0, -90.0, 90.0), (10.0, -90.0, 9.0, 90.0), (179.0, 89.0, -179.0, 90.0)]
    for box in [*boxes, *(random_region(rng) for _ in range(6))]:
        terms = rng.sample(TERMS, rng.randint(1, 3))
        postings = postings_of([Stored(1, Region(*box), tuple((term,) for term in terms))])
        marks = np.zeros(N_WORKERS, np.bool_)
        area = cover(plan.grid, postings.bounds, 0, 1 << 62)
        mark_by_tiles(plan.h1, tiles, bits, area, postings.terms, marks)
        cells = cells_of(plan.grid, Region(*box))
        assert np.flatnonzero(marks).tolist() == _expected(plan.h1, cells, terms)
