"""GI2's memory: one NamedTuple of flat arrays (Sec. IV-D).

    list_key ──hash of (level, cell, term)──> list_start, list_length
                                                    │
    postings  [bloom | clause, quantised bounds] ...┘    16 bytes each, contiguous in a list
                        │
    clause_*  ──────────┴──> its terms, its subscription
    sub_*     ─────────────> seq_from, seq_to, region, first clause

A posting carries enough to turn down most candidates without leaving the list: the
subscription's bounds within the cell, in 1/256 of its sides, and a 64-bit Bloom filter of
the clause's terms. Slots are only appended; what is dead is left behind by compaction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Float64s, Int64s, UInt32s, UInt64s, table_size

#: seq_to of a subscription that nobody has ended.
FOREVER = np.iinfo(np.int64).max

# Positions in `head`.
N_SUBS, N_CLAUSES, N_TERMS, N_POSTINGS, N_LISTS, N_ENDED, N_DEAD_POSTINGS, STEP = range(8)
#: head[LEVELS + l] counts the clauses posted on level l, so that probes skip unused levels.
LEVELS = 8
HEAD_SIZE = 48


class GI2Arrays(NamedTuple):
    """The arrays of one worker's index; ``head`` holds its counts."""

    head: Int64s
    sub_seq_from: Int64s
    sub_seq_to: Int64s
    sub_bounds: Float64s
    sub_first_clause: UInt32s  # one more than there are subscriptions: the next one's first
    clause_sub: UInt32s
    clause_first_term: UInt32s  # one more than there are clauses
    terms: UInt64s
    postings: UInt64s  # two words each: bloom; clause << 32 | bounds
    list_key: UInt64s  # open addressing, 0 is free
    list_start: UInt32s
    list_length: UInt32s
    map_seq: Int64s  # open addressing: seq_from -> slot
    map_slot: UInt32s  # slot + 1; 0 is free
    cell_publications: Int64s
    cell_candidates: Int64s
    cell_matches: Int64s
    cell_subscriptions: Int64s
    cell_bytes: Int64s


DTYPES = {
    "head": np.int64,
    "sub_seq_from": np.int64,
    "sub_seq_to": np.int64,
    "sub_bounds": np.float64,
    "sub_first_clause": np.uint32,
    "clause_sub": np.uint32,
    "clause_first_term": np.uint32,
    "terms": np.uint64,
    "postings": np.uint64,
    "list_key": np.uint64,
    "list_start": np.uint32,
    "list_length": np.uint32,
    "map_seq": np.int64,
    "map_slot": np.uint32,
    "cell_publications": np.int64,
    "cell_candidates": np.int64,
    "cell_matches": np.int64,
    "cell_subscriptions": np.int64,
    "cell_bytes": np.int64,
}


def initial_sizes(n_subs: int, n_cells: int) -> dict[str, int]:
    """Size the arrays for about ``n_subs`` subscriptions; all of them can grow."""
    table = 1 << max(10, int(3 * n_subs).bit_length())
    cells = {name: n_cells for name in DTYPES if name.startswith("cell_")}
    return {
        "head": HEAD_SIZE,
        "sub_seq_from": n_subs,
        "sub_seq_to": n_subs,
        "sub_bounds": 4 * n_subs,
        "sub_first_clause": n_subs + 1,
        "clause_sub": n_subs,
        "clause_first_term": n_subs + 1,
        "terms": 2 * n_subs,
        "postings": 2 * 4 * n_subs,
        "list_key": table,
        "list_start": table,
        "list_length": table,
        "map_seq": table,
        "map_slot": table,
        **cells,
    }


def needed_sizes(arrays: GI2Arrays, n_cells: int) -> dict[str, int]:
    """Say how long the arrays have to be for what ``head`` counts."""
    head = arrays.head
    if len(head) < HEAD_SIZE:
        return {"head": HEAD_SIZE}
    n_subs, n_clauses, n_lists = int(head[N_SUBS]), int(head[N_CLAUSES]), int(head[N_LISTS])
    lists = max(n_lists + 1, table_size(arrays.list_key, arrays.list_start, arrays.list_length))
    slots = max(n_subs + 1, table_size(arrays.map_seq, arrays.map_slot))
    cells = {name: n_cells for name in DTYPES if name.startswith("cell_")}
    return {
        "sub_seq_from": n_subs,
        "sub_seq_to": n_subs,
        "sub_bounds": 4 * n_subs,
        "sub_first_clause": n_subs + 1,
        "clause_sub": n_clauses,
        "clause_first_term": n_clauses + 1,
        "terms": int(head[N_TERMS]),
        "postings": 2 * int(head[N_POSTINGS]),
        "list_key": lists,
        "list_start": lists,
        "list_length": lists,
        "map_seq": slots,
        "map_slot": slots,
        **cells,
    }


class Subscriptions(NamedTuple):
    """Subscriptions to insert, in columns; each clause's rarest term comes first."""

    seq_from: Int64s
    seq_to: Int64s
    bounds: Float64s
    clause_offsets: Int64s
    term_offsets: Int64s
    terms: UInt64s


class Probes(NamedTuple):
    """Publications to match, in columns; ``is_probe`` marks the terms that this worker owns."""

    seq: Int64s
    lon: Float64s
    lat: Float64s
    term_offsets: Int64s
    terms: UInt64s  # of each publication sorted and distinct
    is_probe: npt.NDArray[np.bool_]


class Found(NamedTuple):
    """Room for matches: row of the publication, seq_from of the subscription."""

    publication: Int64s
    subscription: Int64s
