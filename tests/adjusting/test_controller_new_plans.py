"""New plans: considered now and then or on request, adopted when they gain, brought to an end."""

from __future__ import annotations

import pyarrow as pa
import pytest

from adjusting.controlled_job import (
    EAST_AND_WEST,
    EVEN,
    N_SUBSCRIBERS,
    PLAN,
    UNEVEN,
    Considering,
    Job,
    chosen_settings,
    observed,
    subscribers,
)
from engines.deployments import Deployment
from engines.streams import events_of, subscribe, unsubscribe
from ps2stream.adjusting.controller import LoadController


def _ends(*cells: int, seq: int) -> pa.RecordBatch:
    names = [f"s{cell}-{number}" for cell in cells for number in range(4)]
    return events_of(*(unsubscribe(seq + i, name) for i, name in enumerate(names)))


def test_a_new_plan_is_considered_periodically_adopted_and_drained(
    considering: Considering,
) -> None:
    chosen = chosen_settings(scope="global", check_every=500, drain_share=0.25)
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
    job = Job(
        LoadController(chosen_settings(scope="global", check_every=100, drain_share=0.0, drain_limit=500))
    )
    for _ in range(10):
        job.batch(EVEN)
    assert job.kinds() == ["switch", "unite"]
    assert [adjusted.record.batch_id for adjusted in job.made] == [3, 8]
    assert job.made[1].record.n_subscriptions == N_SUBSCRIBERS
    assert job.deployment.holders() == job.deployment.expected_holders()


def test_after_a_union_the_next_new_plan_is_considered(considering: Considering) -> None:
    job = Job(LoadController(chosen_settings(scope="both", check_every=100, drain_share=0.0, drain_limit=1)))
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
    job = Job(LoadController(chosen_settings(scope="global", check_every=200)))
    for _ in range(9):
        assert job.batch(EVEN) is None
    assert len(considering.asked) == 3, "once a window has been seen, every this many publications"


def test_who_asks_for_a_new_plan_gets_it_considered_once_a_window_has_been_seen(
    considering: Considering,
) -> None:
    job = Job(LoadController(chosen_settings(scope="local")))
    job.controller.request_repartition()
    job.controller.request_repartition()
    for _ in range(3):
        assert job.batch(EVEN) is None
    adjusted = job.batch(EVEN)
    assert adjusted is not None
    assert adjusted.record.kind == "switch"
    assert len(considering.asked) == 1


def test_a_request_for_a_new_plan_waits_until_there_is_one_only(considering: Considering) -> None:
    job = Job(LoadController(chosen_settings(scope="local", window=100, drain_share=0.0, drain_limit=300)))
    job.controller.request_repartition()
    job.batch(EVEN)
    job.batch(EVEN)
    job.controller.request_repartition()
    for _ in range(6):
        job.batch(EVEN)
    assert job.kinds() == ["switch", "unite", "switch"]
    assert len(considering.asked) == 2


def test_a_request_waits_until_somebody_has_subscribed(considering: Considering) -> None:
    controller = LoadController(chosen_settings(scope="local", window=100))
    controller.request_repartition()
    controller.observe(observed(PLAN, EVEN))
    deployment = Deployment(PLAN)
    assert controller.adjust(0, deployment.registrar, deployment.hosts) is None
    deployment.process(subscribers())
    assert controller.adjust(1, deployment.registrar, deployment.hosts) is not None


def test_a_controller_that_comes_to_a_job_in_between_two_plans_brings_them_together() -> None:
    """As after a restart: it knows nothing, but the registrar does."""
    job = Job(LoadController(chosen_settings(scope="local", drain_share=0.0, drain_limit=200)))
    job.deployment.switch(EAST_AND_WEST)
    for _ in range(4):
        job.batch(EVEN)
    assert job.kinds() == ["unite"]
    assert job.made[0].record.batch_id == 2
