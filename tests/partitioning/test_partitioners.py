"""What every partitioner promises; a new one is tested by adding its name to the registered ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrays import Ragged, frozen
from ps2stream.model.space import WORLD
from ps2stream.partitioning import PARTITIONERS, partitioner_named
from ps2stream.partitioning.plan import Plan, Sample
from ps2stream.text.frequencies import frequency

pytestmark = pytest.mark.kernel

NAMES = sorted(PARTITIONERS)


def make_sample(n_publications: int, n_subscriptions: int, seed: int = 0, spread: float = 20.0) -> Sample:
    """Draw a sample around one town; with a spread of 0 everything happens at one point."""
    rng = np.random.default_rng(seed)
    terms = rng.integers(0, 1 << 63, 50, dtype=np.uint64)
    texts = [np.unique(rng.choice(terms, 5)) for _ in range(n_publications)]
    west = rng.normal(10, spread / 4, n_subscriptions)
    south = rng.normal(50, spread / 8, n_subscriptions)
    size = rng.random(n_subscriptions) * spread / 5
    corners = np.column_stack([west, south, west + size, south + size])
    one = np.arange(n_subscriptions + 1, dtype=np.int64)
    return Sample(
        frozen(np.clip(rng.normal(10, spread / 4, n_publications), -180, 180)),
        frozen(np.clip(rng.normal(50, spread / 8, n_publications), -90, 90)),
        Ragged(
            np.concatenate([np.empty(0, np.uint64), *texts]),
            np.cumsum([0, *map(len, texts)], dtype=np.int64),
        ),
        frozen(np.clip(corners, [WORLD[0], WORLD[1]] * 2, [WORLD[2], WORLD[3]] * 2).reshape(-1)),
        frozen(one),
        frozen(one),
        frozen(rng.choice(terms, n_subscriptions)),
    )


SAMPLES = {
    "usual": make_sample(400, 100),
    "nothing": make_sample(0, 0),
    "one publication": make_sample(1, 0),
    "one subscription": make_sample(0, 1),
    "no publications": make_sample(0, 50),
    "no subscriptions": make_sample(200, 0),
    "one point": make_sample(200, 50, spread=0.0),
}


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
    plan = partitioner_named(name).plan(sample, n_workers, version=3)
    assert plan.version == 3
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
def test_the_same_sample_and_seed_give_the_same_plan(name: str) -> None:
    plans = [partitioner_named(name).plan(make_sample(300, 80), 5, seed=4) for _ in range(2)]
    assert _contents(plans[0]) == _contents(plans[1])


def _contents(plan: Plan) -> tuple[Any, ...]:
    arrays = (*plan.h1, *plan.frequencies)
    return (plan.version, plan.partitioner, plan.n_workers, plan.grid, *(array.tolist() for array in arrays))


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
