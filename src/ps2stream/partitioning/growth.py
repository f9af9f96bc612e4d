"""The kd^t-tree while it grows: regions, and the units of load that workers are given."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import Int64s
from ps2stream.model.space import Grid
from ps2stream.partitioning.grid import all_held
from ps2stream.partitioning.load import Costs, Rates, load_of, rates_of
from ps2stream.partitioning.sample import Cells, Digest, cells_of
from ps2stream.partitioning.similarity import similarity
from ps2stream.partitioning.space_split import (
    Counts,
    Cut,
    Held,
    count_held,
    cut_box,
    looks_of,
    median_cut,
    weights_of,
)
from ps2stream.partitioning.text_split import TermTable, some_terms, split_terms, term_table


@dataclass(slots=True, eq=False)
class Unit:
    """A box, or some terms of a box: what one worker gets as a whole."""

    region: TreeRegion
    terms: Int64s | None  # rows of the region's table; None: all of the box
    publications: Int64s  # those of the sample that reach it
    subscriptions: Int64s
    counts: Counts
    load: float
    is_final: bool = False  # nothing divides it further


@dataclass(slots=True, eq=False)
class TreeRegion:
    """A node of the tree: cut in two, or a leaf that is one unit or has a unit for each set of its terms."""

    held: Held
    is_text: bool = False  # in the paper's N_t
    cut: Cut | None = None
    halves: tuple[TreeRegion, TreeRegion] | None = None
    counts: Counts | None = None
    table: TermTable | None = None

    def leaves(self) -> Iterator[TreeRegion]:
        if self.halves is None:
            yield self
        else:
            for half in self.halves:
                yield from half.leaves()


class Ground:
    """The sample as regions divide it, and what it costs."""

    def __init__(self, digest: Digest, grid: Grid, costs: Costs) -> None:
        self.digest = digest
        self.grid = grid
        self.cells: Cells = cells_of(grid, digest.lon, digest.lat, digest.bounds)
        self.rates: Rates = rates_of(costs, digest.live_weight, digest.churn_weight)

    def everything(self) -> TreeRegion:
        """Return the root: the whole grid with all of the sample."""
        return TreeRegion(all_held(self.grid, self.digest))

    def load(self, counts: Counts) -> float:
        return float(load_of(self.rates, *map(float, counts)))

    def similarity(self, region: TreeRegion) -> float:
        return similarity(self.digest, region.held.publications, region.held.subscriptions)

    def halves(self, region: TreeRegion, cut: Cut) -> tuple[TreeRegion, TreeRegion]:
        low, high = cut_box(self.cells, region.held, cut)
        return TreeRegion(low, region.is_text), TreeRegion(high, region.is_text)

    def median_cuts(self, region: TreeRegion) -> list[Cut]:
        """Return where half of the publications lie on either side, in x and in y."""
        weights = np.ones(len(region.held.publications))
        cuts = [median_cut(self.cells, region.held, axis, weights) for axis in (0, 1)]
        return [cut for cut in cuts if cut is not None]

    def best_cut(self, region: TreeRegion) -> tuple[Cut, tuple[TreeRegion, TreeRegion]] | None:
        """Cut where half of the load lies on either side, in the direction whose heavier half is lighter."""
        # By the paper's formula all publications of a region cost the same.
        match = 0.0 if self.rates.is_paper else self.rates.match
        weights = weights_of(self.digest, region.held, match, max(self.rates.publication, 1.0))
        found = None
        for axis in (0, 1):
            cut = median_cut(self.cells, region.held, axis, weights)
            if cut is None:
                continue
            halves = self.halves(region, cut)
            heavier = max(self.load(self.counts(half)) for half in halves)
            if found is None or heavier < found[0]:
                found = heavier, cut, halves
        return found and (found[1], found[2])

    def whole(self, region: TreeRegion) -> Unit:
        """Make one unit of a region."""
        counts, held = self.counts(region), region.held
        reaching = held.publications[looks_of(self.digest, held) > 0.0]
        return Unit(region, None, reaching, held.subscriptions, counts, self.load(counts))

    def counts(self, region: TreeRegion) -> Counts:
        """Count what reaches the owner of a region, once."""
        if region.counts is None:
            region.counts = count_held(self.digest, region.held)
        return region.counts

    def table(self, region: TreeRegion) -> TermTable:
        """Invert what a region holds, once."""
        if region.table is None:
            region.table = term_table(self.digest, region.held.publications, region.held.subscriptions)
        return region.table

    def text_units(self, region: TreeRegion, terms: Int64s | None, n_parts: int) -> list[Unit]:
        """Divide terms of a region (all, or some rows of its table); sets without any are left out."""
        table = self.table(region)
        rows = np.arange(len(table.terms)) if terms is None else terms
        parts = split_terms(some_terms(table, rows), n_parts, self.rates)
        loads = parts.loads(self.rates)
        units = []
        for part in range(n_parts):
            chosen = rows[parts.part_of == part]
            if len(chosen):
                own = some_terms(table, chosen)
                publications = region.held.publications[np.unique(own.publications)]
                subscriptions = region.held.subscriptions[np.unique(own.subscriptions)]
                counts = parts.counts(part)
                units.append(Unit(region, chosen, publications, subscriptions, counts, float(loads[part])))
        return units


class Divisions:
    """What a region would cost in any number of parts, by space and by text; each is worked out once."""

    def __init__(self, ground: Ground, region: TreeRegion) -> None:
        self.region = region
        self._ground = ground
        load = ground.load(ground.counts(region))
        self._splits: list[tuple[TreeRegion, Cut, tuple[TreeRegion, TreeRegion]]] = []
        self._by_space = [load]
        self._by_text = {1: load}
        # Of leaves with the same load the one that came first is cut first.
        self._order = itertools.count()
        self._leaves = [(-load, next(self._order), region)]

    @property
    def is_paper(self) -> bool:
        return self._ground.rates.is_paper

    @property
    def has_terms(self) -> bool:
        """Say whether anybody in the region waits for anything."""
        return len(self._ground.table(self.region).terms) > 0

    def by_space(self, n_parts: int) -> float:
        """Return the load of this many boxes, the heaviest cut first; infinite where there are fewer."""
        while len(self._by_space) < n_parts and self._leaves:
            load, _, leaf = heapq.heappop(self._leaves)
            found = self._ground.best_cut(leaf)
            if found is None:
                continue
            self._splits.append((leaf, *found))
            total = self._by_space[-1] + load
            for half in found[1]:
                half_load = self._ground.load(self._ground.counts(half))
                heapq.heappush(self._leaves, (-half_load, next(self._order), half))
                total += half_load
            self._by_space.append(total)
        return self._by_space[n_parts - 1] if n_parts <= len(self._by_space) else math.inf

    def by_text(self, n_parts: int) -> float:
        """Return the load of this many sets of terms; infinite where there are fewer terms."""
        if n_parts not in self._by_text:
            table = self._ground.table(self.region)
            if n_parts > len(table.terms):
                return math.inf
            parts = split_terms(table, n_parts, self._ground.rates)
            self._by_text[n_parts] = float(parts.loads(self._ground.rates).sum())
        return self._by_text[n_parts]

    def cut_space(self, n_parts: int) -> list[Unit]:
        """Cut the region into boxes for good, as many as asked for or as there are."""
        self.by_space(n_parts)
        for region, cut, halves in self._splits[: n_parts - 1]:
            region.cut, region.halves = cut, halves
        return [self._ground.whole(leaf) for leaf in self.region.leaves()]

    def cut_text(self, n_parts: int) -> list[Unit]:
        """Divide the terms of the region for good."""
        return self._ground.text_units(self.region, None, n_parts)
