"""The frequency partitioner (text): terms dealt out by the work they bring.

The paper names it and says no more than that it uses "the frequency values of the terms"
(Sec. VI-B). Reconstructed here: a term costs what Definition 1 charges for its publications and
subscriptions, weight(t) = c1 f q + c2 f + c3 q, and the heaviest goes first to the lightest worker.
"""

from __future__ import annotations

import numpy as np

from ps2stream.arrays import Float64s, Int64s
from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import DENSE, PLAN_BITS, deal_out, dense_bounds
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, rates_of
from ps2stream.partitioning.plan import Plan, owners_of_terms
from ps2stream.partitioning.sample import Sample, digest_of
from ps2stream.partitioning.text_split import all_terms, term_weights

#: Terms that get an entry in the table of owners, the heaviest ones. The rest is many and light:
#: spread by their hashes over 64 workers they add less than 1 % to the largest load.
MAX_TERMS = 20_000


class FrequencyPartitioner:
    """Divide the terms of the whole space by their weights alone."""

    name = "frequency"

    def __init__(
        self,
        costs: Costs = STANDARD_COSTS,
        max_terms: int = MAX_TERMS,
        bits: int = PLAN_BITS,
        dense: float = DENSE,
    ) -> None:
        self.costs = costs
        self.max_terms = max_terms
        self.bits = bits
        self.dense = dense

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.dense), self.bits)
        table = all_terms(digest)
        weights = term_weights(table, rates_of(self.costs, digest.live_weight, digest.churn_weight))
        chosen = heaviest(weights, self.max_terms)
        terms = digest.vocabulary[table.terms[chosen]]
        h1 = owners_of_terms(grid.n_cells, terms, deal_out(weights[chosen], n_workers), n_workers)
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies)


def heaviest(weights: Float64s, n: int) -> Int64s:
    """Return the positions of the ``n`` largest weights in ascending order; of equal ones the first."""
    return np.sort(np.argsort(-weights, kind="stable")[:n])
