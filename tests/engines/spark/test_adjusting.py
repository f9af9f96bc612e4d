"""The controller at work in the running stream: it adjusts by itself, tells of it, and can be asked."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from laws.engines import JobHome, sorted_outcome
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.model.schemas import EVENTS
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

EAGER = AdjustmentSettings(sigma=1.05, target=1.02, window=100, margin=0.0, drain_share=0.9)


def drifting(n_events: int, seed: int) -> pa.Table:
    """Draw events whose second half all comes from one small part of the world."""
    events = random_events(n_events, seed, publication_share=0.7)
    is_late = pc.greater(events["seq"], n_events // 2)
    for name, low in (("lon", 10.0), ("lat", 20.0)):
        folded = pc.add(low, pc.divide(events[name], 100.0))
        column = pc.if_else(is_late, folded, events[name])
        events = events.set_column(EVENTS.get_field_index(name), EVENTS.field(name), column)
    return events


@pytest.fixture
def events() -> pa.Table:
    return drifting(2_000, 21)


def test_a_stream_that_drifts_is_adjusted_and_still_gives_what_the_oracle_says(
    spark: SparkSession, job_home: JobHome
) -> None:
    events = drifting(1_200, 21)
    late = job_home.publish(events, packet_events=60)
    batches = job_home.drain(spark, Settings(n_workers=3, batch_events=150, adjustment=EAGER))
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))
    state = State.at(job_home.state)
    records = state.adjustments.read()
    assert "local" in {record.kind for record in records}
    assert {each.batch_id for batch in batches for each in batch.adjustments} == {
        record.batch_id for record in records
    }
    for record in records:
        assert record.n_delayed > 0
        assert 0 < record.selection_s <= record.pause_s
        assert record.migration_s > 0
        assert record.plan_after == record.plan_before + 1
        assert max(record.loads_expected) < max(record.loads_before)
    status = state.mailbox.read_status()
    assert status is not None
    assert status["plans"] == [records[-1].plan_after]
    assert [worker["worker"] for worker in status["workers"]] == [0, 1, 2]
    assert any(worker["cells"] for worker in status["workers"])


def test_a_running_job_can_be_asked_for_a_new_plan(
    spark: SparkSession, job_home: JobHome, events: pa.Table
) -> None:
    only_asked = AdjustmentSettings(
        scope="global", window=100, margin=0.0, check_every=1_000_000, drain_share=0.9
    )
    settings = Settings(n_workers=3, partitioner="kd-tree", batch_events=150, adjustment=only_asked)
    n_published = 500
    job_home.publish(events.slice(0, n_published), packet_events=60)
    job_home.drain(spark, settings)
    state = State.at(job_home.state)
    assert state.adjustments.read() == []
    state.mailbox.request_repartition()
    with job_home.stream(spark, settings) as query:
        # The plan is made beside the stream: how many batches pass meanwhile is anybody's guess.
        while n_published < events.num_rows and len(state.adjustments.read()) < 2:
            n_published += 20
            job_home.publish(events.slice(0, n_published), packet_events=60)
            query.process_all_available()
    assert not state.mailbox.take_request()
    assert [record.kind for record in state.adjustments.read()][:2] == ["switch", "unite"]
    assert state.routing().older is None
    published = events.slice(0, n_published + 150)
    late = job_home.publish(published, packet_events=60)
    job_home.drain(spark, settings)
    assert job_home.outcome(late) == sorted_outcome(oracle.run(published))


def test_nothing_is_adjusted_and_no_status_left_where_that_is_off(
    spark: SparkSession, job_home: JobHome, events: pa.Table
) -> None:
    late = job_home.publish(events, packet_events=200)
    off = AdjustmentSettings(scope="off", sigma=1.05, target=1.02, window=100)
    job_home.drain(spark, Settings(n_workers=3, batch_events=1_000, adjustment=off))
    assert State.at(job_home.state).adjustments.read() == []
    assert State.at(job_home.state).mailbox.read_status() is None
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))
