"""Faults at random moments on three hosts: nothing is lost or doubled, and the job goes on by itself."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusters import cluster_command, driver_environment, needs_cluster
from engines.spark.faults.campaign import kinds_in_turn, moves, verdict
from engines.spark.faults.table import of_engine, read, table_of
from ps2stream.model.matches import Match
from ps2stream.testing.oracle import Deliveries

_CAMPAIGN = Path(__file__).with_name("faults") / "campaign.py"
#: The kinds of a campaign, each once.
_KINDS = {
    "journal": ("python", "executor", "worker", "driver", "store", "cut-5", "cut-40", "pause"),
    "kafka": ("python", "executor", "host", "driver", "store", "kafka", "cut-40", "pause"),
}
#: They replace the driver; with the others it has to live on.
_OF_THE_DRIVER = ("driver", "pause")
#: No campaign takes so long; a job that does not go on is given up before.
_LIMIT_S = 1_800.0


def outcome_of(source: str, seed: int) -> dict[str, Any]:
    """Run a campaign on a bed with slots for two drivers at once."""
    kinds = _KINDS[source]
    command = [sys.executable, str(_CAMPAIGN), "--seed", str(seed), "--source", source]
    command += ["--kinds", ",".join(kinds), "--faults", str(len(kinds))]
    bed = ["--cores", "4", "--memory", "2g", *(["--kafka"] if source == "kafka" else [])]
    done = subprocess.run(
        cluster_command("run", *bed, "--", *command),
        env=driver_environment(),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-20_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize(
    ("source", "seed"), [*(("journal", seed) for seed in (1, 2, 3)), *(("kafka", seed) for seed in (4, 5, 6))]
)
def test_a_job_goes_on_after_every_fault_and_every_match_comes_once(source: str, seed: int) -> None:
    found = outcome_of(source, seed)
    print(json.dumps(found, indent=1), table_of([found]), sep="\n")
    assert (found["n_lost"], found["n_doubled"], found["n_wrong"]) == (0, 0, 0)
    assert found["as_the_oracle"]
    assert found["n_matches"] > 1_000
    assert found["n_adjustments"] > 1
    assert sorted(row["kind"] for row in found["faults"]) == sorted(_KINDS[source])
    for row in found["faults"]:
        assert row["n_drivers"] == (row["kind"] in _OF_THE_DRIVER), row
        assert row.get("is_fenced", True), row


def test_every_kind_comes_as_often_as_any_other_and_the_seed_says_when() -> None:
    kinds = ["a", "b", "c"]
    chosen = kinds_in_turn(kinds, 7, random.Random(1))
    assert len(chosen) == 7
    assert {chosen.count(kind) for kind in kinds} == {2, 3}
    assert chosen == kinds_in_turn(kinds, 7, random.Random(1))
    assert chosen != kinds_in_turn(kinds, 7, random.Random(2))


def test_what_is_lost_doubled_or_wrong_is_counted() -> None:
    one, two, three, four = (Match(f"s{n}", n, "p", 9) for n in range(4))
    expected = Deliveries([one, two, three], [])
    assert verdict(expected, expected)["as_the_oracle"]
    found = verdict(expected, Deliveries([one, one, two, four], []))
    assert (found["n_lost"], found["n_doubled"], found["n_wrong"]) == (1, 1, 1)
    assert not found["as_the_oracle"]
    assert not verdict(expected, Deliveries([one, two, two, three], []))["as_the_oracle"]


def test_a_worker_that_changes_its_host_has_moved() -> None:
    assert moves([{"0": "h1", "1": "h2"}, {"0": "h1", "1": "h3"}, {"0": "h2", "1": "h3"}]) == 2
    assert moves([{"0": "h1"}]) == 0


def test_the_table_has_a_line_for_each_kind_that_was_made() -> None:
    rows = [("executor", 2.0), ("python", 1.0), ("executor", 4.0), ("executor", 9.0)]
    campaign = {"faults": [{"kind": kind, "to_go_on_s": seconds} for kind, seconds in rows]}
    assert table_of([campaign]).splitlines()[2:] == [
        "| a Python process is killed | 1 | 1.0 | 1.0 |",
        "| an executor is killed | 3 | 4.0 | 9.0 |",
    ]


def test_the_documents_say_what_the_rows_say_and_what_was_wrong_is_mended() -> None:
    docs = Path(__file__).parents[3] / "docs"
    campaigns = read(docs / "faults.jsonl")
    for engine in ("microbatch", "realtime"):
        assert table_of(of_engine(campaigns, engine)) in (docs / "cluster.md").read_text()
    assert not any(campaign["n_lost"] for campaign in campaigns)
    repeated = [campaign for campaign in campaigns if campaign["n_doubled"]]
    assert all("mended" in campaign or campaign["delivery"] == "at-least-once" for campaign in repeated)
    assert all(campaign["as_the_oracle"] or "mended" in campaign for campaign in campaigns)
