from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def some(run: Any) -> None:
    run("subscribe", "munich", "fire OR smoke", "--region", "11.3,48,11.8,48.3")
    run("subscribe", "fiji", "surf", "--region", "176,-20,-178,-15")
    run("subscribe", "gone", "surf", "--region", "176,-20,-178,-15")
    run("unsubscribe", "gone")
    run("subscribe", "munich", "fire", "--region", "11.3,48,11.8,48.3")


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
