"""Campaigns become rows, and rows a page that counts what was lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ps2stream_bench.figure import Context
from ps2stream_bench.figures.faults import cases, measure, page
from ps2stream_bench.results import Row

CAMPAIGN = {
    "seed": 1,
    "source": "kafka",
    "n_events": 100,
    "n_matches": 1000,
    "n_lost": 0,
    "n_doubled": 0,
    "n_wrong": 0,
    "faults": [{"kind": "python", "to_go_on_s": 1.0}, {"kind": "python", "to_go_on_s": 4.0}],
}


def rows_of(path: Path, *campaigns: object) -> list[Row]:
    path.write_text("\n".join(map(json.dumps, campaigns)))
    (case,) = cases("tiny")
    context = Context(1)
    try:
        return [{**case.settings, **row} for row in measure(case, context, path)]
    finally:
        context.close()


def test_engines_are_told_apart_and_a_line_without_one_is_of_micro_batches(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "faults.jsonl", CAMPAIGN, {**CAMPAIGN, "engine": "realtime"})
    assert [row["engine"] for row in rows] == ["microbatch"] * 2 + ["realtime"] * 2
    table, _ = page(rows).tables
    assert "| realtime | python | 2 | 2.5 | 4.0 |" in table


def test_a_seed_that_was_run_again_is_another_campaign(tmp_path: Path) -> None:
    _, table = page(rows_of(tmp_path / "faults.jsonl", CAMPAIGN, CAMPAIGN)).tables
    assert "| microbatch | kafka | 2 | 200 | 2,000 | 0 | 0 | 0 |" in table


@pytest.mark.parametrize("name", ["n_lost", "n_doubled", "n_wrong"])
def test_one_match_too_few_or_too_many_is_too_much(name: str, tmp_path: Path) -> None:
    (verdict,) = page(rows_of(tmp_path / "faults.jsonl", {**CAMPAIGN, name: 1})).verdicts
    assert verdict.holds is False


def test_a_match_may_come_again_where_that_was_asked_for(tmp_path: Path) -> None:
    roles = {**CAMPAIGN, "source": "", "engine": "realtime", "order": "arrival", "where": "one host"}
    found = page(rows_of(tmp_path / "faults.jsonl", {**roles, "n_doubled": 5, "delivery": "at-least-once"}))
    assert [verdict.holds for verdict in found.verdicts] == [True]
    assert "| topics, arrival order, one host, at-least-once | 1 |" in found.tables[1]


def test_what_was_mended_is_told_and_what_came_after_it_is_judged(tmp_path: Path) -> None:
    found = {**CAMPAIGN, "n_wrong": 3, "mended": "the order of two plans"}
    (verdict,) = page(rows_of(tmp_path / "faults.jsonl", found, CAMPAIGN)).verdicts
    assert verdict.holds is True
    assert verdict.ours == ("0 of 1,000 matches after 2 faults; 1 campaigns before found 3, mended since")
    (verdict,) = page(rows_of(tmp_path / "faults.jsonl", found)).verdicts
    assert verdict.holds is False  # nobody has shown yet that it is mended


def test_without_campaigns_the_page_says_so(tmp_path: Path) -> None:
    (case,) = cases("tiny")
    context = Context(1)
    rows = [{**case.settings, **row} for row in measure(case, context, tmp_path / "none")]
    context.close()
    assert "Left out" in page(rows).ours
