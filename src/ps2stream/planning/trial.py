"""Try a plan on a sample: route and match it with the real indexes, count the work and time it.

What a trial counts is exact for the sample; partitioners only estimate it. The table of
``ps2stream partition``, the calibration of costs and the judgement on load functions all read trials.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s, Ragged, frozen
from ps2stream.arrow import ragged_of
from ps2stream.config import Settings
from ps2stream.matching.contract import FOREVER, IndexSettings, Subscriptions
from ps2stream.matching.index import GI2
from ps2stream.model.events import Publications
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.partitioning.load import Costs, LoadFunction
from ps2stream.partitioning.plan import Plan, balance_of
from ps2stream.partitioning.sample import LIST_GRID, LIST_MAX_CELLS, Sample
from ps2stream.roles.dispatcher import packets_of
from ps2stream.roles.worker import Worker
from ps2stream.routing.index import GridT, route_by
from ps2stream.routing.layout import Postings
from ps2stream.routing.routing import Routing
from ps2stream.text.frequencies import rarest_first


@dataclass(frozen=True, slots=True)
class Trial:
    """The work of each worker; seconds are processor time of its steps.

    Candidates are those of the lists that partitioners count in, not those of the worker's own index.
    """

    n_publications: Int64s
    n_subscriptions: Int64s
    n_lookups: Int64s  # terms that the worker has to look up
    n_candidates: Int64s  # in the lists of the partitioners
    n_matches: Int64s
    match_s: Float64s
    insert_s: Float64s
    delete_s: Float64s
    n_discarded: int
    sample: Sample

    @property
    def fan_out(self) -> float:
        """Return to how many workers a publication goes that is not discarded."""
        n_sent = self.sample.n_publications - self.n_discarded
        return float(self.n_publications.sum() / n_sent) if n_sent else 0.0

    @property
    def replication(self) -> float:
        """Return at how many workers a subscription is stored."""
        n = self.sample.n_subscriptions
        return float(self.n_subscriptions.sum() / n) if n else 0.0

    def matching(self, load: LoadFunction) -> Float64s:
        """Count what c1 is charged for: looks, or all pairs that meet at a worker."""
        live = self.sample.live_weight
        if load == "paper":
            return np.asarray(live * self.n_publications * self.n_subscriptions, np.float64)
        return np.asarray(self.n_lookups + live * self.n_candidates, np.float64)

    def loads(self, costs: Costs) -> Float64s:
        """Charge the counted work by Definition 1, in nanoseconds."""
        return np.asarray(
            costs.match * self.matching(costs.load)
            + costs.publication * self.n_publications
            + (costs.insert + costs.delete) * self.sample.churn_weight * self.n_subscriptions
        )

    def busy_s(self) -> Float64s:
        """Return the measured seconds of each worker, with as many updates as the stream has."""
        return np.asarray(self.match_s + self.sample.churn_weight * (self.insert_s + self.delete_s))

    def balance(self, costs: Costs) -> float:
        return balance_of(self.loads(costs).tolist())


class _Work(NamedTuple):
    """What one worker had to do."""

    n_publications: int
    n_subscriptions: int
    n_lookups: int
    n_candidates: int
    n_matches: int
    match_s: float
    insert_s: float
    delete_s: float


def try_plan(plan: Plan, sample: Sample, settings: Settings | None = None) -> Trial:
    """Insert the subscriptions of a sample, match its publications, end the subscriptions again."""
    index_settings = (settings or Settings()).index_settings(plan)
    subs = _subscriptions(plan, sample)
    grid_t = GridT.create(plan)
    postings = Postings(subs.bounds, subs.clause_offsets, frozen(subs.terms[subs.term_offsets[:-1]]))
    grid_t.add(postings)
    stored = grid_t.workers_of(postings)
    stored_rows = np.repeat(np.arange(sample.n_subscriptions), np.diff(stored.offsets))
    publications = _publications(sample)
    terms = Ragged(frozen(sample.terms.values), frozen(sample.terms.offsets))
    routed = route_by(Routing(grid_t), publications.lon, publications.lat, terms)
    packets = packets_of(publications, terms, routed)
    work = [
        _try_worker(
            Worker(number, GI2.create(index_settings)),
            subs,
            frozen(stored_rows[stored.values == number]),
            packets[number],
        )
        for number in range(plan.n_workers)
    ]
    return Trial(
        n_publications=np.array([each.n_publications for each in work]),
        n_subscriptions=np.array([each.n_subscriptions for each in work]),
        n_lookups=np.array([each.n_lookups for each in work]),
        n_candidates=np.array([each.n_candidates for each in work]),
        n_matches=np.array([each.n_matches for each in work]),
        match_s=np.array([each.match_s for each in work]),
        insert_s=np.array([each.insert_s for each in work]),
        delete_s=np.array([each.delete_s for each in work]),
        n_discarded=routed.n_discarded,
        sample=sample,
    )


def _try_worker(worker: Worker[GI2], subs: Subscriptions, rows: Int64s, packet: pa.RecordBatch) -> _Work:
    # The time of this thread alone: a stream may be running in the others while its next plan is made.
    started = time.thread_time()
    worker.index.insert(subs, rows)
    inserted = time.thread_time()
    found = worker.match(packet, BEFORE_ALL_SEQS)
    matched = time.thread_time()
    worker.index.end(rows, frozen(np.full(len(rows), FOREVER - 1)))
    ended = time.thread_time()
    return _Work(
        n_publications=packet.num_rows,
        n_subscriptions=len(rows),
        n_lookups=int(ragged_of(packet.column("probes")).values.sum()),
        n_candidates=_listed_candidates(worker, subs, rows, packet),
        n_matches=len(ragged_of(found.column("subscription_seqs")).values),
        match_s=matched - inserted,
        insert_s=inserted - started,
        delete_s=ended - matched,
    )


def _listed_candidates(worker: Worker[GI2], subs: Subscriptions, rows: Int64s, packet: pa.RecordBatch) -> int:
    """Count the candidates by an index with the lists of the partitioners."""
    settings = IndexSettings(LIST_GRID, worker.index.settings.counters, LIST_MAX_CELLS)
    lists = Worker(worker.worker_id, GI2.create(settings))
    lists.index.insert(subs, rows)
    lists.match(packet, BEFORE_ALL_SEQS)
    return lists.index.counts().n_candidates


def _subscriptions(plan: Plan, sample: Sample) -> Subscriptions:
    """Number the subscriptions from 0 on and put the rarest term of each clause first."""
    terms = sample.clause_terms.copy()
    rarest_first(terms, frozen(sample.term_offsets), plan.frequencies)
    return Subscriptions(
        seq_from=frozen(np.arange(sample.n_subscriptions)),
        seq_to=frozen(np.full(sample.n_subscriptions, FOREVER)),
        bounds=frozen(sample.bounds),
        clause_offsets=frozen(sample.clause_offsets),
        term_offsets=frozen(sample.term_offsets),
        terms=frozen(terms),
    )


def _publications(sample: Sample) -> Publications:
    """Let the publications come after all subscriptions."""
    seq = np.arange(sample.n_subscriptions, sample.n_subscriptions + sample.n_publications)
    ids = pa.array(seq).cast(pa.string())
    return Publications(seq, ids, frozen(sample.lon), frozen(sample.lat), pa.nulls(len(seq), pa.string()))
