"""Divide the terms of a cell in two, or judge a division that is there (Sec. V-A, Phase I).

Both are decided on a sample: recent publications of the cell, and the subscriptions stored in it with
the terms that they are posted under. Loads are shares of the load of the undivided cell, so that they
can be applied to what the workers counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int32s, UInt64s, frozen
from ps2stream.partitioning.load import Costs, Rates, rates_of
from ps2stream.partitioning.sample import Sample, digest_of
from ps2stream.partitioning.text_split import TermTable, all_terms, some_terms, split_terms


class Halves(NamedTuple):
    """A cell divided by its terms: what goes, and the loads of both parts in shares of the whole."""

    terms: UInt64s
    stays: float
    goes: float
    size: float  # share of the subscriptions that go

    @property
    def lowers_total(self) -> bool:
        return self.stays + self.goes < 1.0


def divide_terms(sample: Sample, costs: Costs) -> Halves | None:
    """Divide a cell into two sets of terms of about the same load; the smaller one goes (Sec. V-A).

    None where there is nothing to divide.
    """
    if not sample.n_publications or not sample.n_subscriptions:
        return None
    table, vocabulary, rates = _table(sample, costs)
    if len(table.terms) < 2:
        return None
    parts = split_terms(table, 2, rates)
    rows = [np.flatnonzero(parts.part_of == part) for part in range(2)]
    sizes = parts.n_subscriptions
    going = int(np.argmin(sizes))
    whole = _load(table, np.arange(len(table.terms)), rates)
    if not len(rows[going]) or whole <= 0.0:
        return None
    loads = parts.loads(rates) / whole
    terms = vocabulary[table.terms[rows[going]]]
    return Halves(
        terms, float(loads[1 - going]), float(loads[going]), float(sizes[going] / max(sizes.sum(), 1))
    )


def of_owner(sample: Sample, owners: Int32s, worker: int) -> Sample:
    """Keep what one worker owns of a divided cell; ``owners`` are those of the sample's posting terms."""
    kept = np.flatnonzero(owners == worker)
    subscription = np.repeat(np.arange(sample.n_subscriptions), np.diff(sample.clause_offsets))
    # A clause each: what a subscription's other clauses are posted under is somebody else's.
    return sample._replace(
        bounds=frozen(sample.bounds.reshape(-1, 4)[subscription[kept]].reshape(-1)),
        clause_offsets=frozen(np.arange(len(kept) + 1)),
        term_offsets=frozen(np.arange(len(kept) + 1)),
        clause_terms=frozen(sample.clause_terms[kept]),
        n_live=round(sample.live_weight * len(kept)),
    )


def merged_load(sample: Sample, owners: Int32s, source: int, destination: int, costs: Costs) -> float | None:
    """Return the load of two workers' parts of a cell at one worker, in shares of both apart.

    ``owners`` are those of the sample's posting terms, one for each clause. None where one of the workers has
    nothing.
    """
    if not sample.n_publications or not sample.n_subscriptions:
        return None
    table, vocabulary, rates = _table(sample, costs)
    terms = vocabulary[table.terms]
    posted = sample.clause_terms
    order = np.argsort(posted, kind="stable")
    owner_of = owners[order[np.searchsorted(posted[order], terms)]]
    parts = [np.flatnonzero(owner_of == worker) for worker in (source, destination)]
    apart = sum(_load(table, rows, rates) for rows in parts)
    if not all(len(rows) for rows in parts) or apart <= 0.0:
        return None
    return _load(table, np.sort(np.concatenate(parts)), rates) / apart


def _table(sample: Sample, costs: Costs) -> tuple[TermTable, UInt64s, Rates]:
    digest = digest_of(sample)
    return all_terms(digest), digest.vocabulary, rates_of(costs, digest.live_weight, digest.churn_weight)


def _load(table: TermTable, rows: np.ndarray, rates: Rates) -> float:
    """Charge what a worker with some of the terms gets."""
    return float(split_terms(some_terms(table, rows), 1, rates).loads(rates)[0])
