from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cli.plans import cell_plan
from engines.spark.processes import kill, session_of, wait_until_gone
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.deployment.store_note import StoreNote, url_of
from ps2stream.state.lease import Lease, LeaseTerms
from ps2stream.state.state import State
from ps2stream.store.directory import DirectoryStore
from s3_server import S3Server
from waiting import HANG_S

COMMAND = [sys.executable, "-m", "ps2stream"]


def _call(*arguments: str, home: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments, "--home", str(home)], input=text, capture_output=True, text=True, check=False
    )


@contextmanager
def _running(*words: str, home: Path | None = None, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command as a shell does, in a group that is signalled as a whole; here also in a session."""
    where = [] if home is None else ["--home", str(home)]
    with subprocess.Popen(
        [*COMMAND, *words, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    ) as process:
        try:
            yield process
        finally:
            for each in session_of(process.pid):
                kill(each.pid)


def _publications(first: int, n: int) -> str:
    rows = [
        {"id": f"p{i}", "lat": 48.1, "lon": 11.5, "text": "fire and smoke"} for i in range(first, first + n)
    ]
    return "\n".join(map(json.dumps, rows))


def _lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def processed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a deployment whose job has run for a while: to start Spark takes longer than all else here."""
    home = tmp_path_factory.mktemp("processed") / "home"
    done = _call("subscribe", "fires", "fire AND smoke", "--region", "11,48,12,49", home=home)
    assert done.returncode == 0, done.stderr
    assert _call("publish", home=home, text=_publications(0, 3)).returncode == 0
    first = _call("run", "--until-idle", "--workers", "2", "--json", home=home)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout.splitlines()[-1])["matches"] == 3
    assert "Traceback" not in first.stderr
    return home


def test_a_deployment_from_subscribing_to_matches(processed: Path) -> None:
    matches = pq.read_table(processed / "out" / "matches").to_pylist()
    assert {"p0", "p1", "p2"} <= {row["publication_id"] for row in matches}
    status = json.loads(_call("status", "--json", home=processed).stdout)
    assert status["running"] is False
    assert [worker["worker"] for worker in status["workers"]] == [0, 1]
    assert status["window_publications"] == 3
    board = json.loads(_call("top", "--once", "--json", home=processed).stdout)
    assert (board["running"], board["engine"]) == (False, "microbatch")
    assert (board["job"]["counters"]["publications"], board["job"]["subscriptions"]) == (3, 1)
    assert board["job"]["lag_events"] == {"journal": 0}
    other = _call("run", "--until-idle", "--workers", "3", home=processed)
    assert other.returncode == 3
    assert "was made with n_workers=2; got 3" in other.stderr
    assert "starting" not in other.stderr, "told before Spark starts"


def test_a_job_that_is_started_again_goes_on_and_is_stopped_by_sigterm(
    processed: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(processed, home)
    words = ("--workers", "2", "--json", "--report-every", "0.2", "--metrics", "0")
    with _running("run", *words, home=home) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        deadline = time.monotonic() + HANG_S
        published = False
        for line in process.stdout:
            figures = json.loads(line)
            if not published:
                assert _call("publish", home=home, text=_publications(3, 4)).returncode == 0
                published = True
            if figures["matches"] == 4 or time.monotonic() > deadline:
                break
        assert figures["subscriptions"] == 1
        assert _call("status", home=home).stdout.startswith("the job runs")
        assert _call("top", "--once", home=home).stdout.startswith("the job runs (microbatch); figures of ")
        told = next(line for line in process.stderr if line.startswith("metrics at "))
        with urllib.request.urlopen(told.split()[-1], timeout=HANG_S) as answer:
            assert b'ps2stream_batches_total{number="0",role="driver"}' in answer.read()
        second = _call("run", "--workers", "2", home=home)
        assert (second.returncode, second.stderr) == (
            3,
            f"ps2stream: another job is running on the state in {home / 'state'}\n",
        )
        # As `kill %1` and `timeout` do it: the JVM would hear it, too, if it were in the same group.
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=HANG_S)
        assert process.returncode == 143, errors
        assert errors.splitlines()[-1] == "ps2stream: terminated; start again to go on from here"
        assert "Traceback" not in errors
        assert wait_until_gone(process.pid) == []
    matches = pq.read_table(home / "out" / "matches").to_pylist()
    assert sorted(row["publication_id"] for row in matches) == [f"p{number}" for number in range(7)]


@pytest.mark.slow
def test_a_deployment_in_a_store_is_found_by_all_commands_without_a_word_about_it(
    tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path / "local"))
    home, url = tmp_path / "home", s3.store().location()
    _call("subscribe", "fires", "fire AND smoke", "--region", "11,48,12,49", home=home)
    assert _call("publish", home=home, text=_publications(0, 3)).returncode == 0
    conf = ["--conf", "spark.sql.shuffle.partitions=1"]
    first = _call("run", "--until-idle", "--workers", "2", "--json", "--store", url, *conf, home=home)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout.splitlines()[-1])["matches"] == 3
    assert "Traceback" not in first.stderr
    assert sorted(path.name for path in home.iterdir()) == ["journal", "store.json"]
    # Later starts and all other commands follow the note.
    _call("subscribe", "rain", "rain", "--region", "11,48,12,49", home=home)
    assert _call("publish", home=home, text=_publications(3, 2)).returncode == 0
    second = _call("run", "--until-idle", "--workers", "2", "--json", home=home)
    assert json.loads(second.stdout.splitlines()[-1])["matches"] == 2, second.stderr
    found = _lines(_call("matches", "--json", home=home))
    assert sorted(row["publication_id"] for row in found) == ["p0", "p1", "p2", "p3", "p4"]
    assert [row["id"] for row in _lines(_call("subscriptions", "--json", home=home))] == ["fires", "rain"]
    (status,) = _lines(_call("status", "--json", home=home))
    assert (status["running"], status["lease_age_s"]) == (False, None)
    assert [worker["worker"] for worker in status["workers"]] == [0, 1]
    (why,) = _lines(_call("explain", "--publication", "p3", "--subscription", "fires", "--json", home=home))
    assert why["matches"] is True
    assert _call("adjustments", home=home).returncode == 0
    other = _call("run", "--until-idle", "--workers", "3", home=home)
    assert (other.returncode, other.stdout) == (3, "")
    assert f"the state in {url}/state was made with n_workers=2; got 3" in other.stderr
    assert "starting" not in other.stderr, "told before Spark starts"


@pytest.mark.usefixtures("_no_cluster")
def test_a_store_other_than_where_the_state_is_is_refused_before_spark_starts(
    run: Any, home: Home, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    StoreNote(home.directory).write(url_of(first))
    ran = run("run", "--store", str(second))
    assert ran.code == 3
    assert f"has its state in {first.as_uri()}, and cannot have it in {second.as_uri()}" in ran.err
    (home.directory / "store.json").unlink()
    State.at(home.state).create(cell_plan(2), Settings(n_workers=2))
    ran = run("run", "--store", str(second))
    assert ran.code == 3
    assert f"has its state in {home.directory / 'state'}, and cannot have it in {second.as_uri()}" in ran.err
    assert "starting" not in ran.err
    assert home.store is None


@pytest.mark.usefixtures("_no_cluster")
def test_a_store_with_a_job_that_lives_is_refused_before_spark_starts(
    run: Any, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path / "store")
    StoreNote(home.directory).write(url_of(store.directory))
    with Lease(store.under("state"), "process 7 of h1", LeaseTerms(0.5)).held():
        ran = run("run")
    assert ran.code == 3
    assert "another job is running on the state in" in ran.err
    assert "its driver, process 7 of h1, holds epoch 1" in ran.err
    assert "starting" not in ran.err


@pytest.mark.usefixtures("_no_cluster")
def test_a_cluster_needs_a_store_that_is_named_or_noted(run: Any, home: Home) -> None:
    ran = run("run", "--master", "spark://h:7077")
    assert ran.code == 2
    assert "--master spark://h:7077 needs --store (or PS2STREAM_STORE)" in ran.err
    ran = run("run", "--store", "s3://key:secret@bucket/alerts")
    assert ran.code == 3
    assert "without user, password" in ran.err
    assert "secret" not in ran.err
    assert not home.directory.exists()


@pytest.fixture
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PS2STREAM_MASTER", raising=False)
    monkeypatch.delenv("PS2STREAM_STORE", raising=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--interval", "-1"], "argument --interval: must be a number of seconds between 0 and 86,400"),
        (["--interval", "nan"], "argument --interval: must be a number of seconds between 0 and 86,400"),
        (["--report-every", "inf"], "argument --report-every: must be a number of seconds"),
        (["--workers", "0"], "workers must lie between 1 and 1,024; got 0"),
        (["--batch-events", "-5"], "--batch-events must lie between 1 and"),
        (["--sigma", "nan"], "sigma must be above target"),
        (["--margin", "2"], "margin must lie in [0, 1)"),
        (["--conf", "spark.executor.memory"], "argument --conf: must be KEY=VALUE"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_wrong_usage(
    run: Any, home: Any, words: list[str], message: str
) -> None:
    ran = run("run", *words)
    assert ran.code == 2
    assert message in ran.err
    assert "usage: ps2stream run" in ran.err
    assert "starting" not in ran.err
    assert not home.directory.exists()


@pytest.mark.slow
@pytest.mark.parametrize("wait_s", [0.2, 1.0, 3.0, 6.0, 10.0])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_starts_ends_it_with_one_line(
    tmp_path: Path, number: signal.Signals, code: int, wait_s: float
) -> None:
    with _running("run", home=tmp_path / "home") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("starting")
        time.sleep(wait_s)
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=HANG_S)
        assert process.returncode == code
        assert errors.splitlines()[-1].startswith("ps2stream: ")
        assert "Traceback" not in errors
        assert wait_until_gone(process.pid, 60) == []


@pytest.mark.slow
def test_a_jvm_that_dies_is_told_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with _running("run", "--workers", "1", "--json", home=home) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (jvm,) = [each.pid for each in session_of(process.pid) if each.parent == process.pid]
        kill(jvm)
        _, errors = process.communicate(timeout=HANG_S)
        assert process.returncode == 3
        assert errors.splitlines()[-1] == (
            "ps2stream: the JVM that Spark runs in was killed by SIGKILL; "
            f"what it wrote is in {home / 'state' / 'spark.log'}"
        )
        assert "Traceback" not in errors


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    with _running("run", "--workers", "1", "--json", home=tmp_path / "home") as process:
        assert process.stdout is not None
        process.stdout.readline()
        kill(process.pid)
        assert wait_until_gone(process.pid, 60) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [["demo"], ["replay", "e.parquet", "--out", "o", "--report", "-"]])
def test_commands_that_leave_nothing_behind_do_so_when_they_are_interrupted(
    tmp_path: Path, words: list[str]
) -> None:
    from ps2stream.testing.generators import random_events

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    pq.write_table(random_events(100, seed=1), tmp_path / "e.parquet")
    environment = {**os.environ, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(tmp_path / "spark")}
    with _running(*words, env=environment, cwd=tmp_path) as process:
        while not list(scratch.glob("ps2stream-spark-*.log")) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(5.0)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
        assert process.returncode == 130
        assert errors == "ps2stream: interrupted\n"
        assert list(scratch.glob("ps2stream-*")) == []
        assert wait_until_gone(process.pid, 60) == []


def test_resident_roles_need_topics_and_nothing_is_made_before(run: Any, home: Home) -> None:
    ran = run("run", "--engine", "realtime")
    assert ran.code == 2
    assert "--engine realtime needs Kafka: --kafka HOST:PORT (or PS2STREAM_KAFKA)" in ran.err
    assert not home.directory.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--delivery", "at-least-once"],
            "at-least-once is for --engine realtime; --engine microbatch delivers every match exactly once",
        ),
        (["--match-format", "json"], "--match-format json is for matches on Kafka: --kafka HOST:PORT"),
    ],
)
def test_a_choice_of_delivery_where_there_is_none_is_wrong_usage(
    run: Any, home: Home, words: list[str], message: str
) -> None:
    ran = run("run", *words)
    assert (ran.code, message in ran.err) == (2, True)
    assert not home.directory.exists()
