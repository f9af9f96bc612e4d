"""Subscriptions of the tests as routing takes them."""

from __future__ import annotations

import numpy as np

from matching.scan import Stored, offsets
from ps2stream.arrays import frozen
from ps2stream.routing.layout import Postings


def postings_of(stored: list[Stored]) -> Postings:
    return Postings(
        frozen(np.array([bound for each in stored for bound in each.bounds], np.float64)),
        frozen(offsets(len(each.clauses) for each in stored)),
        frozen(np.array([clause[0] for each in stored for clause in each.clauses], np.uint64)),
    )
