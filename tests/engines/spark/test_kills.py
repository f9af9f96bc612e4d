"""Kill the job, or a Python process of it, at random moments: the sink ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import random
import time

import pytest

from engines.spark.processes import (
    Job,
    batch_in_flight,
    journal_events,
    kill,
    publishing,
    wait_until_gone,
)
from laws.engines import JobHome, sorted_outcome
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

pytestmark = pytest.mark.slow

N_KILLS = 5
#: The last run may take what is left in large batches.
REST = 2_000


def drain(job_home: JobHome, chaos: int | None = None) -> None:
    with Job(job_home.directory, REST, chaos) as job:
        assert job.wait() == 0, (job_home.directory / "stderr").read_text()[-3_000:]
        assert wait_until_gone(job.pid) == []


def wait_for_flight(job_home: JobHome, job: Job) -> None:
    """Wait until a batch has begun: between two batches a process has nothing to lose."""
    while job.is_running and not batch_in_flight(job_home):
        time.sleep(0.01)


def assert_every_match_once(job_home: JobHome) -> int:
    expected = sorted_outcome(oracle.run(journal_events(job_home)))
    delivered = job_home.outcome([])
    assert len(delivered.matches) == len(set(delivered.matches)), "doubled"
    assert set(expected.matches) - set(delivered.matches) == set(), "lost"
    assert delivered == expected
    return len(expected.matches)


@pytest.mark.parametrize(("seed", "chaos"), [(1, None), (2, None), (5, 5), (6, 6)])
def test_a_killed_job_goes_on_and_delivers_every_match_once(
    job_home: JobHome, seed: int, chaos: int | None
) -> None:
    """With chaos the load is adjusted before most batches, and kills come amid that, too."""
    rng = random.Random(seed)
    events = random_events(20_000, seed, n_subscription_ids=150)
    n_in_flight = 0
    batches: list[int] = []
    with contextlib.ExitStack() as jobs:
        with publishing(job_home, events, seed):
            for _ in range(N_KILLS):
                job = jobs.enter_context(Job(job_home.directory, chaos=chaos))
                batches += job.wait_for_batches(rng.randint(1, 3))
                time.sleep(rng.uniform(0.0, 1.0))
                job.kill()
                n_in_flight += batch_in_flight(job_home)
                # Else the next job starts while the Python processes of this one may still be at work.
                if rng.random() < 0.5:
                    assert wait_until_gone(job.pid) == []
        drain(job_home, chaos)
        assert wait_until_gone(job.pid) == []
    n_matches = assert_every_match_once(job_home)
    n_batches = max(batches)
    print(f"seed {seed}: {N_KILLS} kills, {n_in_flight} in a batch, {n_batches} batches, {n_matches} matches")
    assert n_in_flight >= N_KILLS // 2
    assert len(set(batches)) >= N_KILLS
    if chaos is not None:
        made = {record.kind for record in State.at(job_home.state).adjustments.read()}
        assert made == {"local", "switch", "unite"}


@pytest.mark.parametrize(("seed", "chaos"), [(3, None), (4, 4)])
def test_killed_python_processes_cost_no_match_and_double_none(
    job_home: JobHome, seed: int, chaos: int | None
) -> None:
    rng = random.Random(seed)
    events = random_events(20_000, seed, n_subscription_ids=150)
    n_killed = n_in_flight = n_restarts = 0
    batches: list[int] = []
    with publishing(job_home, events, seed):
        while n_killed < N_KILLS:
            with Job(job_home.directory, chaos=chaos) as job:
                while n_killed < N_KILLS and job.is_running:
                    batches += job.wait_for_batches(rng.randint(1, 2))
                    wait_for_flight(job_home, job)
                    time.sleep(rng.uniform(0.0, 0.4))
                    victims = job.task_processes() if rng.random() < 0.7 else job.python_processes()
                    if victims:
                        n_in_flight += batch_in_flight(job_home)
                        kill(rng.choice(victims))
                        n_killed += 1
                # The reader of the data source is the one process that Spark does not replace.
                batches += job.wait_for_batches(2)
                n_restarts += not job.is_running
                job.kill()
    drain(job_home, chaos)
    n_matches = assert_every_match_once(job_home)
    n_lost_tasks = (job_home.directory / "stderr").read_text(errors="replace").count("Lost task ")
    print(
        f"seed {seed}: {n_killed} kills, {n_in_flight} in a batch, {n_lost_tasks} lost tasks, "
        f"{n_restarts} restarts, {max(batches)} batches, {n_matches} matches"
    )
    assert n_in_flight >= N_KILLS // 2
    assert n_lost_tasks >= 1
