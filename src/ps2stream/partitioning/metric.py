"""The metric partitioner (text; S3-TM's SALB by Basik et al.): related terms together, loads alike.

Its load is the number of publications that a part gets; see :mod:`ps2stream.partitioning.text_split`.
"""

from __future__ import annotations

import numpy as np

from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import DENSE, PLAN_BITS, dense_bounds
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, Rates
from ps2stream.partitioning.plan import Plan, owners_of_terms
from ps2stream.partitioning.sample import Sample, digest_of
from ps2stream.partitioning.text_split import all_terms, some_terms, split_terms

_PUBLICATIONS = Rates(match=0.0, publication=1.0, subscription=0.0, is_paper=False)


class MetricPartitioner:
    """Divide the terms of the whole space."""

    name = "metric"

    def __init__(self, costs: Costs = STANDARD_COSTS, bits: int = PLAN_BITS, dense: float = DENSE) -> None:
        self.costs = costs
        self.bits = bits
        self.dense = dense

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.dense), self.bits)
        table = all_terms(digest)
        # A term that no publication of the sample holds has no metric; the hash of H1 spreads such terms.
        table = some_terms(table, np.flatnonzero(np.diff(table.publication_offsets)))
        parts = split_terms(table, n_workers, _PUBLICATIONS)
        h1 = owners_of_terms(grid.n_cells, digest.vocabulary[table.terms], parts.part_of, n_workers)
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies)
