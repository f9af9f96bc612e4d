"""grid^t's memory: H2 for all cells in one table (Sec. IV-C).

H1 comes with the plan and never changes. H2 knows which terms have a live subscription in a
cell: a counted set of (level, cell, term). The paper's H2 maps to workers; here the worker is
what H1 says for that cell and term, so nothing is stored twice. Counts make H2 shrink again.

A second, far smaller set counts the terms alone. Most terms of a stream are nobody's, wherever they are
written, and are rejected there before any cell is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt64s

# Positions in `head`: of each table its keys, those that are live, and its length.
N_KEYS, N_LIVE, N_PLACES = range(3)
N_TERM_KEYS, N_LIVE_TERMS, N_TERM_PLACES = range(3, 6)
#: head[LEVELS + l] counts the entries on level l, so that look-ups skip unused levels.
LEVELS = 6
HEAD_SIZE = 44


class H2(NamedTuple):
    """Two counted sets: (level, cell, term), and term. Both count live clauses posted there.

    An entry has 36 bits of a hash, never 0, and 28 bits of its count, so that one access reads both. Where
    two share their bits they are counted together: H2 then holds too much, never too little. With n
    entries that concerns one look-up in 2**36 / n. What was counted 2**28 - 1 times at once stays for good.
    """

    head: Int64s
    cells: UInt64s
    terms: UInt64s


DTYPES = {"head": np.int64, "cells": np.uint64, "terms": np.uint64}


def needed_sizes(h2: H2) -> dict[str, int]:
    """Return the least lengths of the arrays for what ``head`` counts."""
    if len(h2.head) < HEAD_SIZE:
        return {"head": HEAD_SIZE}
    return {"cells": int(h2.head[N_PLACES]), "terms": int(h2.head[N_TERM_PLACES])}


class Postings(NamedTuple):
    """Subscriptions as routing sees them: regions and the rarest term of every clause."""

    bounds: Float64s  # four a subscription
    offsets: Int64s
    terms: UInt64s
