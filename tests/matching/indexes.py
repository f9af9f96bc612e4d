"""Make an index, change it and ask it, each in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from matching.scan import Published, Stored, columns_of, probes_of
from ps2stream.arrays import frozen
from ps2stream.matching.contract import IndexSettings, WorkerIndex
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import DTYPES, HEAD_SIZE
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import Grid

COUNTERS = Grid.over((-100.0, -45.0, 130.0, 60.0), 3)

Matches = list[tuple[int, int]]


def tiny_sizes(n_subs: int, n_cells: int) -> dict[str, int]:
    """Stand in for ``initial_sizes``: with no capacity at all every array and table grows again and again."""
    sizes = dict.fromkeys(DTYPES, 1) | {name: 2 for name in DTYPES if name.startswith(("list_", "map_"))}
    return sizes | {"head": HEAD_SIZE} | {name: n_cells for name in DTYPES if name.startswith("cell_")}


def built(settings: IndexSettings, stored: list[Stored], **options: Any) -> GI2:
    index = GI2.create(settings, **options)
    index.insert(columns_of(stored))
    return index


def probe(
    index: WorkerIndex,
    published: list[Published],
    horizon: int = BEFORE_ALL_SEQS,
    switch_seq: int = BEFORE_ALL_SEQS,
) -> Matches:
    found = index.probe(probes_of(published, switch_seq), horizon)
    return sorted(zip(found.publication.tolist(), found.subscription.tolist(), strict=True))


def end(index: WorkerIndex, ends: dict[int, int]) -> int:
    return index.end(frozen(np.array(list(ends), np.int64)), frozen(np.array(list(ends.values()), np.int64)))


def drop(index: WorkerIndex, seqs: Iterable[int]) -> int:
    return index.drop(frozen(np.array(list(seqs), np.int64)))
