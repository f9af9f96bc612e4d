"""GI2 against a naive version of the same idea: inserts, probes, ends, bytes.

Contenders take turns in one run, so that a noisy machine is noisy for all of them. Time is processor time of
the one thread that works.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import frozen
from ps2stream.matching.contract import IndexSettings, Probes, Subscriptions, WorkerIndex
from ps2stream.matching.index import GI2
from ps2stream.model.space import WORLD, Grid
from ps2stream_bench.micro.naive_index import NaiveIndex
from ps2stream_bench.workloads import Arrays

BEFORE_ALL = -(1 << 63)
#: A third of the subscriptions end: as many as make compaction due.
_END_SHARE = 1 / 3
_WARM_UP = 0.1
_COUNTER_BITS = 6


class Contender(NamedTuple):
    """A version of the index on one grid; ``max_cells`` is 0 for the naive one, which has no such limit."""

    name: str
    bits: int
    max_cells: int

    def fill(self, subs: Subscriptions) -> WorkerIndex:
        """Return an index of subscriptions."""
        index = self.build(_counters(subs))
        index.insert(subs)
        return index

    def build(self, counters: Grid) -> WorkerIndex:
        grid = Grid.over(WORLD, self.bits)
        if self.name == "naive":
            return NaiveIndex(IndexSettings(grid, counters))
        return GI2.create(IndexSettings(grid, counters, self.max_cells))


class Measured(NamedTuple):
    """What one turn of one contender came to."""

    inserts_per_s: float
    ends_per_s: float
    deletes_per_s: float | None  # with the compaction they bring about; the naive version has none
    publications_per_s: float
    candidates_per_publication: float
    matches_per_publication: float
    postings_per_subscription: float
    bytes_per_subscription: float


class ProbeCosts(NamedTuple):
    """What a publication takes on average: seconds of the processor, and what it looks at."""

    seconds: float
    lookups: float
    candidates: float
    matches: float


def probe_costs(index: WorkerIndex, probes: Probes) -> ProbeCosts:
    """Match all publications, some of them twice to warm up."""
    n = len(probes.seq)
    index.probe(_head_of(probes, int(_WARM_UP * n)), BEFORE_ALL)
    before = {name: int(counted.sum()) for name, counted in index.cell_counters().items()}
    seconds = _seconds(lambda: index.probe(probes, BEFORE_ALL))
    counted = {name: int(cells.sum()) - before[name] for name, cells in index.cell_counters().items()}
    return ProbeCosts(seconds / n, counted["lookups"] / n, counted["candidates"] / n, counted["matches"] / n)


def measure(contender: Contender, arrays: Arrays) -> Measured:
    """Fill an index, match all publications, end some subscriptions and compact what is left."""
    subs, probes = arrays
    index = contender.build(_counters(subs))
    n_subs, n_publications = len(subs.seq_from), len(probes.seq)
    insert_s = _seconds(lambda: index.insert(subs))
    index.probe(_head_of(probes, int(_WARM_UP * n_publications)), BEFORE_ALL)
    n_before = _sizes(index)[0]
    started = time.process_time()
    found = index.probe(probes, BEFORE_ALL)
    probe_s = time.process_time() - started
    n_candidates, n_postings, n_bytes = _sizes(index)
    ended = frozen(np.random.default_rng(0).permutation(subs.seq_from)[: int(_END_SHARE * n_subs)])
    seq_to = int(probes.seq[-1]) + 1
    end_s = _seconds(lambda: index.end(ended, frozen(np.full(len(ended), seq_to))))
    compact_s = _seconds(lambda: index.compacted(seq_to)) if isinstance(index, GI2) else None
    return Measured(
        inserts_per_s=n_subs / insert_s,
        ends_per_s=len(ended) / end_s,
        deletes_per_s=None if compact_s is None else len(ended) / (end_s + compact_s),
        publications_per_s=n_publications / probe_s,
        candidates_per_publication=(n_candidates - n_before) / n_publications,
        matches_per_publication=len(found.publication) / n_publications,
        postings_per_subscription=n_postings / n_subs,
        bytes_per_subscription=n_bytes / n_subs,
    )


def take_turns(
    contenders: Sequence[Contender], arrays: Arrays, n_repetitions: int, seed: int
) -> Iterable[tuple[int, Contender, Measured]]:
    """Measure every contender once, then every one again in another order; kernels are compiled before."""
    rng = np.random.default_rng([seed, 9])
    small = Arrays(_first_rows(arrays.subscriptions, 1000), _head_of(arrays.probes, 100))
    for contender in {contender.name: contender for contender in contenders}.values():
        measure(contender, small)
    for repetition in range(n_repetitions):
        for number in rng.permutation(len(contenders)):
            gc.collect()
            yield repetition, contenders[number], measure(contenders[number], arrays)


def _sizes(index: WorkerIndex) -> tuple[int, int, int]:
    """Return candidates so far, postings and bytes; the counters of cells are no part of either index."""
    counts = index.counts()
    if isinstance(index, NaiveIndex):  # its counters do not lie in its arrays
        return counts.n_candidates, counts.n_postings, counts.n_bytes
    n_counter_bytes = sum(counter.nbytes for counter in index.cell_counters().values())
    return counts.n_candidates, counts.n_postings, counts.n_bytes - n_counter_bytes


def _counters(subs: Subscriptions) -> Grid:
    bounds = subs.bounds.reshape(-1, 4)
    low, high = bounds[:, :2].min(axis=0), bounds[:, 2:].max(axis=0)
    return Grid.over((float(low[0]), float(low[1]), float(high[0]), float(high[1])), _COUNTER_BITS)


def _head_of(probes: Probes, n: int) -> Probes:
    return probes._replace(seq=probes.seq[:n], lon=probes.lon[:n], lat=probes.lat[:n])


def _first_rows(subs: Subscriptions, n: int) -> Subscriptions:
    return subs._replace(seq_from=subs.seq_from[:n], seq_to=subs.seq_to[:n], bounds=subs.bounds[: 4 * n])


def _seconds(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started
