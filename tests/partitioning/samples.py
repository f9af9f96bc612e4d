"""Samples to plan from, usual and odd ones."""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Ragged, frozen
from ps2stream.model.space import WORLD
from ps2stream.partitioning.sample import Sample


def make_sample(
    n_publications: int, n_subscriptions: int, seed: int = 0, spread: float = 20.0, n_terms: int = 50
) -> Sample:
    """Draw a sample around one town; with a spread of 0 everything happens at one point.

    Subscriptions have one or two clauses of one or two terms.
    """
    rng = np.random.default_rng(seed)
    terms = rng.integers(0, 1 << 63, n_terms, dtype=np.uint64)
    texts = [np.unique(rng.choice(terms, 5)) for _ in range(n_publications)]
    west = rng.normal(10, spread / 4, n_subscriptions)
    south = rng.normal(50, spread / 8, n_subscriptions)
    size = rng.random(n_subscriptions) * spread / 5
    corners = np.column_stack([west, south, west + size, south + size])
    n_clauses = np.where(rng.random(n_subscriptions) < 0.3, 2, 1)
    clauses = [np.unique(rng.choice(terms, size)) for size in rng.integers(1, 3, int(n_clauses.sum()))]
    return Sample(
        frozen(np.clip(rng.normal(10, spread / 4, n_publications), -180, 180)),
        frozen(np.clip(rng.normal(50, spread / 8, n_publications), -90, 90)),
        Ragged(
            np.concatenate([np.empty(0, np.uint64), *texts]),
            np.cumsum([0, *map(len, texts)], dtype=np.int64),
        ),
        frozen(np.clip(corners, [WORLD[0], WORLD[1]] * 2, [WORLD[2], WORLD[3]] * 2).reshape(-1)),
        frozen(np.cumsum([0, *n_clauses], dtype=np.int64)),
        frozen(np.cumsum([0, *map(len, clauses)], dtype=np.int64)),
        frozen(np.concatenate([np.empty(0, np.uint64), *clauses])),
    )


SAMPLES = {
    "usual": make_sample(400, 100),
    "nothing": make_sample(0, 0),
    "one publication": make_sample(1, 0),
    "one subscription": make_sample(0, 1),
    "no publications": make_sample(0, 50),
    "no subscriptions": make_sample(200, 0),
    "one point": make_sample(200, 50, spread=0.0),
    "one term": make_sample(200, 50, n_terms=1),
    "all identical": make_sample(200, 50, spread=0.0, n_terms=1),
    "regions of the whole world": make_sample(100, 40, spread=2000.0),
}
