"""Kill a job in one process at random moments: the sink ends as if nothing had happened."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engines.spark.processes import journal_events, publishing
from laws.engines import JobHome, sorted_outcome
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from waiting import HANG_S

pytestmark = pytest.mark.slow

N_KILLS = 6
SCRIPT = Path(__file__).with_name("killable_embedded.py")


def started(job_home: JobHome, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(job_home.directory), str(seed)]
    paths = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_job_goes_on_and_delivers_every_match_once(job_home: JobHome, seed: int) -> None:
    rng = random.Random(seed)
    events = random_events(6_000, seed, n_subscription_ids=150)
    n_in_flight = 0
    with publishing(job_home, events, seed):
        for _ in range(N_KILLS):
            with started(job_home, seed) as job:
                assert job.stdout is not None
                job.stdout.readline()
                time.sleep(rng.uniform(0.0, 0.5))
                job.kill()
            ledger = State.at(job_home.state).ledger
            begun = ledger.begun()
            n_in_flight += begun is not None and begun.batch_id > ledger.finished()
    with started(job_home, seed) as job:
        job.communicate(timeout=HANG_S)
    assert job.returncode == 0
    delivered, expected = job_home.outcome([]), sorted_outcome(oracle.run(journal_events(job_home)))
    assert len(delivered.matches) == len(set(delivered.matches)), "doubled"
    assert delivered == expected
    assert n_in_flight >= 1
    assert {record.kind for record in State.at(job_home.state).adjustments.read()} == {
        "local",
        "switch",
        "unite",
    }
