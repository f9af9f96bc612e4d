"""The arrays of a GI2 index.

A worker keeps a hash table from (cell, term) to lists of postings. A posting says where the subscription
lies and holds enough to reject most candidates without leaving the list (see
matching.posting). What is left is mostly a match, and all that decides it lies together in one
record. Records are only appended; what is dead is left behind by compaction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, UInt32s, UInt64s

# Positions in `head`. Records include those of what has ended. Words are those of records. The pool is what
# lists take for the postings they hold. PENDING: the last record is not posted in full yet; IS_TABLE_FULL
# says whether for lack of slots or of postings.
N_RECORDS, N_ENDED, N_WORDS, N_ENDS, N_POOL, N_POSTINGS, N_LISTS, N_SPLITS = range(8)
PENDING, LAST_RECORD, TABLE_SIZE, MAP_SIZE, IS_TABLE_FULL = range(8, 13)
#: The sums of the cells' counters: who wants to know what a batch came to need not look at 65,536 cells.
N_PUBLICATIONS, N_CANDIDATES, N_MATCHES = range(13, 16)
#: head[LEVELS + l] counts the subscriptions posted on level l, so that probes skip unused levels.
LEVELS = 16
#: head[FREE + c] is the first of the chunks of size class c that lists moved out of, plus one.
FREE = 48
HEAD_SIZE = 128

#: Where a list is crowded, its cell is divided, up to this many times below the levels of the grid.
FINER_LEVELS = 5


class GI2Arrays(NamedTuple):
    """The arrays of one worker's index; ``head`` holds its counts."""

    head: Int64s
    records: Int64s  # see matching.records
    ends: Int64s  # two words for each that has ended: seq_from, seq_to
    postings: UInt64s  # see matching.posting
    list_table: UInt64s  # see matching.lists
    map_record: UInt32s  # see matching.seq_map
    cell_publications: Int64s
    cell_lookups: Int64s
    cell_candidates: Int64s
    cell_matches: Int64s
    cell_subscriptions: Int64s  # this and the next: by corners, see matching.insert
    cell_bytes: Int64s


DTYPES = {
    "head": np.int64,
    "records": np.int64,
    "ends": np.int64,
    "postings": np.uint64,
    "list_table": np.uint64,
    "map_record": np.uint32,
    "cell_publications": np.int64,
    "cell_lookups": np.int64,
    "cell_candidates": np.int64,
    "cell_matches": np.int64,
    "cell_subscriptions": np.int64,
    "cell_bytes": np.int64,
}


def initial_sizes(n_subs: int, n_cells: int) -> dict[str, int]:
    """Size the arrays for about ``n_subs`` subscriptions; all of them can grow."""
    n_subs = max(n_subs, 1)  # no table may be empty: whoever searches looks at a slot
    cells = {name: n_cells for name in DTYPES if name.startswith("cell_")}
    return {
        "head": HEAD_SIZE,
        "records": 8 * n_subs,
        "ends": 0,
        "postings": n_subs,
        "list_table": 2 * (n_subs + n_subs // 2),
        "map_record": n_subs + n_subs // 2,
        **cells,
    }


def needed_sizes(arrays: GI2Arrays, n_cells: int) -> dict[str, int]:
    """Return the least lengths of the arrays for what ``head`` counts."""
    head = arrays.head
    if len(head) < HEAD_SIZE:
        return {"head": HEAD_SIZE}
    return {
        "records": int(head[N_WORDS]),
        "ends": 2 * int(head[N_ENDS]),
        "postings": int(head[N_POOL]),
        "list_table": int(head[TABLE_SIZE]),
        "map_record": int(head[MAP_SIZE]),
        **{name: n_cells for name in DTYPES if name.startswith("cell_")},
    }
