from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.audit import LOCAL, SWITCH, UNITE
from cli.plans import cell_plan
from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.state.state import State


@pytest.fixture
def state(home: Home) -> State:
    return State.at(home.state).create(cell_plan(2), Settings(n_workers=2))


@pytest.fixture
def some(state: State) -> Path:
    for record in (LOCAL, SWITCH, UNITE):
        state.adjustments.write(record.batch_id, record)
    return Path(state.adjustments.store.location())


@pytest.mark.usefixtures("some")
def test_the_log_is_printed_oldest_first_with_all_there_is(run: Any) -> None:
    ran = run("adjustments")
    assert ran.code == 0
    local, switch, unite = (block.splitlines() for block in ran.out.split("\n\n"))
    assert local == [
        "2026-03-01T12:01:07.250+00:00  local  before batch 41, plan 2 -> 3",
        "  the busiest worker had 4.00 times the load of the least busy one, above 1.5",
        "  balance 4.00 -> 1.08 expected -> 1.20 after",
        "  worker 0 -> 1: 14 cells moved, 25.0% of the load, 800 kB",
        "  worker 0 -> 1: 1 cell divided by terms, 2.0% of the load, 950 B",
        "  3,211 subscriptions moved, 812 kB",
        "  decided in 4 ms (gr), stream paused 52 ms, workers ready after 12.3 s, 9,800 publications delayed",
    ]
    assert switch[0] == "2026-03-01T12:03:00.000+00:00  switch  before batch 50, plan 3 -> 4"
    assert switch[2] == "  balance a worker idle -> 1.00 expected -> not known yet"
    assert not any("moved" in line for line in switch)
    assert unite[2:4] == [
        "  balance 1.00 -> not known yet",
        "  4,821 subscriptions moved, 2.3 MB",
    ]


@pytest.mark.usefixtures("some")
def test_json_lines_are_the_records_with_their_balance(run: Any) -> None:
    local, switch, _ = run("adjustments", "--json").json()
    assert local["steps"][0]["cells"] == list(range(14))
    assert local["max_over_min"] == {"before": 4.0, "expected": pytest.approx(26 / 24), "after": 1.2}
    assert (local["n_bytes"], local["selection_s"], local["n_delayed"]) == (812_345, 0.004, 9_800)
    assert switch["max_over_min"] == {"before": None, "expected": 1.0, "after": None}


@pytest.mark.usefixtures("some")
def test_a_limit_keeps_the_newest(run: Any) -> None:
    assert [row["kind"] for row in run("adjustments", "--json", "--limit", "2").json()] == ["switch", "unite"]
    assert len(run("adjustments", "--json", "--limit", "9").json()) == 3


@pytest.mark.usefixtures("state")
def test_a_job_that_was_never_adjusted_has_none(run: Any) -> None:
    ran = run("adjustments")
    assert (ran.code, ran.out) == (0, "")
    assert "no adjustment was made yet" in ran.err


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "local"}', ""])
def test_a_damaged_record_is_named(run: Any, some: Path, content: str) -> None:
    (some / "batch-000000000050.json").write_text(content)
    ran = run("adjustments")
    assert ran.code == 3
    assert "batch-000000000050.json cannot be read" in ran.err


def test_where_no_job_was_started_it_is_bad_state(run: Any, home: Home) -> None:
    home.directory.mkdir()
    ran = run("adjustments")
    assert ran.code == 3
    assert "no job was started" in ran.err
    assert not any(home.directory.iterdir())


@pytest.mark.parametrize("limit", ["0", "-3", "many"])
def test_a_limit_that_is_no_number_above_0_is_wrong_usage(run: Any, limit: str) -> None:
    assert run("adjustments", f"--limit={limit}").code == 2
