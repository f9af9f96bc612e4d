"""Why a publication does or does not match a subscription, step by step as the engine decides it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ps2stream.deployment.publication_lookup import KnownPublication
from ps2stream.deployment.subscription_history import Version
from ps2stream.model.expressions import parse
from ps2stream.model.space import Region
from ps2stream.model.square_region import KM_PER_DEGREE
from ps2stream.partitioning.plan import Plan
from ps2stream.text.frequencies import frequency
from ps2stream.text.hashing import hash_term
from ps2stream.text.terms import terms_of
from ps2stream.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Posting:
    """The term that a clause is posted under, how many texts of the plan's sample had it, and who owns it."""

    term: str
    frequency: int
    worker: int


@dataclass(frozen=True, slots=True)
class Clause:
    """Terms of which a text must have all; one satisfied clause is enough."""

    terms: tuple[str, ...]
    missing: tuple[str, ...]
    posting: Posting | None

    @property
    def is_satisfied(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a point lies outside a region, in degrees: north and east positive, 0 inside."""

    north: float
    east: float

    def km(self, lat: float) -> tuple[float, float]:
        """Return both in kilometres, the second along the parallel of a latitude."""
        return self.north * KM_PER_DEGREE, self.east * KM_PER_DEGREE * math.cos(math.radians(lat))


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of grid^t that holds the publication."""

    number: int
    bounds: tuple[float, float, float, float]
    plan: int
    partitioner: str
    n_workers: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Each test with what it came to; clauses in the order in which they are tried."""

    publication: KnownPublication
    version: Version
    terms: tuple[str, ...]
    stopped: tuple[str, ...]
    clauses: tuple[Clause, ...]
    is_inside: bool
    offset: Offset
    is_visible: bool
    cell: Cell | None

    @property
    def reporting(self) -> Clause | None:
        """Return the clause that reports: the first satisfied one, if the rest of the tests agree."""
        if not self.matches:
            return None
        return next(clause for clause in self.clauses if clause.is_satisfied)

    @property
    def is_satisfied(self) -> bool:
        return any(clause.is_satisfied for clause in self.clauses)

    @property
    def matches(self) -> bool:
        return self.is_visible and self.is_inside and self.is_satisfied


def explain(
    publication: KnownPublication, version: Version, tokenizer: Tokenizer, plan: Plan | None
) -> Explanation:
    """Apply each test; without a plan nobody owns anything yet."""
    terms = tokenizer.terms_of(publication.text)
    normal_form = parse(version.expression).without(tokenizer.stop_words).clauses()
    # The engine knows terms by their hashes, and so by another order of clauses than the alphabet's.
    ordered = sorted(normal_form, key=lambda clause: sorted(map(hash_term, clause)))
    clauses = tuple(
        Clause(
            clause, tuple(term for term in clause if term not in terms), _posting(clause, publication, plan)
        )
        for clause in ordered
    )
    return Explanation(
        publication,
        version,
        tuple(sorted(terms)),
        tuple(sorted(terms_of(publication.text) - terms)),
        clauses,
        version.region.contains(publication.lon, publication.lat),
        offset_from(version.region, publication.lon, publication.lat),
        version.sees(publication.seq),
        _cell(publication, plan),
    )


def offset_from(region: Region, lon: float, lat: float) -> Offset:
    """Measure how far a point lies outside; east or west, whichever way is shorter."""
    north = max(0.0, lat - region.max_lat) or min(0.0, lat - region.min_lat)
    if region.contains(lon, region.min_lat):
        return Offset(north, 0.0)
    beyond_east, beyond_west = (lon - region.max_lon) % 360, (region.min_lon - lon) % 360
    return Offset(north, beyond_east if beyond_east <= beyond_west else -beyond_west)


def _posting(clause: tuple[str, ...], publication: KnownPublication, plan: Plan | None) -> Posting | None:
    if plan is None:
        return None
    counts = {term: int(frequency(plan.frequencies, np.uint64(hash_term(term)))) for term in clause}
    rarest = min(clause, key=lambda term: (counts[term], hash_term(term)))
    worker = plan.owner(publication.lon, publication.lat, hash_term(rarest))
    return Posting(rarest, counts[rarest], worker)


def _cell(publication: KnownPublication, plan: Plan | None) -> Cell | None:
    if plan is None:
        return None
    number = plan.grid.cell(publication.lon, publication.lat)
    return Cell(number, plan.grid.bounds_of(number), plan.number, plan.partitioner, plan.n_workers)
