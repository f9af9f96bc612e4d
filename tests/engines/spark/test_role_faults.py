"""Faults at random moments on resident roles: nothing is lost or doubled, and they go on by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusters import cluster_command, driver_environment, needs_cluster

_CAMPAIGN = Path(__file__).with_name("faults") / "roles_campaign.py"
_LIMIT_S = 1_800.0
_N_WORKERS = 3


def outcome_of(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        command, env=driver_environment(), capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr[-20_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found, indent=1))
    return found


def assert_nothing_is_wrong(found: dict[str, Any], kinds: str) -> None:
    assert found["as_the_oracle"], found
    assert (found["n_lost"], found["n_doubled"], found["n_wrong"]) == (0, 0, 0)
    assert found["n_matches"] > 500
    assert found["n_writers"] == _N_WORKERS  # of whom the order was checked, then
    assert all(n > 0 for n in found["n_trimmed"].values())
    assert sorted(row["kind"] for row in found["faults"]) == sorted(kinds.split(","))


@pytest.mark.slow
@pytest.mark.parametrize(("order", "seed"), [("given", 1), ("arrival", 2)])
def test_roles_on_one_host_go_on_after_every_fault_and_every_match_comes_once(order: str, seed: int) -> None:
    kinds = "python,role-pause,usurped,driver,kafka"
    command = [sys.executable, str(_CAMPAIGN), "--seed", str(seed), "--order", order, "--kinds", kinds]
    assert_nothing_is_wrong(outcome_of([*command, "--faults", "5"]), kinds)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a disk")
def test_roles_go_on_when_the_disk_of_the_broker_was_full() -> None:
    kinds = "disk-full,python,disk-full"
    command = [sys.executable, str(_CAMPAIGN), "--seed", "5", "--order", "arrival", "--kinds", kinds]
    found = outcome_of([*command, "--faults", "3"])
    assert_nothing_is_wrong(found, kinds)
    assert all(row["broker_ended"] for row in found["faults"] if row["kind"] == "disk-full")


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize(("order", "seed"), [("given", 3), ("arrival", 4)])
def test_roles_on_three_hosts_go_on_after_every_fault_and_every_match_comes_once(
    order: str, seed: int
) -> None:
    kinds = "python,executor,host,driver,kafka,store,role-pause,cut-40,link-25,host-pause"
    command = [sys.executable, str(_CAMPAIGN), "--seed", str(seed), "--order", order, "--kinds", kinds]
    bed = ["--cores", "4", "--memory", "2g", "--kafka"]
    found = outcome_of(cluster_command("run", *bed, "--", *command, "--faults", "10"))
    assert_nothing_is_wrong(found, kinds)
    assert all(row["had_successors"] for row in found["faults"] if row["kind"] == "host-pause")
