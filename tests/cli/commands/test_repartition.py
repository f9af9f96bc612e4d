from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.jobs import Job, write_journal
from cli.loads import status
from cli.plans import GRID, cell_plan
from cli.switches import switch
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.deployment.store_note import StoreNote, url_of
from ps2stream.journal import Journal
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=2, sample_events=2_000)


@pytest.fixture
def state(home: Home) -> State:
    """Lay out a state that has seen nothing."""
    return State.at(home.state).create(cell_plan(2), SETTINGS)


@pytest.fixture
def running(state: State) -> Iterator[State]:
    state.mailbox.write_status(status())
    with state.host.lock.held():
        yield state


@pytest.fixture
def lopsided(home: Home, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Let one of two workers do everything."""
    plan = Plan(1, "grid", 2, GRID, owners_of_cells(np.zeros(16, np.int32)))
    monkeypatch.setattr("cli.jobs.plan_of", lambda sample, settings: plan)
    write_journal(home, random_events(3_000, seed=3), 500)
    job = Job(home, SETTINGS)
    job.process()
    return job


@pytest.mark.usefixtures("lopsided")
def test_a_dry_run_tells_the_gain_and_changes_nothing(run: Any, home: Home) -> None:
    before = sorted(path.relative_to(home.directory) for path in home.directory.rglob("*"))
    ran = run("repartition", "--dry-run")
    assert ran.code == 0
    head, now, new, verdict = ran.out.splitlines()
    assert head.split() == ["plan", "busiest", "worker", "all", "workers", "max/min"]
    assert now.startswith("1, now")
    assert now.endswith("a worker idle")
    assert new.startswith("2, new")
    assert verdict.startswith("gain ")
    assert verdict.endswith("%, above the margin of 20%: the job would switch to the new plan")
    assert "live ones" in ran.err
    after = sorted(path.relative_to(home.directory) for path in home.directory.rglob("*"))
    assert [path for path in after if path.name != "lock"] == [p for p in before if p.name != "lock"]


def test_a_job_in_a_store_is_judged_and_asked_alike(
    run: Any, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(1, "grid", 2, GRID, owners_of_cells(np.zeros(16, np.int32)))
    monkeypatch.setattr("cli.jobs.plan_of", lambda sample, settings: plan)
    StoreNote(home.directory).write(url_of(tmp_path / "store"))
    write_journal(home, random_events(3_000, seed=3), 500)
    job = Job(home, SETTINGS)
    job.process(3)
    job.start_again()
    job.process()
    (shown,) = run("repartition", "--dry-run", "--json").json()
    assert shown["would"] == "switch"
    assert shown["sample"]["live"] == shown["sample"]["subscriptions"] > 0
    job.state.mailbox.write_status(status())
    assert run("repartition").code == 0
    assert job.state.mailbox.take_request()
    job.stop()
    ran = run("repartition")
    assert ran.code == 3
    assert f"no job is running on {tmp_path / 'store' / 'state'}" in ran.err


@pytest.mark.usefixtures("lopsided")
def test_json_has_loads_gain_and_what_would_be_done(run: Any) -> None:
    (shown,) = run("repartition", "--dry-run", "--json").json()
    assert shown["would"] == "switch"
    assert shown["margin"] == 0.2
    running, renewed = shown["running"], shown["renewed"]
    assert (running["plan"], renewed["plan"]) == (1, 2)
    assert shown["partitioner"] == SETTINGS.partitioner
    assert running["max_over_min"] is None
    assert min(renewed["loads_ms"]) > 0.0
    assert shown["gain"] == pytest.approx(1 - renewed["busiest_ms"] / running["busiest_ms"])
    assert running["load_ms"] == pytest.approx(sum(running["loads_ms"]))
    assert shown["sample"]["live"] == shown["sample"]["subscriptions"] > 0


@pytest.mark.usefixtures("lopsided")
def test_a_margin_that_is_not_reached_makes_it_stay(run: Any) -> None:
    ran = run("repartition", "--dry-run", "--margin", "0.99")
    assert "not above the margin of 99%: the job would stay with its plan" in ran.out
    (shown,) = run("repartition", "--dry-run", "--json", "--margin", "0.99").json()
    assert shown["would"] == "stay"


@pytest.mark.usefixtures("lopsided")
def test_options_change_the_sample_and_the_load(run: Any) -> None:
    words = ["--sample-events", "600", "--sample-prefix", "1000", "--sample-seed", "5", "--load", "paper"]
    (shown,) = run("repartition", "--dry-run", "--json", *words).json()
    assert shown["sample"]["publications"] <= 300
    assert shown["sample"]["subscriptions"] <= 300
    (plain,) = run("repartition", "--dry-run", "--json").json()
    assert shown["running"]["load_ms"] != plain["running"]["load_ms"]


def test_while_two_plans_are_in_use_the_job_would_wait(run: Any, lopsided: Job) -> None:
    switch(lopsided.state, replace(cell_plan(2), number=2))
    ran = run("repartition", "--dry-run")
    assert "2, now" in ran.out
    assert "the job is switching plans already" in ran.out


def test_few_publications_are_told_of_and_the_pruning_with_them(run: Any, home: Home, lopsided: Job) -> None:
    with Journal.open(home.journal) as journal:
        journal.prune(journal.last().position - 1)
        oldest = journal.oldest()
    ran = run("repartition", "--dry-run")
    assert ran.code == 0
    assert f"publications to judge by; it was pruned up to position {oldest - 1}" in ran.err


def test_nothing_left_to_judge_by_is_bad_state(run: Any, home: Home, lopsided: Job) -> None:
    run("subscribe", "last", "fire", "--region", "11,48,12,49")
    with Journal.open(home.journal) as journal:
        journal.prune(journal.last().position - 1)
    ran = run("repartition", "--dry-run")
    assert ran.code == 3
    assert "holds only 0 publications to judge by; it was pruned up to position 6" in ran.err
    assert ran.out == ""


def test_a_job_without_subscriptions_has_no_load_to_divide(run: Any, home: Home, lines: Any) -> None:
    here = {"lat": 48.1, "lon": 11.5, "text": "fire"}
    run("publish", "--file", lines(*({"id": f"p{i}", **here} for i in range(5))))
    Job(home, SETTINGS).process()
    ran = run("repartition", "--dry-run")
    assert ran.code == 3
    assert "has no live subscriptions: there is no load to divide" in ran.err


def test_a_running_job_is_asked(run: Any, running: State) -> None:
    ran = run("repartition")
    assert ran.code == 0
    assert "asked: the job considers a new plan before its next batch" in ran.out
    assert run("repartition", "--json").json() == [{"requested": True}]
    assert running.mailbox.take_request()
    assert not running.mailbox.take_request()


def test_a_job_that_does_not_run_cannot_be_asked(run: Any, state: State) -> None:
    state.mailbox.write_status(status())
    ran = run("repartition")
    assert ran.code == 3
    assert "no job is running on" in ran.err
    assert not state.mailbox.take_request()


def test_a_job_that_does_not_adjust_its_load_cannot_be_asked(run: Any, state: State) -> None:
    with state.host.lock.held():
        ran = run("repartition")
    assert ran.code == 3
    assert "does not adjust its load (--adjust off, or one worker)" in ran.err
    assert not state.mailbox.take_request()


@pytest.mark.parametrize("words", [[], ["--dry-run"]])
def test_where_no_job_was_started_it_is_bad_state(run: Any, home: Home, words: list[str]) -> None:
    ran = run("repartition", *words)
    assert ran.code == 3
    assert f"no deployment at {home.directory}: there is no such directory" in ran.err
    assert not home.directory.exists()
    home.directory.mkdir()
    ran = run("repartition", *words)
    assert ran.code == 3
    assert "no job was started" in ran.err
    assert not any(home.directory.iterdir())


@pytest.mark.parametrize("option", ["--margin 0.1", "--load paper", "--calibrate", "--sample-seed 0"])
def test_what_only_a_dry_run_takes_is_wrong_usage_without_it(run: Any, running: State, option: str) -> None:
    ran = run("repartition", *option.split())
    assert ran.code == 2
    assert f"{option.split()[0]} needs --dry-run" in ran.err
    assert not running.mailbox.take_request()


@pytest.mark.usefixtures("lopsided")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--load", "weight"], "--load must be one of candidates, paper; got 'weight'"),
        (["--margin", "2"], "--margin must lie in [0, 1); got 2.0"),
        (["--sample-events", "-1"], "--sample-events must lie between 0 and 100,000,000; got -1"),
    ],
)
def test_bad_settings_are_wrong_usage(run: Any, words: list[str], message: str) -> None:
    ran = run("repartition", "--dry-run", *words)
    assert ran.code == 2
    assert message in ran.err
