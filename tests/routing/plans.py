"""Plans made up at random: by space, and by space and terms."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np

from matching.scan import TERMS, offsets
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.plan import H1, Plan, owners_of_cells
from ps2stream.text.frequencies import Frequencies, no_frequencies

BOUNDS = [WORLD, (-30.0, -20.0, 50.0, 60.0), (7.0, 7.0, 7.0, 7.0)]


def space_plan(rng: random.Random, n_workers: int, bits: int) -> Plan:
    grid = Grid.over(rng.choice(BOUNDS), bits)
    owners = np.array([rng.randrange(n_workers) for _ in range(grid.n_cells)], np.int32)
    return Plan(1, "by hand", n_workers, grid, owners_of_cells(owners))


def text_plan(
    rng: random.Random,
    n_workers: int,
    bits: int,
    terms: Sequence[int] = TERMS,
    frequencies: Frequencies | None = None,
) -> Plan:
    """Let some cells belong to a worker and others to tables of terms with a few default workers."""
    grid = Grid.over(rng.choice(BOUNDS), bits)
    n_tables = 3
    owners = np.array([rng.randrange(-n_tables, n_workers) for _ in range(grid.n_cells)], np.int32)
    tables = [sorted(rng.sample(terms, rng.randrange(len(terms)))) for _ in range(n_tables)]
    workers = [[rng.randrange(n_workers) for _ in table] for table in tables]
    defaults = [rng.sample(range(n_workers), rng.randint(1, n_workers)) for _ in range(n_tables)]
    h1 = H1(
        owners,
        offsets(map(len, tables)),
        np.array([*itertools.chain(*tables)], np.uint64),
        np.array([*itertools.chain(*workers)], np.int32),
        offsets(map(len, defaults)),
        np.array([*itertools.chain(*defaults)], np.int32),
    )
    return Plan(1, "by hand", n_workers, grid, h1, frequencies or no_frequencies())
