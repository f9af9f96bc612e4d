from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from cli.jobs import Job
from ps2stream.config import Settings
from ps2stream.deployment.home import Home


@pytest.fixture
def job(run: Any, home: Home, lines: Any) -> Job:
    """Two subscriptions and three publications, processed."""
    run("subscribe", "a", "fire", "--region", "0,0,10,10")
    run("subscribe", "b", "fire OR rain", "--region", "0,0,10,10")
    texts = ("Fire!\x1b[2J", "rain", "fire and rain")
    records = [{"id": f"p{n}", "lat": 5, "lon": 5, "text": text} for n, text in enumerate(texts)]
    run("publish", "--file", lines(*records))
    job = Job(home, Settings(n_workers=2))
    job.process()
    return job


def _row(subscription: str, since: int, publication: str, seq: int) -> dict[str, Any]:
    return {
        "subscription_id": subscription,
        "subscription_seq": since,
        "publication_id": publication,
        "publication_seq": seq,
    }


ALL = [
    _row("a", 1, "p0", 3),
    _row("b", 2, "p0", 3),
    _row("b", 2, "p1", 4),
    _row("a", 1, "p2", 5),
    _row("b", 2, "p2", 5),
]


@pytest.mark.usefixtures("job")
def test_history_comes_in_order(run: Any) -> None:
    ran = run("matches", "--json")
    assert ran.code == 0
    assert ran.json() == ALL


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--subscription", "a"], [ALL[0], ALL[3]]),
        (["--since", "4"], ALL[2:]),
        (["--limit", "2"], ALL[:2]),
        (["--since", "4", "--limit", "1"], ALL[2:3]),
        (["--subscription", "nobody"], []),
    ],
)
def test_options_select(run: Any, words: list[str], expected: list[Any]) -> None:
    assert run("matches", "--json", *words).json() == expected


def test_texts_come_from_the_journal_while_it_has_them(run: Any, job: Job, lines: Any) -> None:
    assert [row["text"] for row in run("matches", "--json", "--text", "--subscription", "a").json()] == [
        "Fire!\x1b[2J",
        "fire and rain",
    ]
    table = run("matches", "--text", "--subscription", "a").out
    assert "Fire! [2J" in table
    assert table.startswith("subscription_id  subscription_seq  publication_id  publication_seq  text\n")
    run("publish", "--file", lines({"id": "p9", "lat": 5, "lon": 5, "text": "fire again"}))
    job.process()
    job.prune()
    found = run("matches", "--json", "--text", "--subscription", "a").json()
    assert [row["text"] for row in found] == [None, None, "fire again"]
    assert "(no longer in the journal)" in run("matches", "--text").out


def test_no_sink_yet_is_no_error(run: Any) -> None:
    ran = run("matches")
    assert (ran.code, ran.out) == (0, "")
    assert "no matches yet" in ran.err


@pytest.mark.parametrize("words", [["--limit", "0"], ["--limit", "x"], ["--since", "x"], ["--new"]])
def test_wrong_usage_is_2(run: Any, words: list[str]) -> None:
    assert run("matches", *words).code == 2


def test_following_waits_for_a_job_that_starts_later(run: Any, home: Home, lines: Any) -> None:
    run("subscribe", "a", "fire", "--region", "0,0,10,10")
    run("publish", "--file", lines({"id": "p0", "lat": 5, "lon": 5, "text": "fire"}))

    def start() -> None:
        time.sleep(0.3)
        Job(home, Settings(n_workers=2)).process()

    late = threading.Thread(target=start)
    late.start()
    ran = run("matches", "--follow", "--limit", "1", "--json")
    late.join()
    assert (ran.code, ran.json()) == (0, [_row("a", 1, "p0", 2)])


def test_following_ends_by_an_interrupt_with_0(run: Any, job: Job, home: Home, lines: Any) -> None:
    command = [sys.executable, "-m", "ps2stream", "matches", "--follow", "--new", "--json"]
    with subprocess.Popen(
        [*command, "--home", str(home.directory)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        # Only what comes after it has started is shown, and how long that takes depends on the machine.
        is_ready = select.poll()
        is_ready.register(process.stdout, select.POLLIN)
        for number in range(100):
            run("publish", "--file", lines({"id": f"n{number}", "lat": 5, "lon": 5, "text": "fire again"}))
            job.process()
            if is_ready.poll(1000):
                break
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert first["publication_id"] == second["publication_id"]
        assert first["publication_id"].startswith("n")
        assert second["subscription_id"] == "b"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
