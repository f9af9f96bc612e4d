"""A new plan is worth its trouble where the stream has drifted, and not where it has not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioning.samples import SAMPLES, make_sample
from ps2stream.adjusting.repartitioning import Considered, consider
from ps2stream.arrays import frozen
from ps2stream.config import Settings
from ps2stream.partitioning import PARTITIONERS, partitioner_named
from ps2stream.partitioning.load import LOAD_FUNCTIONS, STANDARD_COSTS, LoadFunction
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample, some_of
from ps2stream.planning.trial import try_plan

N_WORKERS = 4
SETTINGS = Settings(n_workers=N_WORKERS, grid_bits=6)
STREAM = make_sample(4_000, 1_600, n_terms=200)


def _moved(sample: Sample, east: float) -> Sample:
    """Let the same happen elsewhere."""
    bounds = sample.bounds.reshape(-1, 4) + np.array([east, 0.0, east, 0.0])
    return sample._replace(lon=frozen(sample.lon + east), bounds=frozen(bounds.reshape(-1)))


def _part(sample: Sample, start: int) -> Sample:
    rows = (np.arange(start, n, 2) for n in (sample.n_publications, sample.n_subscriptions))
    return some_of(sample, *rows)


def _planned(sample: Sample, name: str, version: int = 5) -> Plan:
    return partitioner_named(name).plan(sample, N_WORKERS, number=version)


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
@pytest.mark.parametrize("name", ["grid", "kd-tree", "hybrid"])
def test_where_the_stream_has_moved_a_new_plan_gains(name: str, load: LoadFunction) -> None:
    running = _planned(_part(STREAM, 0), name)
    moved = _moved(_part(STREAM, 1), 60.0)
    chosen = replace(SETTINGS, partitioner=name, load=load)
    considered = consider(moved, running, chosen)
    assert considered.gain > chosen.adjustment.margin
    assert considered.plan.number == running.number + 1
    assert considered.plan.n_workers == N_WORKERS
    assert considered.plan.partitioner == name
    assert considered.running.shape == considered.renewed.shape == (N_WORKERS,)


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
@pytest.mark.parametrize("name", PARTITIONERS)
def test_where_the_stream_is_what_it_was_a_new_plan_does_not_gain_more_than_the_margin(
    name: str, load: LoadFunction
) -> None:
    chosen = replace(SETTINGS, partitioner=name, load=load)
    considered = consider(_part(STREAM, 1), _planned(_part(STREAM, 0), name), chosen)
    assert considered.gain < chosen.adjustment.margin


def test_both_plans_are_tried_on_what_the_new_one_was_not_made_from() -> None:
    sample = _part(STREAM, 0)
    running = _planned(_part(STREAM, 1), "kd-tree")
    chosen = replace(SETTINGS, partitioner="kd-tree")
    considered = consider(sample, running, chosen)
    made = partitioner_named("kd-tree").plan(_part(sample, 0), N_WORKERS, number=6)
    for mine, theirs in zip(considered.plan.h1, made.h1, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for plan, loads in ((running, considered.running), (made, considered.renewed)):
        unseen = try_plan(plan, _part(sample, 1), chosen)
        assert loads.tolist() == pytest.approx(unseen.loads(STANDARD_COSTS).tolist())


def test_the_same_sample_is_considered_in_the_same_way() -> None:
    running = _planned(_part(STREAM, 0), "grid")
    moved = _moved(_part(STREAM, 1), 60.0)
    one, other = (consider(moved, running, replace(SETTINGS, partitioner="grid")) for _ in range(2))
    assert one.gain == other.gain
    np.testing.assert_array_equal(one.plan.h1.cell_owner, other.plan.h1.cell_owner)


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_any_sample_can_be_considered(sample: Sample) -> None:
    running = _planned(make_sample(200, 50), "grid")
    considered = consider(sample, running, replace(SETTINGS, partitioner="grid"))
    assert -10.0 < considered.gain < 1.0
    if not sample.n_publications or not sample.n_subscriptions:
        assert considered.gain == 0.0, "nothing is known, so nothing is gained"


@pytest.mark.parametrize(
    ("running", "renewed", "gain"),
    [
        ([4.0, 1.0], [2.5, 2.5], 0.375),
        ([2.0, 2.0], [2.0, 2.0], 0.0),
        ([2.0, 2.0], [3.0, 1.0], -0.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 0.0], [1.0, 0.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_the_gain_is_by_how_much_the_busiest_worker_is_relieved(
    running: list[float], renewed: list[float], gain: float
) -> None:
    plan = _planned(make_sample(10, 5), "grid")
    assert Considered(plan, np.array(running), np.array(renewed)).gain == pytest.approx(gain)
