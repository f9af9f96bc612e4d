"""Rows come back from files as they were measured, and tables show their medians."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ps2stream_bench.results import Column, check_path, medians, table, write_rows

ROWS = [
    {"name": "a", "turn": 0, "seconds": 1.0, "limit": "worker"},
    {"name": "b", "turn": 0, "seconds": 5.0, "limit": "worker"},
    {"name": "a", "turn": 1, "seconds": 9.0, "limit": "dispatcher"},
    {"name": "b", "turn": 1, "seconds": float("inf"), "limit": "worker"},
    {"name": "a", "turn": 2, "seconds": 2.0, "limit": "dispatcher"},
]


def test_rows_with_the_same_name_are_joined_by_their_median() -> None:
    joined = medians(ROWS, ["name"])
    assert [(row["name"], row["seconds"], row["limit"]) for row in joined] == [
        ("a", 2.0, "dispatcher"),
        ("b", float("inf"), "worker"),
    ]


def test_a_table_has_a_line_for_each_row() -> None:
    lines = table(ROWS[:2], [Column("who", "name"), Column("time, s", "seconds", ".2f")]).splitlines()
    assert lines == ["| who | time, s |", "|---|---|", "| a | 1.00 |", "| b | 5.00 |"]


def test_rows_are_written_to_parquet(tmp_path: Path) -> None:
    write_rows(ROWS, tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == ROWS


def test_rows_are_written_as_json_that_others_can_read(tmp_path: Path) -> None:
    write_rows(ROWS, tmp_path / "rows.jsonl")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["seconds"] for line in lines] == [1, 5, 9, None, 2]


@pytest.mark.parametrize("name", ["rows.csv", "rows", "missing/rows.parquet"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(SystemExit, match="rows"):
        check_path(tmp_path / name)
