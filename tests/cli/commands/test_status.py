from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.jobs import Job, write_journal
from cli.loads import status
from cli.plans import cell_plan
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.deployment.store_note import StoreNote, url_of
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events
from waiting import HANG_S


@pytest.fixture
def state(home: Home) -> State:
    return State.at(home.state).create(cell_plan(2), Settings(n_workers=2))


def test_a_running_job_is_described_from_plans_to_cells(run: Any, state: State) -> None:
    state.mailbox.write_status(status())
    with state.host.lock.held():
        ran = run("status", "--cells", "1")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("the job runs; figures of 7.")
    assert lines[0].endswith(" s ago, after batch 41")
    assert lines[1] == "plan 3 routes 100,000 subscriptions"
    assert lines[2] == "imbalance 3.00, the busiest worker over the least busy one; adjusted above 1.5"
    assert lines[3] == "window of the newest 204,800 publications"
    assert lines[5].split() == ["worker", "load", "busy", "s", "beside", "the", "busiest"]
    assert lines[6].split() == ["0", "75%", "1.500", "━" * 30]
    assert lines[7].split() == ["1", "25%", "0.500", "━" * 10]
    cells = [line.split() for line in lines[10:]]
    region = "11.25,47.8,11.6,48.1"
    assert cells == [
        ["0", "0", "20%", "0.125", "1,234", "57", "8,910", "112", "13", "kB", region],
        ["1", "9", "100%", "0.125", "1,234", "57", "8,910", "112", "13", "kB", region],
    ]


def test_a_job_that_has_stopped_shows_its_last_figures(run: Any, state: State) -> None:
    state.mailbox.write_status(status(at=0.0))
    ran = run("status", "--cells", "0")
    assert ran.code == 0
    assert ran.out.startswith("the job does not run; figures of ")
    assert "days ago" in ran.out.splitlines()[0]
    assert "region" not in ran.out


def test_two_plans_are_told_with_what_is_left_to_the_older_one(run: Any, state: State) -> None:
    state.mailbox.write_status(status(plans=[4, 3], older_subscriptions=12_345))
    assert (
        "plan 4 is taking over from plan 3, which 12,345 of 100,000 subscriptions are left to"
        in run("status").out
    )


def test_an_idle_worker_and_a_window_that_fills_are_told(run: Any, state: State) -> None:
    state.mailbox.write_status(status(imbalance=None, window_is_full=False))
    out = run("status").out
    assert "imbalance: a worker has nothing to do; adjusted above 1.5, when the window is full" in out


def test_json_has_everything_and_as_many_cells_as_asked_for(run: Any, state: State) -> None:
    left = status()
    state.mailbox.write_status(left)
    (shown,) = run("status", "--json", "--cells", "2").json()
    assert shown["running"] is False
    assert 7.0 <= shown["age_s"] < 60.0
    assert [len(worker["cells"]) for worker in shown["workers"]] == [2, 1]
    assert shown["workers"][0]["cells"][0] == left["workers"][0]["cells"][0]
    assert {name: shown[name] for name in left if name != "workers"} == {
        name: value for name, value in left.items() if name != "workers"
    }


def test_a_job_without_figures_says_why_there_may_be_none(run: Any, state: State) -> None:
    with state.host.lock.held():
        ran = run("status")
        (shown,) = run("status", "--json").json()
    assert ran.code == 0
    assert ran.out.startswith(
        "the job runs; no loads are known: no batch is done yet, or load is not adjusted"
    )
    assert shown == {"running": True, "age_s": None}


def test_of_a_job_in_a_store_the_lease_is_told(run: Any, home: Home, tmp_path: Path) -> None:
    StoreNote(home.directory).write(url_of(tmp_path / "store"))
    write_journal(home, random_events(50, seed=1))
    job = Job(home, Settings(n_workers=2))
    job.process()
    job.state.mailbox.write_status(status())
    out = run("status", "--cells", "0").out
    assert out.startswith("the job runs (by its clock, it renewed its lease ")
    (shown,) = run("status", "--json").json()
    assert shown["running"] is True
    assert 0.0 <= shown["lease_age_s"] < HANG_S
    job.stop()
    assert run("status", "--cells", "0").out.startswith("the job does not run; figures of 7.")
    (shown,) = run("status", "--json").json()
    assert (shown["running"], shown["lease_age_s"]) == (False, None)


def test_where_no_job_was_started_it_is_bad_state_and_nothing_is_made(run: Any, home: Home) -> None:
    ran = run("status")
    assert ran.code == 3
    assert f"no deployment at {home.directory}: there is no such directory" in ran.err
    assert not home.directory.exists()
    home.directory.mkdir()
    ran = run("status")
    assert ran.code == 3
    assert f"no job was started in {home.directory} yet; 'ps2stream run' starts one" in ran.err
    assert not any(home.directory.iterdir())


@pytest.mark.parametrize(
    "content", ["{", "[]", "5", '{"at": 1}', json.dumps(status(workers=[{"worker": 0}]))]
)
def test_a_damaged_status_is_told_of(run: Any, state: State, content: str) -> None:
    Path(state.store.location("status.json")).write_text(content)
    for words in ([], ["--json"]):
        ran = run("status", *words)
        assert ran.code == 3
        assert "cannot be read" in ran.err
        assert ran.out == ""


@pytest.mark.parametrize("cells", ["-1", "x", "1.5"])
def test_a_number_of_cells_that_is_none_is_wrong_usage(run: Any, cells: str) -> None:
    ran = run("status", f"--cells={cells}")
    assert ran.code == 2
    assert "must be a whole number" in ran.err
