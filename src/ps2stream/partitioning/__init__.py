"""Partitioners: how the load is divided between workers (Sec. IV-B).

Each one turns a sample of the stream into an immutable :class:`~ps2stream.partitioning.plan.Plan`
and is chosen by name.

    plan          what a plan is: who owns which (cell, term), H1; open it first
    sample, load  what a partitioner sees, and what it takes for the load of a worker
    hybrid        the paper's Algorithm 1, over the regions and units of growth; parts are cut by
                  space_split and text_split, compared by similarity, given to workers by merge
    kdt_tree, flatten           what is kept of it, and its way into H1
    grid, kd_tree, r_tree       baselines that divide space
    frequency, hypergraph, metric   baselines that divide terms

Nothing in here knows a stream: ``ps2stream.planning`` draws the sample.
"""

from __future__ import annotations

from ps2stream.errors import ConfigError
from ps2stream.partitioning.frequency import FrequencyPartitioner
from ps2stream.partitioning.grid import GridPartitioner
from ps2stream.partitioning.hybrid import HybridPartitioner
from ps2stream.partitioning.hypergraph import HypergraphPartitioner
from ps2stream.partitioning.kd_tree import KdTreePartitioner
from ps2stream.partitioning.load import STANDARD_COSTS, Costs
from ps2stream.partitioning.metric import MetricPartitioner
from ps2stream.partitioning.plan import Partitioner, Plan
from ps2stream.partitioning.r_tree import RTreePartitioner
from ps2stream.partitioning.sample import Sample

#: In the order of the paper's comparison: space, text, both.
PARTITIONERS: dict[str, type[Partitioner]] = {
    partitioner.name: partitioner
    for partitioner in (
        GridPartitioner,
        KdTreePartitioner,
        RTreePartitioner,
        FrequencyPartitioner,
        HypergraphPartitioner,
        MetricPartitioner,
        HybridPartitioner,
    )
}

__all__ = ["PARTITIONERS", "Partitioner", "Plan", "Sample", "partitioner_named"]


def partitioner_named(name: str, costs: Costs = STANDARD_COSTS) -> Partitioner:
    """Return the partitioner of a name, with its default settings."""
    if name not in PARTITIONERS:
        raise ConfigError(f"partitioner must be one of {', '.join(PARTITIONERS)}; got {name!r}")
    return PARTITIONERS[name](costs)
