"""grid^t's memory: H2 for all cells in one table (Sec. IV-C).

H1 comes with the plan and never changes. H2 knows which terms have a live subscription in a
cell: a counted set of (level, cell, term). The paper's H2 maps to workers; here the worker is
what H1 says for that cell and term, so nothing is stored twice. Counts make H2 shrink again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s, UInt64s, table_size

# Positions in `head`.
N_KEYS, N_LIVE = range(2)
#: head[LEVELS + l] counts the entries on level l, so that look-ups skip unused levels.
LEVELS = 2
HEAD_SIZE = 40


class H2(NamedTuple):
    """Open addressing: key of (level, cell, term) -> live clauses posted there; key 0 is free."""

    head: Int64s
    keys: UInt64s
    counts: Int32s


DTYPES = {"head": np.int64, "keys": np.uint64, "counts": np.int32}


def needed_sizes(h2: H2) -> dict[str, int]:
    """Say how long the arrays have to be for what ``head`` counts."""
    if len(h2.head) < HEAD_SIZE:
        return {"head": HEAD_SIZE}
    size = max(int(h2.head[N_KEYS]) + 1, table_size(h2.keys, h2.counts))
    return {"keys": size, "counts": size}


class Postings(NamedTuple):
    """Subscriptions as routing sees them: regions and the rarest term of every clause."""

    bounds: Float64s  # four a subscription
    offsets: Int64s
    terms: UInt64s
