"""Partitioners: how the load is divided between workers (Sec. IV-B).

Each one turns a sample of the stream into an immutable :class:`~ps2stream.partitioning.plan.Plan`
and is chosen by name.
"""

from __future__ import annotations

from ps2stream.errors import ConfigError
from ps2stream.partitioning.grid import GridPartitioner
from ps2stream.partitioning.plan import Partitioner, Plan, Sample

PARTITIONERS: dict[str, type[Partitioner]] = {GridPartitioner.name: GridPartitioner}

__all__ = ["PARTITIONERS", "Partitioner", "Plan", "Sample", "partitioner_named"]


def partitioner_named(name: str) -> Partitioner:
    """Return the partitioner of a name, with its default settings."""
    if name not in PARTITIONERS:
        raise ConfigError(f"partitioner must be one of {', '.join(sorted(PARTITIONERS))}; got {name!r}")
    return PARTITIONERS[name]()
