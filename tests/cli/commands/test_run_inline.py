"""``ps2stream run --engine inline``: a deployment in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cli.conftest import Run
from ps2stream.deployment.home import Home
from test_extras import _BLOCKED
from waiting import HANG_S

INLINE = ("run", "--engine", "inline", "--workers", "2")
RUN = (*INLINE, "--until-idle", "--json")


def publications(first: int, n: int) -> list[dict[str, Any]]:
    return [
        {"id": f"p{i}", "lat": 48.1, "lon": 11.5, "text": "fire and smoke"} for i in range(first, first + n)
    ]


def ids(home: Home) -> list[str]:
    return sorted(row["publication_id"] for row in pq.read_table(home.out / "matches").to_pylist())  # type: ignore[operator]


@pytest.fixture
def subscribed(run: Run, home: Home, lines: Callable[..., str]) -> Run:
    """Subscribe, and publish three."""
    assert run("subscribe", "fires", "fire AND smoke", "--region", "11,48,12,49").code == 0
    assert run("publish", "--file", lines(*publications(0, 3))).code == 0
    return run


def test_a_deployment_from_subscribing_to_matches(
    subscribed: Run, home: Home, lines: Callable[..., str]
) -> None:
    first = subscribed(*RUN)
    assert first.code == 0, first.err
    assert first.err.splitlines() == [
        "starting",
        f"running on {home.directory} (stop with Ctrl-C)",
    ]
    assert first.json()[-1]["matches"] == 3
    assert subscribed("publish", "--file", lines(*publications(3, 2))).code == 0
    second = subscribed(*RUN)
    assert second.json()[-1]["matches"] == 2
    assert {line["subscriptions"] for line in second.json()} == {1}
    assert ids(home) == ["p0", "p1", "p2", "p3", "p4"]
    (status,) = subscribed("status", "--json").json()
    assert status["running"] is False
    assert [worker["worker"] for worker in status["workers"]] == [0, 1]
    other = subscribed("run", "--engine", "inline", "--until-idle", "--workers", "3")
    assert other.code == 3
    assert "was made with n_workers=2; got 3" in other.err
    assert "starting" not in other.err


def test_top_shows_what_the_job_has_done_and_left(subscribed: Run, home: Home) -> None:
    done = subscribed(*RUN, "--metrics", "0")
    assert done.code == 0, done.err
    assert done.err.splitlines()[1].startswith("metrics at http://127.0.0.1:")
    shown = subscribed("top", "--once").out
    assert shown.startswith("THE JOB DOES NOT RUN (inline); figures of ")
    assert "3 publications, 1 update, 3 matches, 0 rejected, 0 restarts" in shown
    (board,) = subscribed("top", "--once", "--json").json()
    job = board["job"]
    assert (job["subscriptions"], job["lag_events"], job["position"]) == (1, {"journal": 0}, 4)
    assert job["latency"]["n"] == 4, "the last word has all that was done"
    roles = {(role["role"], role["number"]) for role in board["roles"]}
    assert {("driver", 0), ("registrar", 0), ("worker", 0), ("worker", 1), ("merger", 0)} <= roles


def test_state_and_output_may_be_in_a_store(
    subscribed: Run, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path / "local"))
    first = subscribed(*RUN, "--store", str(tmp_path / "store"))
    assert first.code == 0, first.err
    assert first.json()[-1]["matches"] == 3
    assert sorted(path.name for path in home.directory.iterdir()) == ["journal", "store.json"]
    second = subscribed(*RUN)
    assert (second.code, second.json()[-1]["matches"]) == (0, 0)
    assert len(subscribed("matches", "--json").json()) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--master", "spark://h:7077"], "--engine inline runs in this process, without a cluster; got --m"),
        (["--conf", "spark.ui.enabled=true"], "no settings of Spark; got --conf spark.ui.enabled"),
        (["--kafka", "h:9092"], "--engine inline reads the journal of a home, not topics"),
    ],
)
def test_what_needs_spark_is_wrong_usage(run: Run, home: Home, words: list[str], message: str) -> None:
    ran = run(*INLINE, *words)
    assert ran.code == 2
    assert message in ran.err
    assert "starting" not in ran.err
    assert not home.directory.exists()


def test_it_works_where_no_extra_is_installed_and_ctrl_c_ends_it(subscribed: Run, home: Home) -> None:
    code = f"{_BLOCKED}\nfrom ps2stream.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    words = [*INLINE, "--json", "--report-every", "0.1", "--home", str(home.directory)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        deadline = time.monotonic() + HANG_S
        for line in process.stdout:
            if json.loads(line)["matches"] == 3 or time.monotonic() > deadline:
                break
        second = subscribed(*RUN)
        assert (second.code, second.err) == (
            3,
            f"ps2stream: another job is running on the state in {home.state}\n",
        )
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1] == "ps2stream: interrupted; start again to go on from here"
    assert ids(home) == ["p0", "p1", "p2"]


def test_it_has_one_worker_or_as_many_as_the_job_was_begun_with(subscribed: Run, home: Home) -> None:
    words = ("run", "--engine", "inline", "--until-idle")
    assert subscribed(*words).code == 0
    assert home.settings().n_workers == 1
    refused = subscribed(*words, "--workers", "4")
    assert refused.code == 3
    assert "was made with n_workers=1; got 4" in refused.err


def test_a_later_start_need_not_say_how_many_workers_there_are(subscribed: Run, home: Home) -> None:
    assert subscribed(*RUN).code == 0
    later = subscribed("run", "--engine", "inline", "--until-idle", "--json")
    assert later.code == 0, later.err
    assert home.settings().n_workers == 2
