"""The hypergraph partitioner (text; Cambazoglu et al.): terms that occur together stay together.

Cambazoglu et al., A term-based inverted index partitioning model for efficient distributed query
processing, ACM TWEB 7(3), 2013. Reconstructed here from its abstract: the terms that subscriptions
are found under are vertices, weighted by their work; the set of such terms of a publication is a net.
A publication goes to as many workers as its net has parts, so what is minimised is the sum over nets of
their parts beyond the first, while no part outweighs the average by more than ``epsilon``.
Mt-KaHyPar (Gottesbüren et al., ALENEX 2021) does the partitioning.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s, Ragged
from ps2stream.errors import ConfigError
from ps2stream.model.space import Grid
from ps2stream.partitioning.frequency import MAX_TERMS, heaviest
from ps2stream.partitioning.grid import DENSE, PLAN_BITS, dense_bounds
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, rates_of
from ps2stream.partitioning.plan import Plan, owners_of_terms
from ps2stream.partitioning.sample import Sample, digest_of
from ps2stream.partitioning.text_split import all_terms, term_weights

#: Mt-KaHyPar's deterministic preset with less effort: one attempt at the first partition instead of
#: 20, and label propagation instead of Jet to refine it. The preset takes 30 to 60 s on 50,000 nets
#: of texts, which hardly coarsen, and cuts 3 % less. The faster ``large_k`` preset gives another
#: result each time in one process, even with one thread and the same seed.
_CONFIGURATION = """
preset-type=deterministic
mode=direct
deterministic=true
p-stable-io=true
c-type=deterministic_multilevel_coarsener
i-mode=rb
i-runs=1
i-use-adaptive-ip-runs=false
i-r-lp-type=deterministic
r-lp-type=deterministic
r-rebalancer-type=deterministic
"""

#: Weights of vertices are made whole numbers with this sum; the library keeps them in 32 bits.
_TOTAL_WEIGHT = 1 << 30


@dataclass(frozen=True, slots=True)
class HypergraphSettings:
    """How large the hypergraph may be and how even its parts are to be.

    ``epsilon``: by how much a part may outweigh the average.
    ``max_terms``: vertices, the heaviest terms; the hash of H1 spreads the others.
    ``min_pins``, ``max_pins``: publications with fewer such terms, or more, give no net.
    ``max_nets``: of more different nets this many are drawn; the time grows with them.
    """

    epsilon: float = 0.03
    max_terms: int = MAX_TERMS
    min_pins: int = 2
    max_pins: int = 50
    max_nets: int = 50_000
    bits: int = PLAN_BITS
    dense: float = DENSE


class HypergraphPartitioner:
    """Divide the terms of the whole space by their weights and by the company they keep."""

    name = "hypergraph"

    def __init__(self, costs: Costs = STANDARD_COSTS, settings: HypergraphSettings | None = None) -> None:
        self.costs = costs
        self.settings = settings or HypergraphSettings()

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.settings.dense), self.settings.bits)
        table = all_terms(digest)
        weights = term_weights(table, rates_of(self.costs, digest.live_weight, digest.churn_weight))
        chosen = heaviest(weights, self.settings.max_terms)
        numbers = table.terms[chosen]
        vertices = np.full(len(digest.vocabulary), -1, np.int32)
        vertices[numbers] = np.arange(len(numbers))
        workers = self._workers(weights[chosen], digest.words, vertices, n_workers, seed)
        h1 = owners_of_terms(grid.n_cells, digest.vocabulary[numbers], workers, n_workers)
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies)

    def _workers(
        self, weights: Float64s, words: Ragged, vertices: Int32s, n_workers: int, seed: int
    ) -> Int32s:
        """Return the worker of every vertex; ``vertices`` has that of a term, or -1.

        A term above the average would leave the library no balanced partition to find, and then any
        share of the other terms is as good to it as another. Such terms get workers of their own.
        """
        alone = outweighing(weights, n_workers)
        workers = np.empty(len(weights), np.int32)
        workers[alone] = np.arange(len(alone))
        together = np.delete(np.arange(len(weights)), alone)
        renumbered = np.full(len(weights) + 1, -1, np.int32)  # the last one is for -1
        renumbered[together] = np.arange(len(together))
        nets = some_nets(nets_of(words, renumbered[vertices], self.settings), self.settings.max_nets, seed)
        n_parts = n_workers - len(alone)
        workers[together] = len(alone) + _partition(
            weights[together], nets, n_parts, self.settings.epsilon, seed
        )
        return workers


def outweighing(weights: Float64s, n_workers: int) -> Int64s:
    """Return the vertices that are, heaviest first, more than the average worker's share of what is left."""
    order = np.argsort(-weights, kind="stable")
    left = float(weights.sum())
    n = 0
    while n < min(len(order), n_workers - 1) and weights[order[n]] * (n_workers - n) > left:
        left -= float(weights[order[n]])
        n += 1
    return order[:n]


def nets_of(words: Ragged, vertices: Int32s, settings: HypergraphSettings) -> Counter[tuple[int, ...]]:
    """Count the different sets of vertices that publications hold, in the order of their appearance."""
    pins = vertices[words.values]
    offsets = np.append(0, np.cumsum(pins >= 0))[words.offsets]
    sizes = np.diff(offsets)
    held = pins[pins >= 0].tolist()
    rows = np.flatnonzero((sizes >= settings.min_pins) & (sizes <= settings.max_pins))
    spans = zip(offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True)
    return Counter(tuple(sorted(held[start:stop])) for start, stop in spans)


def some_nets(nets: Counter[tuple[int, ...]], n: int, seed: int) -> dict[tuple[int, ...], int]:
    """Draw ``n`` of the nets, all of them where there are not more."""
    if len(nets) <= n:
        return nets
    pairs = list(nets.items())
    drawn = np.random.default_rng(seed).choice(len(pairs), n, replace=False)
    return dict(pairs[i] for i in np.sort(drawn).tolist())


def _partition(
    weights: Float64s, nets: dict[tuple[int, ...], int], n_parts: int, epsilon: float, seed: int
) -> Int32s:
    """Return the part of every vertex."""
    if n_parts == 1 or not len(weights):
        return np.zeros(len(weights), np.int32)
    library, threads = _mt_kahypar()
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        # The library's set_seed() does not reach its deterministic algorithms.
        file.write(f"{_CONFIGURATION}seed={seed % (1 << 31)}\n")
        file.flush()
        context = threads.context_from_file(file.name)
    context.set_partitioning_parameters(n_parts, epsilon, library.Objective.KM1)
    context.logging = False
    share = weights / max(float(weights.sum()), 1e-300)
    whole = np.maximum(1, np.floor(share * _TOTAL_WEIGHT)).astype(np.int64)
    hypergraph = threads.create_hypergraph(
        context, len(weights), len(nets), list(nets), whole.tolist(), list(nets.values())
    )
    return np.array(hypergraph.partition(context).get_partition(), np.int32)


@cache
def _mt_kahypar() -> tuple[Any, Any]:
    """Load the library and start its threads, which a process may do once; one thread, one result."""
    try:
        import mtkahypar
    except ImportError as error:
        raise ConfigError(
            "partitioner hypergraph needs Mt-KaHyPar; install it with: pip install mtkahypar"
        ) from error
    return mtkahypar, mtkahypar.initialize(1, False)
