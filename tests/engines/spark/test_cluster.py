"""The micro-batch engine on three hosts that share nothing but a store: the laws, and what faults do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from clusters import in_cluster, needs_cluster
from laws.engines import outcome_of
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

pytestmark = [pytest.mark.slow, needs_cluster]

_SCENARIOS = Path(__file__).with_name("cluster_scenarios.py")
_DEPLOYED = Path(__file__).with_name("deployed_scenario.py")


def found_by(
    *scenario: str, script: Path = _SCENARIOS, share: Path | None = None, kafka: bool = False
) -> dict[str, Any]:
    done = in_cluster([sys.executable, str(script), *scenario], share=share, kafka=kafka)
    assert done.returncode == 0, done.stderr[-5_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("seed", "partitioner", "n_workers"),
    [(1, "hybrid", 1), (2, "hybrid", 8), (3, "kd-tree", 5), (4, "metric", 3)],
)
def test_every_match_comes_once_and_no_worker_moves(seed: int, partitioner: str, n_workers: int) -> None:
    found = found_by("journal", str(seed), partitioner, str(n_workers))
    assert found["as_the_oracle"]
    assert found["n_matches"] > 1_000
    assert found["adjustments"] > 1 or n_workers == 1
    assert found["moves"] == 0
    assert found["hosts"] == [f"h{n + 1}" for n in range(min(3, n_workers))] or n_workers < 3


@pytest.mark.parametrize(
    ("seed", "fault"),
    [
        (11, ["kill", "h2", "--only", "python"]),
        (12, ["kill", "h1", "--only", "executor"]),
        (13, ["kill", "h3"]),
    ],
)
def test_what_dies_on_the_way_costs_no_match_and_doubles_none(seed: int, fault: list[str]) -> None:
    found = found_by("journal", str(seed), "hybrid", "6", *fault)
    assert found["as_the_oracle"]
    assert found["n_matches"] > 1_000


@pytest.mark.parametrize(("seed", "partitioner", "n_workers"), [(31, "hybrid", 6), (32, "metric", 3)])
def test_every_match_of_topics_comes_once_to_topics(seed: int, partitioner: str, n_workers: int) -> None:
    found = found_by("kafka", str(seed), partitioner, str(n_workers), kafka=True)
    assert found["n_events"] == 3_000
    assert found["as_the_oracle"]
    assert found["n_matches"] > 1_000
    assert found["adjustments"] > 1
    assert found["moves"] == 0
    assert found["hosts"] == ["h1", "h2", "h3"]


def test_a_finite_dataframe_is_matched_where_its_rows_are() -> None:
    found = found_by("dataframe", "21")
    assert found["as_the_oracle"]
    assert found["n_matches"] > 1_000


@pytest.mark.parametrize(("seed", "fault"), [(23, []), (24, ["kill", "h2", "--only", "executor"])])
def test_files_without_seq_lose_nothing(tmp_path: Path, seed: int, fault: list[str]) -> None:
    found = found_by("without-seq", str(seed), str(tmp_path), *fault, share=tmp_path)
    assert found["finite_as_the_oracle"]
    assert found["stream_as_the_oracle"]
    assert found["n_batches"] == 5
    assert min(found["n_matches"]) > 1_000
    assert found["left_in_the_spool"] == []


def test_a_log_is_replayed_on_the_cluster_of_the_environment_and_a_directory_gets_the_files(
    tmp_path: Path,
) -> None:
    events, out = random_events(2_000, seed=22).sort_by("seq"), tmp_path / "out"
    pq.write_table(events, tmp_path / "events.parquet")
    command = [sys.executable, "-m", "ps2stream", "replay", str(tmp_path / "events.parquet")]
    done = in_cluster(
        [
            *(*command, "--out", str(out), "--report", str(tmp_path / "report.json")),
            *("--workers", "5", "--dispatchers", "2", "--adjust", "off"),
        ]
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert {worker["host"] for worker in report["workers"]} == {"h1", "h2", "h3"}
    store, n_batches = report["store"], report["store"]["batches"]
    assert n_batches >= 1
    # Two files for a dispatcher, three looks of a worker; for a host the segment of a batch, and one plan.
    assert store["tasks"]["gets"] <= n_batches * (2 * 2 + 3 * 5 + 3) + 3
    assert 0 < store["tasks"]["puts"] <= n_batches * (5 + 5)
    assert store["driver"]["puts"] >= n_batches * (3 + 3)  # events; begun, decided, finished
    matches, rejected = (pq.read_table(out / name).to_pylist() for name in ("matches", "rejected"))
    expected = oracle.run(events)
    assert outcome_of(matches, rejected).matches == sorted(expected.matches)
    assert len(rejected) == len(expected.rejected)


def test_a_deployment_is_run_and_used_by_commands_while_its_state_is_in_the_store() -> None:
    found = found_by(script=_DEPLOYED)
    assert found["home"] == ["journal", "store.json"]
    assert found["followed"] == sorted([*(["fires", f"p{i}"] for i in range(40)), ["floods", "p27"]])
    assert found["texts"] == ["fire and smoke 0", "fire and smoke 1"]
    assert found["running"] == [True, False]
    assert (found["workers"], found["matches"]) == (5, True)
    code, words = found["second"]
    assert code == 3
    assert "another job is running on the state in" in words
    assert "starting" not in words
    assert found["repartition"] == [0, ""]
    assert found["stopped"] == 143
    assert found["again"][0] == 0, found["again"][1]
    assert found["subscriptions"] == ["fires"]
    assert found["n_matches"] == 46
