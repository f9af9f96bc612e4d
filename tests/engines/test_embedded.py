"""A durable job in this process: cut off at any step it goes on, and its sink ends as the oracle says."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

from laws.chaos import Chaos
from laws.crashes import CrashError, crashing
from laws.engines import JobHome, OnJournal, one_batch, sorted_outcome
from laws.test_every_match_once import assert_as_the_oracle_says
from ps2stream.config import Settings
from ps2stream.errors import EngineError, PS2StreamError, StateError
from ps2stream.registry.log import SubscriptionLog
from ps2stream.roles.registrar import Registrar
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.audit import AuditLog
from ps2stream.state.ledger import Ledger
from ps2stream.state.plans import Plans
from ps2stream.state.state import State
from ps2stream.state.worker_home import WorkerHome
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=3, n_dispatchers=2, batch_events=60)

#: So few updates that every batch or two leaves a snapshot.
OFTEN = 30

#: All that a job does to its files, in the order of a batch.
STEPS = [
    (Ledger, "note"),
    (SubscriptionLog, "snapshot"),
    (Plans, "add"),
    (AuditLog, "write"),
    (Registrar, "decide"),
    (ParquetSink, "write_rejected"),
    (SubscriptionLog, "append"),
    (Plans, "keep"),
    (WorkerHome, "mark_dirty"),
    (WorkerHome, "replace"),
    (WorkerHome, "mark_clean"),
    (ParquetSink, "write_matches"),
]


def assert_delivered(job_home: JobHome, events: pa.Table, late: list[oracle.Rejection]) -> None:
    """Each match once, and each file of a batch by one worker once."""
    expected = sorted_outcome(oracle.run(events))
    assert job_home.outcome(late) == expected
    assert len(expected.matches) > 50
    names = [path.name for path in (job_home.out / "matches").glob("batch-*")]
    assert all(re.fullmatch(r"batch-\d{12}-00[0-2]\.parquet", name) for name in names)


@pytest.mark.parametrize("seed", range(2))
def test_a_long_log_gives_what_the_oracle_says_through_all_kinds_of_adjustments(seed: int) -> None:
    events = random_events(2_000, seed=seed, publication_share=0.6)
    chaos = Chaos(seed, one_batch(events))
    run = OnJournal(None, chaos).run(events, Settings(n_workers=5), 60)
    assert_as_the_oracle_says(run, events)
    assert {"local", "switch", "unite", "move"} <= set(chaos.made)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(("owner", "name"), STEPS)
def test_a_job_in_this_process_that_is_cut_off_at_any_step_goes_on(
    job_home: JobHome, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, is_done: bool
) -> None:
    events = random_events(330, seed=31, publication_share=0.5, n_subscription_ids=40)
    late = job_home.publish(events, packet_events=10)
    rng, n_crashes = random.Random(name), 0
    for seed in range(3):
        with monkeypatch.context() as patch:
            crash = crashing(getattr(owner, name), rng.randint(0, 2), is_done=is_done)
            patch.setattr(owner, name, crash)
            # Indexes that are compacted now and then: there is little to compact.
            patch.setattr("ps2stream.matching.index.GI2.should_compact", lambda self: rng.random() < 0.3)
            try:
                chaos = Chaos(seed, one_batch(events), share=0.7)
                job_home.drain(None, SETTINGS, controller=chaos, snapshot_every=OFTEN)
            except (CrashError, PS2StreamError):
                n_crashes += 1
    job_home.drain(None, SETTINGS, controller=Chaos(9, one_batch(events)), snapshot_every=OFTEN)
    assert_delivered(job_home, events, late)
    assert n_crashes >= 1


def test_the_notes_of_a_job_that_was_stopped_are_complete(job_home: JobHome) -> None:
    events = random_events(600, seed=43)
    job_home.publish(events, packet_events=20)
    job_home.run_briefly(None, SETTINGS, n_batches=3)
    ledger = State.at(job_home.state).ledger
    begun = ledger.begun()
    assert begun is not None
    assert begun.batch_id == ledger.finished()


def test_two_engines_never_run_on_one_state_at_once(job_home: JobHome) -> None:
    job_home.publish(random_events(50, seed=1), packet_events=20)
    with (
        job_home.stream(None, SETTINGS, on_batch=lambda done: None),
        pytest.raises(StateError, match="another job is running on the state"),
        job_home.stream(None, SETTINGS, on_batch=lambda done: None),
    ):
        pass


def test_what_fails_in_the_loop_is_raised_where_somebody_looks(
    job_home: JobHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_home.publish(random_events(50, seed=1), packet_events=20)
    monkeypatch.setattr(ParquetSink, "write_matches", crashing(ParquetSink.write_matches, 0, is_done=False))
    with (
        pytest.raises(EngineError, match="the stream failed: CrashError"),
        job_home.stream(None, SETTINGS, on_batch=lambda done: None) as stream,
    ):
        stream.process_all_available()
