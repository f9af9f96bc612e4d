from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from disks import small_disk


@pytest.fixture
def some(run: Any) -> None:
    run("subscribe", "munich", "fire OR smoke", "--region", "11.3,48,11.8,48.3")
    run("subscribe", "fiji", "surf", "--region", "176,-20,-178,-15")
    run("subscribe", "gone", "surf", "--region", "176,-20,-178,-15")
    run("unsubscribe", "gone")
    run("subscribe", "munich", "fire", "--region", "11.3,48,11.8,48.3")


def test_a_file_system_that_cannot_be_written_to_can_be_read(run: Any, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        home = ["--home", str(disk / "home")]
        run("subscribe", "a", "fire", "--region", "0,0,10,10", *home)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        ran = run("subscriptions", "--json", *home)
        assert (ran.code, [row["id"] for row in ran.json()]) == (0, ["a"])
        ran = run("subscribe", "b", "fire", "--region", "0,0,10,10", *home)
        assert ran.code == 3
        assert "cannot write to" in ran.err


def test_a_long_expression_is_whole_in_json_only(run: Any) -> None:
    expression = " AND ".join(f"word{number}" for number in range(1_000))
    run("subscribe", "long", expression, "--region", "0,0,10,10")
    assert [row["expression"] for row in run("subscriptions", "--json").json()] == [expression]
    shown = run("subscriptions").out
    assert max(map(len, shown.splitlines())) < 400
    assert "word0 AND" in shown
    assert "word999" in shown


@pytest.mark.usefixtures("some")
def test_live_ones_are_listed_by_seq_as_a_table(run: Any) -> None:
    ran = run("subscriptions")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "id      since  region             expression",
        "fiji    2      176,-20,-178,-15   surf",
        "munich  5      11.3,48,11.8,48.3  fire",
    ]


@pytest.mark.usefixtures("some")
def test_json_lines_have_all_fields(run: Any) -> None:
    assert run("subscriptions", "--json", "--id", "fiji").json() == [
        {"id": "fiji", "since": 2, "region": [176.0, -20.0, -178.0, -15.0], "expression": "surf"}
    ]


@pytest.mark.usefixtures("some")
def test_a_point_selects_the_regions_that_hold_it(run: Any) -> None:
    def at(point: str) -> list[str]:
        return [row["id"] for row in run("subscriptions", "--json", "--at", point).json()]

    assert at("-17,-179") == ["fiji"]
    assert at("48.3,11.8") == ["munich"]
    assert at("0,0") == []


@pytest.mark.usefixtures("some")
def test_a_point_off_the_map_is_bad_input(run: Any) -> None:
    ran = run("subscriptions", "--at", "-91,0")
    assert ran.code == 3
    assert "lat must lie in [-90, 90]; got -91.0" in ran.err


def test_without_a_journal_it_is_bad_state(run: Any) -> None:
    assert run("subscriptions").code == 3
