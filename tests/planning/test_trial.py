"""A trial counts what a plain loop over the sample counts, and finds the oracle's matches."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engines.streams import SETTINGS, events_of, publish
from matching.scan import Published, Scan, Stored, cells_of, n_candidates
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan, owners_of_cells, owners_of_terms
from ps2stream.partitioning.sample import LIST_GRID, LIST_MAX_CELLS, Sample
from ps2stream.planning.first_plan import sample_of
from ps2stream.planning.trial import Trial, try_plan
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_expression, random_point, random_region, random_text
from ps2stream.text.frequencies import count_terms, frequency

pytestmark = pytest.mark.kernel

#: So few cells that H2 never needs a coarser level: the loop below knows only the finest one.
GRID = Grid.over(WORLD, 3)
N_WORKERS = 3


def _events(seed: int, n_subscriptions: int = 25, n_publications: int = 40) -> list[oracle.EventRow]:
    """Draw subscriptions, then publications near them."""
    rng = random.Random(seed)
    regions = [random_region(rng) for _ in range(n_subscriptions)]
    events = []
    for number, (min_lon, min_lat, max_lon, max_lat) in enumerate(regions):
        event = oracle.EventRow(number + 1, "subscribe", f"s{number}", expression=random_expression(rng))
        events.append(event._replace(min_lon=min_lon, min_lat=min_lat, max_lon=max_lon, max_lat=max_lat))
    for number in range(n_publications):
        lon, lat = random_point(rng, rng.choice(regions))
        seq = n_subscriptions + number + 1
        events.append(oracle.EventRow(seq, "publish", f"p{number}", lat=lat, lon=lon, text=random_text(rng)))
    return events


def _sample(events: list[oracle.EventRow]) -> Sample:
    return sample_of(events_of(*(event._asdict() for event in events)), SETTINGS)


def _plan(kind: str, sample: Sample) -> Plan:
    frequencies = count_terms(sample.terms)
    if kind == "space":
        h1 = owners_of_cells(np.arange(GRID.n_cells, dtype=np.int32) % N_WORKERS)
    else:
        workers = np.arange(len(frequencies.terms), dtype=np.int32) % N_WORKERS
        h1 = owners_of_terms(GRID.n_cells, frequencies.terms, workers, N_WORKERS)
    return Plan(1, "by hand", N_WORKERS, GRID, h1, frequencies)


def _stored(plan: Plan, sample: Sample) -> list[Stored]:
    """List the subscriptions with the rarest term of each clause first."""
    stored = []
    for row in range(sample.n_subscriptions):
        clauses = []
        for clause in range(sample.clause_offsets[row], sample.clause_offsets[row + 1]):
            terms = sample.clause_terms[sample.term_offsets[clause] : sample.term_offsets[clause + 1]]
            counted = sorted((int(frequency(plan.frequencies, term)), int(term)) for term in terms)
            clauses.append(tuple(term for _, term in counted))
        region = Region(*sample.bounds[4 * row : 4 * row + 4].tolist())
        stored.append(Stored(row, region, tuple(clauses)))
    return stored


def _workers_of(plan: Plan, each: Stored) -> set[int]:
    workers = set()
    for cell in cells_of(plan.grid, each.region):
        west, south, east, north = plan.grid.bounds_of(cell)
        centre = ((west + east) / 2, (south + north) / 2)
        workers |= {plan.owner(*centre, clause[0]) for clause in each.clauses}
    return workers


def _published(plan: Plan, sample: Sample, stored: list[Stored]) -> list[dict[int, Published]]:
    """Say for every publication which workers get it, and which of its terms they look up."""
    covered = [cells_of(plan.grid, each.region) for each in stored]
    sent = []
    for row in range(sample.n_publications):
        lon, lat = float(sample.lon[row]), float(sample.lat[row])
        terms = tuple(int(term) for term in sample.terms.row(row))
        cell = plan.grid.cell(lon, lat)
        here = [each for each, cells in zip(stored, covered, strict=True) if cell in cells]
        asked_for = {clause[0] for each in here for clause in each.clauses}
        owned: dict[int, set[int]] = {}
        for term in asked_for.intersection(terms):
            owned.setdefault(plan.owner(lon, lat, term), set()).add(term)
        seq = len(stored) + row
        sent.append(
            {worker: Published(seq, lon, lat, terms, frozenset(some)) for worker, some in owned.items()}
        )
    return sent


@pytest.mark.parametrize("kind", ["space", "text"])
@pytest.mark.parametrize("seed", range(3))
def test_a_trial_counts_what_a_loop_counts(kind: str, seed: int) -> None:
    events = _events(seed)
    sample = _sample(events)
    plan = _plan(kind, sample)
    trial = try_plan(plan, sample, SETTINGS)
    stored = _stored(plan, sample)
    published = _published(plan, sample, stored)
    for worker in range(N_WORKERS):
        kept = [each for each in stored if worker in _workers_of(plan, each)]
        sent = [workers[worker] for workers in published if worker in workers]
        scan = Scan()
        scan.insert(kept)
        assert trial.n_subscriptions[worker] == len(kept)
        assert trial.n_publications[worker] == len(sent), "once, however many of its terms the worker owns"
        assert trial.n_matches[worker] == len(scan.matches(sent))
        assert trial.n_lookups[worker] == sum(len(each.owned) for each in sent)
        assert trial.n_candidates[worker] == sum(
            n_candidates(LIST_GRID, LIST_MAX_CELLS, kept, each) for each in sent
        )
    assert trial.n_discarded == published.count({})
    n_sent = sum(map(len, published))
    assert trial.fan_out == pytest.approx(n_sent / (sample.n_publications - trial.n_discarded))
    n_stored = sum(len(_workers_of(plan, each)) for each in stored)
    assert trial.replication == pytest.approx(n_stored / sample.n_subscriptions)
    assert trial.n_matches.sum() == len(oracle.run(events).matches) > 0


def test_text_plans_send_a_publication_to_several_workers_and_space_plans_to_one() -> None:
    sample = _sample(_events(5))
    by_space, by_text = (try_plan(_plan(kind, sample), sample, SETTINGS) for kind in ("space", "text"))
    assert by_space.fan_out == 1.0 < by_text.fan_out <= N_WORKERS
    assert by_space.n_discarded == by_text.n_discarded


def test_seconds_are_measured_for_every_step_of_every_worker() -> None:
    sample = _sample(_events(1))
    trial = try_plan(_plan("text", sample), sample, SETTINGS)
    for seconds in (trial.match_s, trial.insert_s, trial.delete_s):
        assert len(seconds) == N_WORKERS
        assert (seconds > 0).all()


@pytest.mark.parametrize("rows", [(), (publish(1, "p"),)], ids=["nothing", "no subscriptions"])
def test_a_trial_of_next_to_nothing_counts_nothing(rows: tuple[dict[str, object], ...]) -> None:
    sample = sample_of(events_of(*rows), SETTINGS)
    trial = try_plan(_plan("text", sample), sample, SETTINGS)
    assert trial.n_publications.tolist() == trial.n_matches.tolist() == [0] * N_WORKERS
    assert trial.n_discarded == len(rows)
    assert (trial.fan_out, trial.replication) == (0.0, 0.0)
    assert trial.balance(Costs(1.0, 1.0, 1.0, 1.0)) == 1.0


def _by_hand(n_live: int, churn: float) -> Trial:
    """Two workers; the sample has ten publications and four subscriptions."""
    return Trial(
        n_publications=np.array([6, 4]),
        n_subscriptions=np.array([3, 1]),
        n_lookups=np.array([4, 2]),
        n_candidates=np.array([5, 0]),
        n_matches=np.array([2, 0]),
        match_s=np.array([0.5, 0.25]),
        insert_s=np.array([0.2, 0.1]),
        delete_s=np.array([0.02, 0.01]),
        n_discarded=2,
        sample=_sample(_events(0, 4, 10))._replace(n_live=n_live, churn=churn),
    )


def test_loads_charge_looks_or_all_pairs() -> None:
    trial = _by_hand(n_live=0, churn=0.4)  # one insertion and one deletion of each subscription
    costs = Costs(100.0, 10.0, 2.0, 1.0, "candidates")
    assert trial.loads(costs).tolist() == [900 + 60 + 3 * 3, 200 + 40 + 3]
    paper = Costs(100.0, 10.0, 2.0, 1.0, "paper")
    assert trial.loads(paper).tolist() == [1800 + 60 + 3 * 3, 400 + 40 + 3]
    assert trial.balance(paper) == pytest.approx(1869 / 443)


def test_a_sampled_subscription_counts_for_those_it_stands_for() -> None:
    costs = Costs(100.0, 10.0, 2.0, 1.0, "candidates")
    assert _by_hand(n_live=40, churn=0.4).loads(costs).tolist() == [5400 + 60 + 9, 200 + 40 + 3]


def test_busy_time_has_as_many_updates_as_the_stream() -> None:
    np.testing.assert_allclose(_by_hand(n_live=0, churn=0.1).busy_s(), [0.5 + 0.22 / 4, 0.25 + 0.11 / 4])
