"""A replay through resident roles whose load is adjusted gives what the oracle says, by any partitioner."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clusters import driver_environment
from laws.engines import outcome_of, sorted_outcome
from ps2stream.kafka.client import Kafka
from ps2stream.partitioning import PARTITIONERS
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from waiting import HANG_S

_JOB = Path(__file__).with_name("replay_job.py")
#: Every partitioner, one worker to eight, one dispatcher to three; not all of them with each other.
_CASES = [
    ("grid", 1, 1),
    ("grid", 6, 3),
    ("kd-tree", 2, 3),
    ("r-tree", 3, 2),
    ("frequency", 8, 1),
    ("hypergraph", 5, 2),
    ("metric", 4, 3),
    ("hybrid", 1, 2),
    ("hybrid", 7, 1),
    ("hybrid", 8, 3),
]


def test_every_partitioner_is_replayed_with() -> None:
    assert {partitioner for partitioner, _, _ in _CASES} == set(PARTITIONERS)


@pytest.mark.slow
@pytest.mark.parametrize(("partitioner", "n_workers", "n_dispatchers"), _CASES)
def test_a_replay_that_is_adjusted_gives_what_the_oracle_says(
    kafka: Kafka, tmp_path: Path, partitioner: str, n_workers: int, n_dispatchers: int
) -> None:
    events = random_events(3_000, seed=n_workers * 10 + n_dispatchers).sort_by("seq")
    pq.write_table(events, tmp_path / "events.parquet")
    command = [sys.executable, str(_JOB), str(tmp_path / "events.parquet"), str(tmp_path), kafka.servers]
    done = subprocess.run(
        [*command, partitioner, str(n_workers), str(n_dispatchers)],
        env=driver_environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    matches, rejected = (
        pq.read_table(tmp_path / "out" / name).to_pylist() for name in ("matches", "rejected")
    )
    expected = sorted_outcome(oracle.run(events))
    assert len(expected.matches) > 500
    assert expected.rejected
    assert outcome_of(matches, rejected) == expected
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["matches"] == len(expected.matches)
    assert report["adjustments"], "the load was to be adjusted, and plans to be changed"
