"""A running job is watched from elsewhere, by what it leaves with its state."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.boards import board_snapshot
from cli.plans import cell_plan
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.state.state import State
from waiting import HANG_S


@pytest.fixture
def state(home: Home) -> State:
    return State.at(home.state).create(cell_plan(2), Settings(n_workers=2))


def test_once_shows_the_figures_of_now(run: Any, state: State) -> None:
    state.mailbox.write_board(board_snapshot())
    with state.host.lock.held():
        ran = run("top", "--once")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("the job runs (realtime); figures of ")
    assert lines[0].endswith(" s ago, 0 min 10 s after its start")
    assert lines[1].startswith("throughput     2,000 publications/s")
    assert lines[-1].startswith("worker 1")


def test_a_job_that_does_not_run_is_told_of_with_the_age_of_its_figures(run: Any, state: State) -> None:
    state.mailbox.write_board(board_snapshot(at=0.0))
    head = run("top", "--once").out.splitlines()[0]
    assert head.startswith("THE JOB DOES NOT RUN (realtime); figures of ")
    assert "days ago" in head


def test_a_job_without_figures_is_told_of(run: Any, state: State) -> None:
    assert run("top", "--once").out == "THE JOB DOES NOT RUN; it has left no figures yet\n"
    with state.host.lock.held():
        assert run("top", "--once").out == "the job runs; it has left no figures yet\n"
    assert run("top", "--once", "--json").json() == [{"running": False, "age_s": None}]


def test_json_has_the_whole_snapshot(run: Any, state: State) -> None:
    left = json.loads(json.dumps(board_snapshot()))
    state.mailbox.write_board(left)
    (shown,) = run("top", "--once", "--json").json()
    assert shown.pop("running") is False
    assert shown.pop("age_s") >= 0
    assert shown == left


def test_without_once_it_looks_again_until_ctrl_c(
    run: Any, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mailbox.write_board(board_snapshot())
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("ps2stream.cli.commands.top.time.sleep", sleep)
    ran = run("top", "--interval", "7", "--json")
    assert ran.code == 0, "Ctrl-C is the ordinary way to end it"
    assert len(ran.json()) == 3
    assert waited == [7.0] * 3


def test_on_a_terminal_it_is_drawn_in_place(home: Home, state: State) -> None:
    state.mailbox.write_board(board_snapshot())
    command = [sys.executable, "-m", "ps2stream", "top", "--interval", "0.1", "--home", str(home.directory)]
    ours, theirs = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=terminal) as process:
        os.close(theirs)
        seen = b""
        while seen.count(b"throughput") < 2:
            assert select.select([ours], [], [], HANG_S)[0], seen
            seen += os.read(ours, 4096)
        process.send_signal(2)
        while True:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # its end of the terminal is closed
                break
        assert process.wait(HANG_S) == 0
    os.close(ours)
    assert seen.startswith(b"\x1b[?1049h"), "on a screen of its own"
    assert b"\x1b[?1049l" in seen, "which is given back"


@pytest.mark.parametrize("content", ["{", "[]", '{"at": 1}', '{"engine": ""}'])
def test_a_damaged_board_is_told_of(run: Any, state: State, content: str) -> None:
    Path(state.store.location("board.json")).write_text(content)
    for words in ([], ["--json"]):
        ran = run("top", "--once", *words)
        assert ran.code == 3
        assert "cannot be read" in ran.err
        assert ran.out == ""


def test_where_no_job_was_started_it_is_bad_state_and_nothing_is_made(run: Any, home: Home) -> None:
    ran = run("top", "--once")
    assert ran.code == 3
    assert f"no deployment at {home.directory}: there is no such directory" in ran.err
    assert not home.directory.exists()
