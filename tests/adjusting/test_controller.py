"""The controller adjusts what stays unbalanced, and nothing else; what it begins it brings to an end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engines.deployments import Deployment
from engines.streams import events_of, subscribe, unsubscribe
from ps2stream.adjusting import controller as control
from ps2stream.adjusting.controller import Adjusted, LoadController, Observed, controller_of
from ps2stream.adjusting.repartitioning import Considered
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.selection import SELECTORS
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.model.schemas import EVENTS, empty
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.plan import Plan, balance_of, owners_of_cells
from ps2stream.partitioning.sample import Sample
from ps2stream.roles.packets import CELL_LOADS, SAMPLED
from waiting import HANG_S

GRID = Grid.over(WORLD, 2)
#: Two columns in the west for worker 0, two in the east for worker 1.
PLAN = Plan(1, "by hand", 2, GRID, owners_of_cells(np.array([0, 0, 1, 1] * 4, np.int32)))
EAST_AND_WEST = replace(PLAN, h1=owners_of_cells(np.array([1, 1, 0, 0] * 4, np.int32)))
#: Publications of cells.
Published = dict[int, int]
EVEN: Published = {0: 25, 1: 25, 2: 25, 3: 25}
UNEVEN: Published = {**dict.fromkeys((0, 1, 4, 5, 8, 9, 12, 13), 10), 2: 20}


def _settings(**changed: Any) -> Settings:
    usual: dict[str, Any] = {"scope": "local", "window": 300, "sigma": 1.3, "target": 1.1}
    return Settings(n_workers=2, adjustment=AdjustmentSettings(**{**usual, **changed}))


def _subscribers() -> pa.RecordBatch:
    """Let four people ask for something in the middle of each cell."""
    rows: list[dict[str, Any]] = []
    for cell in range(GRID.n_cells):
        west, south, east, north = GRID.bounds_of(cell)
        lon, lat = (west + east) / 2, (south + north) / 2
        for number in range(4):
            bounds = {"min_lon": lon, "min_lat": lat, "max_lon": lon + 1, "max_lat": lat + 1}
            rows.append(subscribe(len(rows) + 1, f"s{cell}-{number}", f"word{number}", **bounds))
    return events_of(*rows)


N_SUBSCRIBERS = 64


@dataclass(slots=True)
class Job:
    """A deployment whose loads are whatever a test says."""

    controller: LoadController
    deployment: Deployment = field(default_factory=lambda: Deployment(PLAN))
    made: list[Adjusted] = field(default_factory=list)
    known: list[Adjustment] = field(default_factory=list)
    n_batches: int = 0

    def __post_init__(self) -> None:
        self.deployment.process(_subscribers())

    def batch(self, published: Published, events: pa.RecordBatch | None = None) -> Adjusted | None:
        """Ask the controller before a batch, process it, and report it."""
        registrar = self.deployment.registrar
        adjusted = self.controller.adjust(self.n_batches, registrar, self.deployment.hosts)
        self.deployment.plans.setdefault(registrar.plan.number, registrar.plan)
        if adjusted is not None:
            self.made.append(adjusted)
            self.deployment._migrated.append(adjusted.migrated.rows)
        self.deployment.process(empty(EVENTS) if events is None else events)
        if adjusted is not None:
            self.controller.completed(replace(adjusted.record, migration_s=0.25))
        known = self.controller.observe(_observed(registrar.plan, published))
        if known is not None:
            self.known.append(known)
        self.n_batches += 1
        return adjusted

    def kinds(self) -> list[str]:
        return [adjusted.record.kind for adjusted in self.made]


def _observed(plan: Plan, published: Published) -> Observed:
    """Give the publications to the workers that own their cells."""
    n = sum(published.values())
    owners = plan.h1.cell_owner
    parts = [{cell: n for cell, n in published.items() if owners[cell] == worker} for worker in range(2)]
    return Observed(
        n,
        n // 5,
        {worker: _report(part) for worker, part in enumerate(parts) if part},
        {worker: 0.001 * sum(part.values()) for worker, part in enumerate(parts)},
        [pa.RecordBatch.from_pylist([{"lon": 1.0, "lat": 1.0, "terms": [1, 2]}], SAMPLED)],
    )


def _report(cells: Published) -> pa.RecordBatch:
    rows = [
        dict.fromkeys(CELL_LOADS.names, 0)
        | {"cell": cell, "publications": n, "lookups": n, "bytes": 400, "subscriptions": 4}
        for cell, n in cells.items()
    ]
    return pa.RecordBatch.from_pylist(rows, CELL_LOADS)


def test_balanced_loads_are_left_alone_however_long_they_last() -> None:
    job = Job(LoadController(_settings()))
    rng = np.random.default_rng(1)
    for _ in range(60):
        noisy = {cell: int(rng.poisson(n)) for cell, n in EVEN.items()}
        assert job.batch(noisy) is None
    assert job.deployment.registrar.plan is PLAN


def test_unbalanced_loads_are_adjusted_once_and_then_left_alone() -> None:
    job = Job(LoadController(_settings()))
    for _ in range(40):
        job.batch(UNEVEN)
    (adjusted,) = job.made
    record = adjusted.record
    assert (record.kind, record.selector, record.batch_id) == ("local", "gr", 3)
    assert (record.plan_before, record.plan_after) == (1, 2)
    assert record.reason == ("the busiest worker had 4.00 times the load of the least busy one, above 1.3")
    assert balance_of(record.loads_before) == pytest.approx(4.0)
    assert balance_of(record.loads_expected) == pytest.approx(1.0)
    assert sum(record.loads_expected) == pytest.approx(sum(record.loads_before))
    assert record.loads_after == (), "not known yet"
    assert record.steps[0].phase == "move"
    assert (record.steps[0].source, record.steps[0].destination) == (0, 1)
    assert record.n_subscriptions == adjusted.migrated.n_subscriptions == 4 * record.steps[0].n_cells
    assert record.n_bytes == adjusted.migrated.n_bytes > 0
    assert 0.0 < record.selection_s <= record.pause_s
    assert record.at
    assert job.deployment.registrar.plan.number == 2
    assert job.deployment.holders() == job.deployment.expected_holders()
    (known,) = job.known
    assert known.batch_id == 3
    assert known.loads_after == pytest.approx(record.loads_expected), "as the stream did not change"
    assert known.migration_s == 0.25, "what the batch added to the record is kept"


@pytest.mark.parametrize("selector", SELECTORS)
def test_every_selector_can_be_at_work(selector: str) -> None:
    job = Job(LoadController(_settings(selector=selector)))
    for _ in range(5):
        job.batch(UNEVEN)
    assert [adjusted.record.selector for adjusted in job.made] == [selector]


def test_nothing_is_decided_before_a_whole_window_has_passed() -> None:
    job = Job(LoadController(_settings(window=1000)))
    for _ in range(10):
        assert job.batch(UNEVEN) is None
    assert job.batch(UNEVEN) is not None
    # What is unbalanced anew has to be so for a whole window, too.
    moved = dict.fromkeys(np.flatnonzero(job.deployment.registrar.plan.h1.cell_owner == 1).tolist(), 10)
    assert len(moved) > 10
    while not job.controller.window.is_full:
        assert job.batch(moved) is None
    assert job.controller.window.n_publications >= 1000
    assert job.batch(moved) is not None


def test_a_peak_that_passes_is_no_reason_to_move() -> None:
    job = Job(LoadController(_settings(window=400)))
    for loads in [UNEVEN] * 2 + [EVEN] * 6 + [UNEVEN] * 1 + [EVEN] * 8:
        assert job.batch(loads) is None


def test_a_peak_that_wanders_from_worker_to_worker_is_no_reason_to_move() -> None:
    west, east = {0: 60, 1: 30, 2: 10}, {2: 60, 3: 30, 0: 10}
    job = Job(LoadController(_settings(window=400)))
    for number in range(24):
        assert job.batch(west if number // 2 % 2 else east) is None
    assert job.controller.window.is_full, "nor to forget what was seen"


def test_loads_that_cannot_be_moved_are_looked_at_again_a_window_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def nothing_helps(*_: Any) -> None:
        looked.append(job.n_batches)

    monkeypatch.setattr(control, "adjust", nothing_helps)
    job = Job(LoadController(_settings()))
    for _ in range(12):
        assert job.batch(UNEVEN) is None
    assert looked == [3, 6, 9]


@pytest.mark.parametrize("scope", ["global", "off"])
def test_cells_are_only_moved_where_that_is_wanted(scope: str) -> None:
    job = Job(LoadController(_settings(scope=scope)))
    for _ in range(10):
        assert job.batch(UNEVEN) is None


class Considering:
    """Stand in for the search of a new plan; count how often it is asked for."""

    def __init__(self, gain: float = 0.5) -> None:
        self.asked: list[tuple[Sample, Plan]] = []
        self.gain = gain

    def __call__(self, sample: Sample, running: Plan, settings: Settings) -> Considered:
        self.asked.append((sample, running))
        loads = np.array([10.0, 10.0])
        return Considered(replace(EAST_AND_WEST, number=77), loads, (1.0 - self.gain) * loads)


@pytest.fixture
def considering(monkeypatch: pytest.MonkeyPatch) -> Considering:
    stand_in = Considering()
    monkeypatch.setattr(control, "consider", stand_in)
    return stand_in


def _ends(*cells: int, seq: int) -> pa.RecordBatch:
    names = [f"s{cell}-{number}" for cell in cells for number in range(4)]
    return events_of(*(unsubscribe(seq + i, name) for i, name in enumerate(names)))


def test_a_new_plan_is_considered_periodically_adopted_and_drained(
    considering: Considering,
) -> None:
    chosen = _settings(scope="global", check_every=500, drain_share=0.25)
    job = Job(LoadController(chosen))
    for _ in range(5):
        assert job.batch(EVEN) is None
    assert not considering.asked
    switched = job.batch(EVEN)
    assert switched is not None
    ((sample, running),) = considering.asked
    assert running is PLAN
    assert (sample.n_subscriptions, sample.n_live) == (N_SUBSCRIBERS, N_SUBSCRIBERS)
    assert sample.n_publications == 5, "one was sampled of each batch"
    record = switched.record
    assert (record.kind, record.plan_before, record.plan_after) == ("switch", 1, 2)
    assert record.reason == "a new plan lowers the load of the busiest worker by 50%, more than 20%"
    assert (record.loads_before, record.loads_expected) == ((10.0, 10.0), (5.0, 5.0))
    assert switched.migrated.rows.num_rows == 0
    assert switched.dropped_index is None
    registrar = job.deployment.registrar
    assert [version.plan.number for version in registrar.routing.parts] == [2, 1], (
        "numbered in the order of use"
    )
    older = registrar.routing.parts[1].name

    # Most subscriptions still depend on the older plan; it stays, and nothing else is tried.
    for _ in range(8):
        assert job.batch(UNEVEN) is None
    assert job.batch(EVEN, _ends(*range(11), seq=1000)) is None
    assert registrar.n_older() == 20
    assert job.batch(EVEN, _ends(11, seq=2000)) is None, "20 of 20 are too many"
    more = events_of(*(subscribe(3000 + i, f"new{i}") for i in range(48)))
    assert job.batch(EVEN, more) is None
    united = job.batch(EVEN)
    assert united is not None
    assert (united.record.kind, united.record.plan_before, united.record.plan_after) == ("unite", 1, 2)
    assert united.record.reason == "16 of 64 subscriptions are left to the older plan"
    assert united.record.n_subscriptions == united.migrated.n_subscriptions == 16
    assert united.dropped_index == older
    assert registrar.routing.older is None
    assert job.deployment.holders() == job.deployment.expected_holders()
    assert len(considering.asked) == 1, "not while there are two"


def test_an_older_plan_goes_after_a_while_however_many_depend_on_it(considering: Considering) -> None:
    job = Job(LoadController(_settings(scope="global", check_every=100, drain_share=0.0, drain_limit=500)))
    for _ in range(10):
        job.batch(EVEN)
    assert job.kinds() == ["switch", "unite"]
    assert [adjusted.record.batch_id for adjusted in job.made] == [3, 8]
    assert job.made[1].record.n_subscriptions == N_SUBSCRIBERS
    assert job.deployment.holders() == job.deployment.expected_holders()


def test_after_a_union_the_next_new_plan_is_considered(considering: Considering) -> None:
    job = Job(LoadController(_settings(scope="both", check_every=100, drain_share=0.0, drain_limit=1)))
    for _ in range(9):
        job.batch(UNEVEN)
    kinds = job.kinds()
    assert kinds[:4] == ["switch", "unite"] * 2
    assert job.deployment.registrar.plan.number == 1 + kinds.count("switch") + kinds.count("local")
    assert job.deployment.holders() == job.deployment.expected_holders()


@pytest.mark.parametrize("gain", [0.2, 0.1, 0.0, -3.0])
def test_a_plan_that_does_not_gain_more_than_the_margin_is_not_adopted(
    considering: Considering, gain: float
) -> None:
    considering.gain = gain
    job = Job(LoadController(_settings(scope="global", check_every=200)))
    for _ in range(9):
        assert job.batch(EVEN) is None
    assert len(considering.asked) == 3, "once a window has been seen, every this many publications"


class ByHand(Executor):
    """Keep work until a test does it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def finish(self) -> None:
        ((future, work),) = self.waiting
        self.waiting.clear()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)


def test_the_stream_goes_on_while_a_plan_is_made_in_the_background(considering: Considering) -> None:
    background = ByHand()
    job = Job(LoadController(_settings(scope="both", check_every=500), background))
    for _ in range(5):
        job.batch(EVEN)
    for _ in range(9):
        assert job.batch(UNEVEN) is None, "what a new plan may change is not adjusted meanwhile"
    assert not considering.asked
    assert len(background.waiting) == 1, "one at a time"
    background.finish()
    adjusted = job.batch(UNEVEN)
    assert adjusted is not None
    assert adjusted.record.kind == "switch"
    assert not background.waiting


def test_a_plan_of_the_background_that_does_not_gain_lets_local_adjustment_go_on(
    considering: Considering,
) -> None:
    considering.gain = 0.0
    background = ByHand()
    job = Job(LoadController(_settings(scope="both", check_every=500), background))
    for _ in range(8):
        job.batch(EVEN if job.n_batches < 5 else UNEVEN)
    background.finish()
    adjusted = job.batch(UNEVEN)
    assert adjusted is not None
    assert adjusted.record.kind == "local"


@pytest.mark.parametrize("is_in_background", [False, True])
def test_a_plan_that_cannot_be_made_is_reported_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_in_background: bool
) -> None:
    def fail(*_: Any) -> Considered:
        raise ValueError("no plan today")

    monkeypatch.setattr(control, "consider", fail)
    background = ByHand() if is_in_background else None
    job = Job(LoadController(_settings(scope="both", check_every=300), background))
    with caplog.at_level(logging.ERROR):
        for _ in range(4):
            job.batch(EVEN)
        if background:
            background.finish()
        job.batch(EVEN)
    assert "no new plan could be made: no plan today" in caplog.text
    for _ in range(6):
        job.batch(UNEVEN)
        if background and background.waiting:
            background.finish()
    assert set(job.kinds()) == {"local"}, "the stream goes on, and so does what needs no new plan"


def test_a_real_plan_is_made_by_a_real_thread() -> None:
    with ThreadPoolExecutor(1) as background:
        job = Job(LoadController(_settings(scope="global", check_every=100), background))
        considering = None
        while considering is None:  # looked at after every batch: the next one takes a finished plan away
            assert job.batch(EVEN) is None
            considering = job.controller._considering
        considered = considering.result(timeout=HANG_S)
    assert considered.plan.n_workers == 2
    assert considered.plan.number == 2
    assert considered.running.shape == (2,)


def test_who_asks_for_a_new_plan_gets_it_considered_once_a_window_has_been_seen(
    considering: Considering,
) -> None:
    job = Job(LoadController(_settings(scope="local")))
    job.controller.request_repartition()
    job.controller.request_repartition()
    for _ in range(3):
        assert job.batch(EVEN) is None
    adjusted = job.batch(EVEN)
    assert adjusted is not None
    assert adjusted.record.kind == "switch"
    assert len(considering.asked) == 1


def test_a_request_for_a_new_plan_waits_until_there_is_one_only(considering: Considering) -> None:
    job = Job(LoadController(_settings(scope="local", window=100, drain_share=0.0, drain_limit=300)))
    job.controller.request_repartition()
    job.batch(EVEN)
    job.batch(EVEN)
    job.controller.request_repartition()
    for _ in range(6):
        job.batch(EVEN)
    assert job.kinds() == ["switch", "unite", "switch"]
    assert len(considering.asked) == 2


def test_a_request_waits_until_somebody_has_subscribed(considering: Considering) -> None:
    controller = LoadController(_settings(scope="local", window=100))
    controller.request_repartition()
    controller.observe(_observed(PLAN, EVEN))
    deployment = Deployment(PLAN)
    assert controller.adjust(0, deployment.registrar, deployment.hosts) is None
    deployment.process(_subscribers())
    assert controller.adjust(1, deployment.registrar, deployment.hosts) is not None


def test_a_controller_that_comes_to_a_job_in_between_two_plans_brings_them_together() -> None:
    """As after a restart: it knows nothing, but the registrar does."""
    job = Job(LoadController(_settings(scope="local", drain_share=0.0, drain_limit=200)))
    job.deployment.switch(EAST_AND_WEST)
    for _ in range(4):
        job.batch(EVEN)
    assert job.kinds() == ["unite"]
    assert job.made[0].record.batch_id == 2


@pytest.mark.parametrize(
    ("n_workers", "scope", "is_needed"),
    [(2, "both", True), (2, "local", True), (2, "global", True), (2, "off", False), (1, "both", False)],
)
def test_there_is_a_controller_where_there_is_something_to_adjust(
    n_workers: int, scope: Any, is_needed: bool
) -> None:
    chosen = Settings(n_workers=n_workers, adjustment=AdjustmentSettings(scope=scope))
    assert (controller_of(chosen) is not None) == is_needed
