"""The slow and obvious index: a list of subscriptions, scanned from end to end."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s, frozen
from ps2stream.matching.contract import FOREVER, OWNED_BEFORE, OWNED_NOW, Probes, Subscriptions
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import Grid, Region, column_of, cover, row_of
from ps2stream.testing.generators import random_point, random_region

#: Few enough that texts meet clauses; some share the high bits that a posting's fingerprint is made of.
TERMS = [0, 1, 2, 64, 65, (1 << 64) - 1, (1 << 63) + 1]
TERMS += [0x9E3779B97F4A7C15 * n % (1 << 64) for n in range(1, 8)]

Clauses = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """One subscription as the scan keeps it; each clause is posted under its first term."""

    seq_from: int
    region: Region
    clauses: Clauses
    seq_to: int = FOREVER

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return (self.region.min_lon, self.region.min_lat, self.region.max_lon, self.region.max_lat)

    @property
    def n_bytes(self) -> int:
        return 48 + 4 * len(self.clauses) + 8 * sum(map(len, self.clauses))


class Published(NamedTuple):
    """A publication as one worker gets it, with the terms that this worker owns by the plans in use."""

    seq: int
    lon: float
    lat: float
    terms: tuple[int, ...]
    owned: frozenset[int]
    owned_before: frozenset[int] = frozenset()

    def owned_for(self, is_older: bool) -> frozenset[int]:
        return self.owned_before if is_older else self.owned


class Scan:
    """Do what GI2 does, by looking at everything."""

    def __init__(self) -> None:
        self.stored: dict[int, Stored] = {}

    def insert(self, subscriptions: list[Stored]) -> None:
        for each in subscriptions:
            self.stored.setdefault(each.seq_from, each)

    def end(self, ends: dict[int, int]) -> None:
        for seq_from, seq_to in ends.items():
            if seq_from in self.stored:
                self.stored[seq_from] = replace(self.stored[seq_from], seq_to=seq_to)

    def drop(self, seqs: Iterable[int]) -> None:
        for seq_from in seqs:
            self.stored.pop(seq_from, None)

    def matches(
        self, publications: list[Published], switch_seq: int = BEFORE_ALL_SEQS
    ) -> list[tuple[int, int]]:
        return sorted(
            (row, each.seq_from)
            for row, publication in enumerate(publications)
            for each in self.stored.values()
            if _reports(each, publication, switch_seq)
        )

    def live(self) -> list[Stored]:
        return [each for each in self.stored.values() if each.seq_to == FOREVER]


def _reports(each: Stored, publication: Published, switch_seq: int) -> bool:
    """Tell whether the worker that owns some of a text's terms reports a match."""
    if not each.seq_from < publication.seq < each.seq_to:
        return False
    if not each.region.contains(publication.lon, publication.lat):
        return False
    satisfied = [clause for clause in each.clauses if set(clause) <= set(publication.terms)]
    return bool(satisfied) and satisfied[0][0] in publication.owned_for(each.seq_from <= switch_seq)


def n_candidates(grid: Grid, max_cells: int, stored: list[Stored], publication: Published) -> int:
    """Count the postings in the lists that a publication has to walk, none of which is divided."""
    n = 0
    for each in stored:
        area = cover(grid, np.array(each.bounds), 0, max_cells)
        column = column_of(grid, publication.lon) >> area.level
        row = row_of(grid, publication.lat) >> area.level
        n_columns = 1 << (grid.bits - area.level)
        columns = {(area.column + i) % n_columns for i in range(area.n_columns)}
        if column in columns and area.row <= row < area.row + area.n_rows:
            looked_up = publication.owned | publication.owned_before
            n += len({clause[0] for clause in each.clauses} & looked_up)
    return n


def cells_of(grid: Grid, region: Region) -> set[int]:
    """List the finest cells that a region touches, by asking for every cell."""
    last = 1 << grid.bits
    first_column, last_column = column_of(grid, region.min_lon), column_of(grid, region.max_lon)
    columns = {c for c in range(last) if first_column <= c <= last_column}
    if region.min_lon > region.max_lon:
        columns = {c for c in range(last) if c >= first_column or c <= last_column}
    rows = range(row_of(grid, region.min_lat), row_of(grid, region.max_lat) + 1)
    return {row << grid.bits | column for row in rows for column in columns}


def random_subscriptions(rng: random.Random, n: int, first_seq: int) -> list[Stored]:
    """Draw subscriptions of one to four clauses on awkward regions; seqs leave gaps between them."""
    return [Stored(first_seq + 2 * i, Region(*random_region(rng)), random_clauses(rng)) for i in range(n)]


def random_clauses(rng: random.Random) -> Clauses:
    clauses = [tuple(rng.sample(TERMS, rng.choice((1, 1, 2, 3)))) for _ in range(rng.choice((1, 1, 2, 4)))]
    # As the registrar stores them: no clause twice.
    return tuple(dict.fromkeys(tuple(clause) for clause in clauses))


def random_publications(rng: random.Random, n: int, seqs: range, near: list[Stored]) -> list[Published]:
    """Draw publications, most of them in a corner of a region that is there."""
    published = []
    for _ in range(n):
        target = rng.choice(near).bounds if near and rng.random() < 0.8 else None
        lon, lat = random_point(rng, target)
        terms = tuple(sorted(rng.sample(TERMS, rng.choice((0, 1, 3, 6, len(TERMS))))))
        owned = terms if rng.random() < 0.7 else rng.sample(terms, len(terms) // 2)
        published.append(Published(rng.choice(seqs), lon, lat, terms, frozenset(owned)))
    return published


def columns_of(subscriptions: list[Stored]) -> Subscriptions:
    clauses = [clause for each in subscriptions for clause in each.clauses]
    return Subscriptions(
        frozen(np.array([each.seq_from for each in subscriptions], np.int64)),
        frozen(np.array([each.seq_to for each in subscriptions], np.int64)),
        frozen(np.array([bound for each in subscriptions for bound in each.bounds], np.float64)),
        frozen(offsets(len(each.clauses) for each in subscriptions)),
        frozen(offsets(map(len, clauses))),
        frozen(np.array([term for clause in clauses for term in clause], np.uint64)),
    )


def probes_of(published: list[Published], switch_seq: int = BEFORE_ALL_SEQS) -> Probes:
    bits = [
        OWNED_NOW * (term in each.owned) | OWNED_BEFORE * (term in each.owned_before)
        for each in published
        for term in each.terms
    ]
    return Probes(
        frozen(np.array([each.seq for each in published], np.int64)),
        frozen(np.array([each.lon for each in published], np.float64)),
        frozen(np.array([each.lat for each in published], np.float64)),
        frozen(offsets(len(each.terms) for each in published)),
        frozen(np.array([term for each in published for term in each.terms], np.uint64)),
        frozen(np.array(bits, np.uint8)),
        switch_seq,
    )


def offsets(lengths: Iterable[int]) -> Int64s:
    return np.cumsum([0, *lengths], dtype=np.int64)
