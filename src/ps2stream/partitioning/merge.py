"""Give units of load to workers: MergeNodesIntoPartitions (Sec. IV-B, node merging)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s, Ragged
from ps2stream.kernels import kernel
from ps2stream.partitioning.growth import Unit
from ps2stream.partitioning.load import Rates, load_of
from ps2stream.partitioning.text_split import add_bit, count_shared


class Merged(NamedTuple):
    """The worker of every unit, and the load of every worker."""

    worker_of: Int32s
    loads: Float64s


def merge_units(units: Sequence[Unit], n_workers: int, rates: Rates, sizes: tuple[int, int]) -> Merged:
    """Assign units, heaviest first, to the worker whose load grows least, or to the lightest one.

    Units of one region share publications, neighbours share subscriptions: together they cost less. By the
    paper the worker of least increase is taken unless that raises L_max/L_min. That ratio is
    infinite until every worker has something, and the rule would put everything on the first
    one. Here a worker may take a unit while that leaves it below the largest load, or below an even share.
    """
    order = np.argsort([-unit.load for unit in units], kind="stable")
    publications = _ragged([units[i].publications for i in order])
    subscriptions = _ragged([units[i].subscriptions for i in order])
    looks = np.array([units[i].counts.n_looks for i in order])
    share = sum(unit.load for unit in units) / n_workers
    words = (n_workers + 63) // 64
    held_by = np.zeros((sizes[0], words), np.uint64), np.zeros((sizes[1], words), np.uint64)
    worker_of = np.empty(len(units), np.int32)
    loads = _merge(publications, subscriptions, looks, rates, share, held_by, n_workers, worker_of)
    by_unit = np.empty(len(units), np.int32)
    by_unit[order] = worker_of
    return Merged(by_unit, loads)


def _ragged(rows: list[Int64s]) -> Ragged:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return Ragged(np.concatenate(rows).astype(np.int32), offsets)


@kernel
def _merge(
    publications: Ragged,
    subscriptions: Ragged,
    looks: Float64s,
    rates: Rates,
    share: float,
    held_by: tuple[np.ndarray, np.ndarray],
    n_workers: int,
    worker_of: Int32s,
) -> Float64s:
    counts = np.zeros((3, n_workers))
    loads = np.zeros(n_workers)
    shared = np.empty((2, n_workers), np.int64)
    for unit in range(len(worker_of)):
        pubs = publications.values[publications.offsets[unit] : publications.offsets[unit + 1]]
        subs = subscriptions.values[subscriptions.offsets[unit] : subscriptions.offsets[unit + 1]]
        shared[:] = 0
        count_shared(held_by[0], pubs, shared[0])
        count_shared(held_by[1], subs, shared[1])
        chosen, least = 0, np.inf
        lightest = 0
        for worker in range(n_workers):
            if loads[worker] < loads[lightest]:
                lightest = worker
            after = load_of(
                rates,
                counts[0, worker] + len(pubs) - shared[0, worker],
                counts[1, worker] + len(subs) - shared[1, worker],
                counts[2, worker] + looks[unit],
            )
            increase = after - loads[worker]
            if increase < least - 1e-9 * after or (
                increase <= least + 1e-9 * after and loads[worker] < loads[chosen]
            ):
                chosen, least = worker, increase
        worker = chosen if loads[chosen] + least <= max(loads.max(), share) else lightest
        worker_of[unit] = worker
        counts[0, worker] += len(pubs) - shared[0, worker]
        counts[1, worker] += len(subs) - shared[1, worker]
        counts[2, worker] += looks[unit]
        loads[worker] = load_of(rates, counts[0, worker], counts[1, worker], counts[2, worker])
        add_bit(held_by[0], pubs, worker)
        add_bit(held_by[1], subs, worker)
    return loads
