"""Hybrid partitioning (Sec. IV-B, Algorithm 1): space or text, whichever costs a region less.

Comments cite the lines of the paper's Algorithm 1.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ps2stream.model.space import Grid
from ps2stream.partitioning.flatten import flatten
from ps2stream.partitioning.grid import DENSE, PLAN_BITS, dense_bounds
from ps2stream.partitioning.growth import Divisions, Ground, TreeRegion, Unit
from ps2stream.partitioning.load import STANDARD_COSTS, Costs
from ps2stream.partitioning.merge import Merged, merge_units
from ps2stream.partitioning.plan import Estimate, Plan, balance_of
from ps2stream.partitioning.sample import Sample, digest_of


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """The thresholds of Algorithm 1; docs/performance.md shows what each of them does to a plan.

    ``sigma``: L_max / L_min that the plan must not exceed.
    ``delta``: from this text similarity on a region is not looked into (N_s). The cosine is ruled by the most
    frequent words and high nearly everywhere: 0.99 for Q1, 0.97 for Q2.
    ``epsilon``: a smaller gain in dissimilarity does not count as one (line 9).
    ``theta``: how many units there may be for each worker, so that m workers have at most theta m.
    ``min_publications``: regions with fewer are not cut any more: a handful of texts is unlike everything.
    ``force_text``: divide regions of N_t by text whatever it costs, as the paper does. Off, both
    ways are compared there as well.
    """

    sigma: float = 1.1
    delta: float = 0.98
    epsilon: float = 0.02
    theta: int = 16
    min_publications: int = 1000
    force_text: bool = False
    bits: int = PLAN_BITS
    dense: float = DENSE


class HybridPartitioner:
    """Divide space and text together."""

    name = "hybrid"

    def __init__(self, costs: Costs = STANDARD_COSTS, settings: HybridSettings | None = None) -> None:
        self.costs = costs
        self.settings = settings or HybridSettings()

    def plan(self, sample: Sample, n_workers: int, *, number: int = 1, seed: int = 0) -> Plan:
        digest = digest_of(sample)
        grid = Grid.over(dense_bounds(digest, self.settings.dense), self.settings.bits)
        ground = Ground(digest, grid, self.costs)
        done = partition_workload(ground, n_workers, self.settings)
        tree, h1 = flatten(ground, done.root, done.units, done.merged.worker_of)
        estimate = Estimate(tuple(done.merged.loads.tolist()), self.costs, self.settings.sigma)
        return Plan(number, self.name, n_workers, grid, h1, digest.frequencies, estimate, tree)


@dataclass(frozen=True, slots=True)
class Partitioned:
    """What Algorithm 1 returns: the tree, its units and the worker of each."""

    root: TreeRegion
    units: list[Unit]
    merged: Merged


def partition_workload(ground: Ground, n_workers: int, settings: HybridSettings) -> Partitioned:
    """Run Algorithm 1."""
    root = ground.everything()  # Line 1.
    # A quarter of the units is enough to tell regions apart; the rest is left to balance them.
    regions = separate(ground, root, settings, settings.theta * n_workers // 4)  # Lines 2-12.
    divisions = [Divisions(ground, region) for region in regions]
    numbers = [1] * len(regions)
    if len(regions) < n_workers:  # Line 13.
        numbers = numbers_of_partitions(divisions, n_workers, settings)  # Line 14.
    units = [
        unit
        for division, number in zip(divisions, numbers, strict=True)
        for unit in partition_region(division, number, settings)  # Lines 15-16.
    ]
    sizes = ground.digest.n_publications, ground.digest.n_subscriptions
    most = settings.theta * n_workers
    while True:  # Line 17.
        if can_balance(units, n_workers, settings.sigma):
            merged = merge_units(units, n_workers, ground.rates, sizes)  # Line 18.
            if balance_of(merged.loads.tolist()) <= settings.sigma:  # Lines 19-22.
                return Partitioned(root, units, merged)
        divisible = sorted((unit for unit in units if not unit.is_final), key=_by_load, reverse=True)
        if not divisible or len(units) >= most:  # Lines 26-27.
            return Partitioned(root, units, merge_units(units, n_workers, ground.rates, sizes))
        # With many workers one more unit changes little: an eighth as many as workers are divided at a time.
        for unit in divisible[: min(max(1, n_workers // 8), most - len(units))]:  # Line 24.
            units.remove(unit)
            units += partition_unit(ground, unit, settings)  # Line 25.


def can_balance(units: list[Unit], n_workers: int, sigma: float) -> bool:
    """Say whether a merge of these units could keep sigma; it saves most of the merges.

    The worker of the heaviest unit has at least its load, and the lightest worker at most an even share. By
    the paper's formula units cost more together than apart: there the answer may be no too often, which
    only divides them further.
    """
    return _by_load(max(units, key=_by_load)) <= sigma * sum(map(_by_load, units)) / n_workers


def separate(ground: Ground, root: TreeRegion, settings: HybridSettings, most: int) -> list[TreeRegion]:
    """Find the regions where publications and subscriptions differ in their words; mark those of N_t."""
    undecided, decided = deque([root]), []  # Line 2.
    while undecided:  # Line 3.
        region = undecided.popleft()  # Line 4.
        similarity = ground.similarity(region)
        if similarity >= settings.delta:  # Lines 5-6.
            decided.append(region)
            continue
        n_regions = len(undecided) + len(decided) + 2
        best = None
        if len(region.held.publications) >= 2 * settings.min_publications and n_regions <= most:
            for cut in ground.median_cuts(region):  # Line 8.
                halves = ground.halves(region, cut)
                alpha = min(map(ground.similarity, halves))
                if best is None or alpha < best[0]:
                    best = alpha, cut, halves
        if best is None or abs(best[0] - similarity) <= settings.epsilon:  # Line 9.
            region.is_text = True  # Line 10.
            decided.append(region)
        else:
            _, region.cut, region.halves = best
            undecided += region.halves  # Line 12.
    return decided


def numbers_of_partitions(divisions: list[Divisions], total: int, settings: HybridSettings) -> list[int]:
    """Choose how many parts each region gets so that the sum of loads is least: ComputeNumberPartitions.

    ``least[i, j]`` is the paper's L[i, j]: the least load of the first i regions in j parts together.
    """
    n = len(divisions)
    least = np.full((n + 1, total + 1), np.inf)
    least[0, 0] = 0.0
    chosen = np.zeros((n + 1, total + 1), np.int64)
    for i, division in enumerate(divisions, 1):
        most = total - (n - i)
        for k in range(1, total - n + 2):
            cost = cost_of_parts(division, k, settings)  # C[i, k]
            for j in range(k + i - 1, most + 1):
                if least[i - 1, j - k] + cost < least[i, j]:
                    least[i, j] = least[i - 1, j - k] + cost
                    chosen[i, j] = k
    # A region may not have this many parts: then as many as can be had.
    j = int(np.flatnonzero(np.isfinite(least[n]))[-1])
    numbers = []
    for i in range(n, 0, -1):
        numbers.append(int(chosen[i, j]))
        j -= numbers[-1]
    return numbers[::-1]


def cost_of_parts(division: Divisions, n_parts: int, settings: HybridSettings) -> float:
    """Return the load of a region in this many parts, the cheaper way; infinite where there is none."""
    if goes_by_text(division, n_parts, settings):
        return division.by_text(n_parts)
    return division.by_space(n_parts)


def goes_by_text(division: Divisions, n_parts: int, settings: HybridSettings) -> bool:
    """Choose how to divide a region: N_t by text, N_s by the lesser load."""
    if division.region.is_text and settings.force_text:
        return division.has_terms
    space = division.by_space(n_parts)
    # More sets of terms only cost more, so two of them are a bound that is often enough to decide. Not by the
    # paper's formula, where many small parts have few pairs.
    if not division.is_paper and division.by_text(min(n_parts, 2)) >= space:
        return False
    return division.by_text(n_parts) < space


def partition_region(division: Divisions, n_parts: int, settings: HybridSettings) -> list[Unit]:
    """Divide a region into parts by text or by space: PartitionNode."""
    if goes_by_text(division, n_parts, settings):
        return division.cut_text(n_parts)
    return division.cut_space(n_parts)


def partition_unit(ground: Ground, unit: Unit, settings: HybridSettings) -> list[Unit]:
    """Divide a unit in two; one that cannot be divided comes back as final."""
    if unit.terms is None:
        pieces = partition_region(Divisions(ground, unit.region), 2, settings)
    else:
        pieces = ground.text_units(unit.region, unit.terms, 2)
    if len(pieces) < 2:
        unit.is_final = True
        return [unit]
    return pieces


def _by_load(unit: Unit) -> float:
    return unit.load
