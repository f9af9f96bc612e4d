"""Steady: adjustments of any kind, at any batch, change nothing about what is delivered."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from laws.chaos import Chaos
from laws.crashes import CrashError, crashing
from laws.engines import Inline, JobHome, OnJournal, one_batch, sorted_outcome
from laws.test_every_match_once import assert_as_the_oracle_says
from ps2stream.config import Settings
from ps2stream.errors import PS2StreamError
from ps2stream.partitioning import PARTITIONERS
from ps2stream.registry.log import SubscriptionLog
from ps2stream.state.audit import AuditLog
from ps2stream.state.ledger import Ledger
from ps2stream.state.plans import Plans
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from strategies import event_logs


@given(
    events=event_logs(max_size=60),
    n_workers=st.sampled_from([2, 3, 8]),
    partitioner=st.sampled_from(list(PARTITIONERS)),
    batch_events=st.sampled_from([4, 20]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=25, deadline=None)
def test_any_log_gives_what_the_oracle_says_through_any_adjustments(
    events: pa.Table, n_workers: int, partitioner: str, batch_events: int, seed: int
) -> None:
    chosen = Settings(n_workers=n_workers, partitioner=partitioner)
    chaos = Chaos(seed, one_batch(events))
    assert_as_the_oracle_says(Inline(chaos).run(events, chosen, batch_events), events)


@pytest.mark.parametrize("seed", range(2))
def test_a_long_log_gives_what_the_oracle_says_through_all_kinds_of_adjustments(seed: int) -> None:
    events = random_events(3_000, seed=seed, publication_share=0.6)
    chaos = Chaos(seed, one_batch(events))
    run = Inline(chaos).run(events, Settings(n_workers=5), 60)
    assert_as_the_oracle_says(run, events)
    assert {"local", "switch", "unite", "move"} <= set(chaos.made)


def test_the_stream_on_spark_gives_what_the_oracle_says_through_all_kinds_of_adjustments(
    spark: SparkSession,
) -> None:
    # With this seed, all kinds come in few batches.
    events = random_events(1_200, seed=15, publication_share=0.6)
    chaos = Chaos(15, one_batch(events), share=0.9)
    run = OnJournal(spark, chaos).run(events, Settings(n_workers=3), 150)
    assert_as_the_oracle_says(run, events)
    assert {"local", "switch", "unite", "move"} <= set(chaos.made)


@pytest.mark.parametrize(
    ("owner", "name", "is_done"),
    [
        pytest.param(Plans, "add", False, marks=pytest.mark.slow),
        (Plans, "add", True),
        pytest.param(AuditLog, "write", True, marks=pytest.mark.slow),
        pytest.param(SubscriptionLog, "append", False, marks=pytest.mark.slow),
        (SubscriptionLog, "append", True),
        pytest.param(Plans, "keep", True, marks=pytest.mark.slow),
        pytest.param(Ledger, "finish", False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.slow)])
def test_a_crash_amid_an_adjustment_changes_nothing(
    spark: SparkSession,
    job_home: JobHome,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    is_done: bool,
    seed: int,
) -> None:
    events = random_events(1_200, seed=seed, publication_share=0.6)
    late = job_home.publish(events, packet_events=40)
    settings = Settings(n_workers=3, batch_events=120)
    n_crashes = 0
    for n_before in (1, 2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, crashing(getattr(owner, name), n_before, is_done=is_done))
            try:
                chaos = Chaos(seed, one_batch(events), share=1.0)
                job_home.drain(spark, settings, controller=chaos, snapshot_every=40)
            except (PS2StreamError, CrashError, StreamingQueryException):
                n_crashes += 1
    # What comes after is adjusted otherwise than the lost part would have been.
    job_home.drain(spark, settings, controller=Chaos(seed + 1, one_batch(events)), snapshot_every=40)
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))
    assert n_crashes >= 2
    assert {record.kind for record in State.at(job_home.state).adjustments.read()} >= {"local", "switch"}
