"""The real-time engine on three hosts that share nothing but a store and a broker: the laws."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clusters import in_cluster, needs_cluster
from laws.engines import outcome_of
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

pytestmark = [pytest.mark.slow, needs_cluster]


@pytest.mark.parametrize(
    ("seed", "partitioner", "n_workers", "n_dispatchers"),
    [(41, "hybrid", 3, 2), (42, "kd-tree", 4, 1), (43, "metric", 2, 3)],
)
def test_a_replay_by_roles_on_three_hosts_gives_what_the_oracle_says(
    tmp_path: Path, seed: int, partitioner: str, n_workers: int, n_dispatchers: int
) -> None:
    events, out = random_events(6_000, seed=seed).sort_by("seq"), tmp_path / "out"
    pq.write_table(events, tmp_path / "events.parquet")
    command = [sys.executable, "-m", "ps2stream", "replay", str(tmp_path / "events.parquet")]
    command += ["--engine", "realtime", "--partitioner", partitioner]
    command += ["--workers", str(n_workers), "--dispatchers", str(n_dispatchers)]
    command += ["--sigma", "1.2", "--window", "500", "--check-every", "1000"]
    done = in_cluster(
        [*command, "--out", str(out), "--report", str(tmp_path / "report.json"), "--quiet"], kafka=True
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["engine"], report["n_workers"]) == ("realtime", n_workers)
    matches, rejected = (pq.read_table(out / name).to_pylist() for name in ("matches", "rejected"))
    expected = oracle.run(events)
    assert len(expected.matches) > 1_000
    assert outcome_of(matches, rejected).matches == sorted(expected.matches)
    assert len(rejected) == len(expected.rejected)
