"""The benchmarks of load adjustment run, count what they say they count, and can be told apart."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ps2stream_bench.adjustment import __main__ as command_line
from ps2stream_bench.adjustment import drift, selectors

SMALL = ["--corpus-size", "3000", "--workers", "3", "--dispatchers", "2", "--batch-events", "1000"]


def test_drift_compares_the_same_intervals_of_the_same_stream() -> None:
    options = ["--subscriptions", "1500", "--intervals", "3", "--rush", "20", "--window", "2000"]
    arguments = command_line.parse(["drift", *SMALL, *options, "--sigma", "1.1", "--target", "1.02"])
    rows = command_line.run(arguments)
    assert [(row["interval"], row["contender"]) for row in rows[:3]] == [
        (0, "none"),
        (0, "local"),
        (0, "local and global"),
    ]
    assert len(rows) == 9
    for interval in range(3):
        own = [row for row in rows if row["interval"] == interval]
        assert {row["n_events"] for row in own} == {18_000}
        assert own[0]["gain"] == own[0]["n_adjustments"] == 0
    moved = [row for row in rows if row["contender"] == "local" and row["n_adjustments"]]
    assert moved
    assert all(row["n_subscriptions"] > 0 and row["megabytes"] > 0 for row in moved)
    assert "all but the first" in drift.report(rows)


def test_selectors_choose_on_the_same_tables_and_reach_the_same_targets(tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    options = ["--subscriptions", "1500", "--publications", "6000", "--workloads", "q3", "--out", str(out)]
    command_line.main(["selectors", *SMALL, *options])
    rows = pq.read_table(out).to_pylist()
    by_instance: dict[tuple[object, ...], dict[str, dict[str, float]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("batch", "worker", "share"))
        by_instance.setdefault(key, {})[row["selector"]] = row
        assert row["load"] >= row["target"] > 0
    assert len(by_instance) == 48
    for chosen in by_instance.values():
        assert set(chosen) == {"dp", "gr", "si", "ra"}
        assert all(chosen["dp"]["n_bytes"] <= row["n_bytes"] for row in chosen.values())
    assert "| GR | 48 |" in selectors.report(rows)


def test_rows_that_cannot_be_written_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no directory"):
        command_line.parse(["drift", "--out", str(tmp_path / "missing" / "rows.parquet")])
