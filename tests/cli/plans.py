"""Plans made by hand, and a sample to show them with."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Ragged, frozen
from ps2stream.cli.render.plan_figures import PlanFigures
from ps2stream.model.space import Grid
from ps2stream.partitioning.kdt_tree import Box, KdtTree, SpaceLeaf, Split, TermPart, TextLeaf
from ps2stream.partitioning.plan import H1, Plan, owners_of_cells, owners_of_terms
from ps2stream.partitioning.sample import Sample

GRID = Grid.over((8.0, 44.0, 16.0, 52.0), 2)


def sample_at(lon: list[float], lat: list[float]) -> Sample:
    """Make a sample of publications without words, and of no subscription."""
    none = np.zeros(1, np.int64)
    nothing = np.empty(0, np.uint64)
    offsets = np.zeros(len(lon) + 1, np.int64)
    return Sample(
        frozen(np.array(lon, np.float64)),
        frozen(np.array(lat, np.float64)),
        Ragged(nothing, offsets),
        np.empty(0),
        none,
        none,
        nothing,
    )


def sample_around_munich(n: int = 500) -> Sample:
    rng = np.random.default_rng(0)
    return sample_at((12 + 2 * rng.random(n)).tolist(), (48 + rng.random(n)).tolist())


def cell_plan(n_workers: int = 4) -> Plan:
    """Give every cell to the next worker."""
    owners = np.arange(16, dtype=np.int32) % n_workers
    return Plan(1, "cells", n_workers, GRID, owners_of_cells(owners))


def term_plan(n_workers: int = 4) -> Plan:
    """Divide terms everywhere alike."""
    terms, workers = np.array([5, 9], np.uint64), np.array([1, 0], np.int32)
    return Plan(1, "terms", n_workers, GRID, owners_of_terms(16, terms, workers, n_workers))


def tree_plan() -> Plan:
    """Give the west to worker 0; in the east, worker 1 has the south and workers 1 and 2 share the north."""
    west, east = Box(0, 0, 4, 4).halves(0, 2)
    south, north = east.halves(1, 3)
    owner = np.zeros((4, 4), np.int32)
    owner[:3, 2:] = 1
    owner[3, 2:] = -1
    shared = TextLeaf(north, 0, (TermPart(1, 10, 3.0), TermPart(2, 20, 4.0)))
    high = Split(east, 1, 3, SpaceLeaf(south, 1, 7.0), shared)
    root = Split(Box(0, 0, 4, 4), 0, 2, SpaceLeaf(west, 0, 8.0), high)
    h1 = H1(
        owner.reshape(-1),
        np.array([0, 1]),
        np.array([7], np.uint64),
        np.array([1], np.int32),
        np.array([0, 1]),
        np.array([2], np.int32),
    )
    return Plan(1, "by hand", 3, GRID, h1, tree=KdtTree(GRID, root))


def figures_of(plan: Plan, *loads_ms: float) -> PlanFigures:
    """Make up figures; without loads all workers have the same."""
    loads = loads_ms or (1.0,) * plan.n_workers
    return PlanFigures(
        partitioner=plan.partitioner,
        loads_ms=loads,
        stored=tuple(range(10, 10 + plan.n_workers)),
        replication=1.25,
        fan_out=1.5,
        discarded=0.125,
        build_s=0.25,
        sigma=None,
        keeps_sigma=None,
    )
