"""What every partitioner promises; a new one is tested by adding its name to the registered ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioning.samples import SAMPLES, make_sample
from ps2stream.arrays import Ragged, frozen
from ps2stream.model.space import Region
from ps2stream.partitioning import PARTITIONERS, partitioner_named
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.routing.index import GridT, route_by
from ps2stream.routing.layout import Postings
from ps2stream.routing.routing import Routing
from ps2stream.text.frequencies import frequency, rarest_first

NAMES = sorted(PARTITIONERS)


def assert_valid(plan: Plan, n_workers: int) -> None:
    """Check that whatever a plan is asked, it names one of its workers."""
    h1 = plan.h1
    assert plan.n_workers == n_workers
    assert len(h1.cell_owner) == plan.grid.n_cells
    n_tables = len(h1.table_offsets) - 1
    assert h1.cell_owner.max() < n_workers
    assert h1.cell_owner.min() >= -n_tables
    for workers in (h1.table_workers, h1.default_workers):
        assert ((workers >= 0) & (workers < n_workers)).all()
    assert len(h1.default_offsets) == len(h1.table_offsets)
    assert np.all(np.diff(h1.default_offsets) > 0), "every table has a worker for terms it does not hold"
    for table in range(n_tables):
        terms = h1.table_terms[h1.table_offsets[table] : h1.table_offsets[table + 1]]
        assert np.all(terms[1:] > terms[:-1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("n_workers", [1, 2, 7, 64])
def test_every_cell_and_term_has_an_owner(name: str, sample: Sample, n_workers: int) -> None:
    plan = partitioner_named(name).plan(sample, n_workers, number=3)
    assert plan.number == 3
    assert plan.partitioner == name
    assert_valid(plan, n_workers)
    rng = np.random.default_rng(1)
    for lon, lat in ((-180.0, -90.0), (180.0, 90.0), (10.0, 50.0), (0.0, 0.0)):
        assert 0 <= plan.owner(lon, lat, int(rng.integers(0, 1 << 63))) < n_workers


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(1, 64), st.integers(0, 100), st.integers(0, 30), st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_any_sample_gives_a_valid_plan(
    name: str, n_workers: int, n_pubs: int, n_subs: int, seed: int
) -> None:
    assert_valid(partitioner_named(name).plan(make_sample(n_pubs, n_subs, seed), n_workers), n_workers)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_every_match_meets_at_one_worker(name: str, sample: Sample) -> None:
    plan = partitioner_named(name).plan(sample, 5)
    terms = sample.clause_terms.copy()
    rarest_first(terms, frozen(sample.term_offsets), plan.frequencies)
    clauses = Ragged(terms, sample.term_offsets)
    grid_t = GridT.create(plan)
    postings = Postings(sample.bounds, sample.clause_offsets, frozen(terms[sample.term_offsets[:-1]]))
    grid_t.add(postings)
    stored = grid_t.workers_of(postings)
    routed = route_by(Routing(grid_t), sample.lon, sample.lat, sample.terms)
    n_matches = 0
    for publication in range(sample.n_publications):
        mine = sample.terms.row(publication)
        owners = routed.owners[0, sample.terms.offsets[publication] : sample.terms.offsets[publication + 1]]
        found = dict(zip(mine.tolist(), owners.tolist(), strict=True))
        for row in range(sample.n_subscriptions):
            region = Region(*sample.bounds[4 * row : 4 * row + 4].tolist())
            if not region.contains(float(sample.lon[publication]), float(sample.lat[publication])):
                continue
            for clause in range(sample.clause_offsets[row], sample.clause_offsets[row + 1]):
                if np.isin(clauses.row(clause), mine).all():
                    n_matches += 1
                    assert found[int(clauses.row(clause)[0])] in stored.row(row)
    assert n_matches or not sample.n_publications or not sample.n_subscriptions
    for worker in range(5):
        rows = routed.rows.row(worker)
        assert np.all(rows[1:] > rows[:-1]), "no publication goes to a worker twice"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_sample_and_seed_give_the_same_plan(name: str) -> None:
    plans = [partitioner_named(name).plan(make_sample(300, 80), 5, seed=4) for _ in range(2)]
    assert _contents(plans[0]) == _contents(plans[1])


def _contents(plan: Plan) -> tuple[Any, ...]:
    arrays = (*plan.h1, *plan.frequencies)
    return (plan.number, plan.partitioner, plan.n_workers, plan.grid, *(array.tolist() for array in arrays))


@pytest.mark.parametrize("name", NAMES)
def test_all_workers_get_something_of_a_sample_that_can_be_divided(name: str) -> None:
    sample = make_sample(400, 100)
    plan = partitioner_named(name).plan(sample, 8)
    owners = {
        plan.owner(float(lon), float(lat), int(term))
        for lon, lat, term in zip(sample.lon, sample.lat, np.resize(sample.clause_terms, 400), strict=True)
    }
    assert owners == set(range(8))


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_knows_how_often_the_terms_of_the_sample_occur(name: str) -> None:
    sample = make_sample(100, 20)
    plan = partitioner_named(name).plan(sample, 3)
    term = sample.terms.values[0]
    rows = sum(term in sample.terms.row(i) for i in range(sample.n_publications))
    assert frequency(plan.frequencies, term) == rows


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_survives_being_saved(name: str, tmp_path: Any) -> None:
    plan = partitioner_named(name).plan(make_sample(100, 20), 3)
    plan.save(tmp_path / "plan.npz")
    assert _contents(Plan.load(tmp_path / "plan.npz")) == _contents(plan)
