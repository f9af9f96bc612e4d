from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from cli.jobs import Job
from cli.plans import cell_plan
from cli.switches import switch
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.registry.segments import DROP, MOVE, SEGMENT

POINT = ("--at", "48.1,11.5")
REGION = ("--region", "11,48,12,49")


def test_it_needs_no_deployment(run: Any, home: Home) -> None:
    ran = run("explain", "--text", "Fire!", *POINT, "--expression", "fire", *REGION)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "match: clause 1 reports it"
    assert not home.directory.exists()


def test_no_match_is_1_like_grep(run: Any) -> None:
    ran = run("explain", "--text", "Rain", *POINT, "--expression", "fire", *REGION)
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "no match: the text lacks words"


def test_ids_are_looked_up_and_the_plan_names_the_worker(run: Any, home: Home, lines: Any) -> None:
    run("publish", "--file", lines({"id": "early", "lat": 48.1, "lon": 11.5, "text": "fire fire smoke"}))
    run("subscribe", "q", "fire AND smoke OR flood", *REGION)
    run("publish", "--file", lines({"id": "late", "lat": 48.1, "lon": 11.5, "text": "Fire & smoke"}))
    Job(home, Settings(n_workers=3)).process()
    ran = run("explain", "--publication", "late", "--subscription", "q", "--json")
    assert ran.code == 0
    (found,) = ran.json()
    (reporting,) = [clause for clause in found["clauses"] if clause["reports"]]
    assert reporting["terms"] == ["fire", "smoke"]
    assert reporting["posting_term"] in ("fire", "smoke")
    assert reporting["frequency"] == 2
    assert reporting["worker"] in range(3)
    assert found["cell"]["n_workers"] == 3
    text = run("explain", "--publication", "late", "--subscription", "q").out
    assert f"on worker {reporting['worker']}" in text.splitlines()[-1]
    assert f"routing: cell {found['cell']['number']} of grid^t" in text
    early = run("explain", "--publication", "early", "--subscription", "q")
    assert early.code == 1
    assert "order: no, subscribed at seq 2, after the publication at seq 1" in early.out
    run("unsubscribe", "q")
    now = run("explain", "--text", "fire smoke", *POINT, "--subscription", "q")
    assert now.code == 1
    assert "order: no, unsubscribed at seq 4, before a publication now" in now.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*POINT, "--text", "x", "--expression", "(", *REGION), "^"),
        (
            ("--text", "x", "--at", "99,0", "--expression", "x", *REGION),
            "lat must lie in [-90, 90]; got 99.0",
        ),
        ((*POINT, "--text", "x", "--expression", "x", "--region", "0,9,1,1"), "min_lat <= max_lat"),
        (("--publication", "p", "--expression", "x", *REGION), "no journal at"),
        ((*POINT, "--text", "x", "--subscription", "q"), "no journal at"),
    ],
)
def test_bad_input_is_3(run: Any, words: tuple[str, ...], message: str) -> None:
    ran = run("explain", *words)
    assert ran.code == 3
    assert message in ran.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--text", "x", "--expression", "x", *REGION),
        (*POINT, "--text", "x", "--expression", "x"),
        ("--publication", "p", "--text", "x", "--subscription", "q"),
        ("--publication", "p"),
    ],
)
def test_wrong_usage_is_2(run: Any, words: tuple[str, ...]) -> None:
    assert run("explain", *words).code == 2


def test_of_two_plans_the_one_is_named_that_a_subscription_goes_by(run: Any, home: Home) -> None:
    run("subscribe", "before", "fire", *REGION)
    job = Job(home, Settings(n_workers=3))
    job.process()
    newer = job.state.plan().number + 1
    switch(job.state, replace(cell_plan(3), number=newer))
    run("subscribe", "after", "fire", *REGION)

    def plan_of(*subscription: str) -> int:
        (found,) = run("explain", "--text", "Fire!", *POINT, *subscription, "--json").json()
        version: int = found["cell"]["plan"]
        return version

    assert plan_of("--subscription", "before") == newer - 1
    assert plan_of("--subscription", "after") == newer
    assert plan_of("--expression", "fire", *REGION) == newer


def test_what_load_adjustment_moved_is_explained_as_before(run: Any, home: Home) -> None:
    run("subscribe", "q", "fire AND smoke", *REGION)
    job = Job(home, Settings(n_workers=3))
    job.process()
    words = ("explain", "--text", "Fire & smoke", *POINT, "--subscription", "q", "--json")
    before = run(*words)
    ((_, begun),) = job.state.log.read()
    stored = begun.drop_columns(["change", "expression"])
    moved = pa.RecordBatch.from_pylist(
        [{**row, "change": change} for row in stored.to_pylist() for change in (DROP, MOVE)], SEGMENT
    )
    job.state.log.append(job.state.log.last() + 1, moved, job.state.routing())
    after = run(*words)
    assert (before.code, after.code) == (0, 0)
    assert after.out == before.out
