"""Copy what can still match of an index into arrays of its own, a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from ps2stream.arrays import Storage, create_struct
from ps2stream.matching.compact import copy_lists, copy_records, count_lists, plan_moves
from ps2stream.matching.contract import CELL_COUNTERS
from ps2stream.matching.layout import (
    DTYPES,
    FREE,
    MAP_SIZE,
    N_CANDIDATES,
    N_ENDED,
    N_ENDS,
    N_LISTS,
    N_MATCHES,
    N_POOL,
    N_POSTINGS,
    N_PUBLICATIONS,
    N_RECORDS,
    N_WORDS,
    TABLE_SIZE,
    GI2Arrays,
)
from ps2stream.matching.lists import list_table_size
from ps2stream.matching.records import views_of
from ps2stream.matching.seq_map import map_size, refill_seq_map
from ps2stream.model.space import Grid

#: Keys of lists are never 0: before the first, and behind the last.
_NO_KEY = np.uint64(0)


def copied(
    current: Callable[[], GI2Arrays], grid: Grid, max_cells: int, horizon: int, storage: Storage, n: int
) -> Generator[None, None, GI2Arrays]:
    """Copy what did not end by the horizon, ``n`` records or slots at a time; return the copy.

    It is that of the first piece, as :mod:`~ps2stream.matching.compact` says, with all counters of cells at
    0. ``current`` returns the arrays as they are by now.
    """
    moves, n_records, n_words, n_ends = plan_moves(current(), horizon)
    head = current().head.copy()
    n_planned = int(head[N_RECORDS])
    yield
    n_lists = n_pool = 0
    key = _NO_KEY
    while True:
        n_more, n_capacity, behind = count_lists(current(), moves, key, n)
        n_lists, n_pool = n_lists + n_more, n_pool + n_capacity
        key = np.uint64(behind)  # what comes from a kernel is an int
        yield
        if key == _NO_KEY:
            break
    sizes = {name: len(getattr(current(), name)) for name in DTYPES} | {
        "records": n_words,
        "ends": 2 * n_ends,
        "postings": n_pool,
        "list_table": list_table_size(n_lists),
        "map_record": map_size(n_records),
    }
    new = create_struct(GI2Arrays, DTYPES, sizes, storage)
    new.head[:] = head
    new.head[[N_RECORDS, N_WORDS, N_ENDS, N_ENDED]] = 0
    new.head[FREE:] = 0
    record = 0
    for first in range(0, n_planned, n):
        n_next = min(n, n_planned - first)
        record = copy_records(current(), new, grid, max_cells, moves, record, n_next)
        yield
    while True:
        new.head[[N_LISTS, N_POOL, N_POSTINGS]] = 0
        key, to = _NO_KEY, 0
        while True:
            behind, to = copy_lists(current(), new, moves, key, n, to)
            key = np.uint64(behind)
            yield
            if key == _NO_KEY or to < 0:
                break
        if to >= 0:
            break
        new = new._replace(list_table=storage.create("list_table", np.uint64, 2 * len(new.list_table)))
    record = 0
    for first in range(0, n_records, n):
        n_next = min(n, n_records - first)
        record = refill_seq_map(views_of(new.records, new.ends), new.map_record, record, n_next)
        yield
    new.head[TABLE_SIZE], new.head[MAP_SIZE] = len(new.list_table), len(new.map_record)
    return new


def at_once(pieces: Generator[None, None, GI2Arrays]) -> GI2Arrays:
    """Copy all pieces, one after the other."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            arrays: GI2Arrays = end.value
            return arrays


def take_counters(new: GI2Arrays, old: GI2Arrays) -> None:
    """Let an index go on with the counters of another."""
    for name in CELL_COUNTERS:
        getattr(new, f"cell_{name}")[:] = getattr(old, f"cell_{name}")
    work = [N_PUBLICATIONS, N_CANDIDATES, N_MATCHES]
    new.head[work] = old.head[work]
