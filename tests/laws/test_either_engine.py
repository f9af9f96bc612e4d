"""Either engine goes on where the other was stopped, or cut off at any step; the sink ends as it should."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from engines.test_embedded import OFTEN, SETTINGS, assert_delivered
from laws.chaos import Chaos
from laws.crashes import CrashError, crashing
from laws.engines import JobHome, one_batch
from ps2stream.engines.batch_notes import BatchNotes
from ps2stream.errors import PS2StreamError
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events


def test_each_engine_goes_on_where_the_other_was_stopped_or_cut_off(
    spark: SparkSession, job_home: JobHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that one engine has decided, and matched in part, is ended by the other."""
    events = random_events(950, seed=51, publication_share=0.55, n_subscription_ids=80)
    late = job_home.publish(events.slice(0, 200), packet_events=15)
    sample = one_batch(events)
    job_home.drain(spark, SETTINGS, controller=Chaos(1, sample), snapshot_every=OFTEN)
    late = job_home.publish(events.slice(0, 800), packet_events=15)
    cut_off: list[int] = []
    # Of a batch of this process a part is in the sink, one on Spark is all but noted as finished.
    in_part, unnoted = (ParquetSink, "write_matches", 7), (BatchNotes, "finish", 1)
    for turn, (engine, (owner, name, n_before)) in enumerate(
        [(None, in_part), (spark, unnoted), (None, in_part)]
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, crashing(getattr(owner, name), n_before, is_done=engine is None))
            with pytest.raises((CrashError, PS2StreamError)):
                job_home.drain(engine, SETTINGS, controller=Chaos(turn, sample), snapshot_every=OFTEN)
        ledger = State.at(job_home.state).ledger
        begun = ledger.begun()
        assert begun is not None
        assert begun.batch_id > ledger.finished()
        cut_off.append(begun.batch_id)
    job_home.drain(spark, SETTINGS, controller=Chaos(7, sample), snapshot_every=OFTEN)
    late = job_home.publish(events, packet_events=15)
    job_home.drain(None, SETTINGS, controller=Chaos(8, sample), snapshot_every=OFTEN)
    assert len(set(cut_off)) == 3
    assert_delivered(job_home, events, late)
