"""The figures, in the order of the report: the paper's, what we add, and the comparison with peers.

A module is imported when its figure is asked for, so that ``ps2stream-bench --help`` is instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ps2stream_bench.figure import Figure

#: The module of every figure, by its name on the command line.
MODULES: dict[str, str] = {
    "baselines": "baselines",
    "hybrid": "hybrid",
    "scalability": "scalability",
    "migration": "migration",
    "adjustment": "adjustment",
    "peers": "peers",
    "replay": "replay",
    "microbatch": "microbatch",
    "offered-load": "offered_load",
    "recovery": "recovery",
    "latency": "latency",
    "realtime": "realtime",
    "faults": "faults",
    "soak": "soak",
    "cluster": "cluster",
    "cluster-batch": "cluster_batch",
    "subscriptions": "subscriptions",
    "keywords": "keywords",
    "region-size": "region_size",
    "granularity": "granularity",
    "publication-length": "publication_length",
    "matches": "matches",
    "gi2": "gi2",
    "limits": "limits",
    "dispatcher": "dispatcher",
    "journal": "journal",
    "roles": "roles",
    "prediction": "prediction",
    "planning": "planning",
    "sensitivity": "sensitivity",
}


def figures_named(names: Sequence[str]) -> list[Figure]:
    """Return figures in the order of the report; ``all`` stands for every one."""
    chosen = [name for name in MODULES if name in names or "all" in names]
    return [import_module(f"{__name__}.{MODULES[name]}").FIGURE for name in chosen]
