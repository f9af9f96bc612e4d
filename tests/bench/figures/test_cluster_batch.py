"""What is said about a batch job follows from the rows, and a driver is asked for what a case names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from clusters import needs_cluster
from ps2stream_bench.cluster import bed
from ps2stream_bench.cluster.batch_driver import OURS, SQL
from ps2stream_bench.figure import Context
from ps2stream_bench.figures.cluster_batch import FIGURE, page
from ps2stream_bench.results import Row

(TINY,) = FIGURE.cases("tiny")


def row_of(way: str, n: int, wall_s: float, *, repetition: int = 0, **others: Any) -> Row:
    return {
        **TINY.settings,
        "way": way,
        "n_publications": n,
        "repetition": repetition,
        "wall_s": wall_s,
        "cpu_s": 2 * wall_s,
        "n_matches": 8 * n,
        "fingerprint": "17",
        "store_to_bytes": 2**20,
        "store_from_bytes": 2**20,
        "hosts_to_bytes": 3 * 2**20,
        **others,
    }


@pytest.mark.parametrize(("sql_s", "holds"), [(30.0, True), (9.0, False)])
def test_both_ways_are_compared_where_both_ran(sql_s: float, holds: bool) -> None:
    told = page([row_of(OURS, 100, 10.0), row_of(SQL, 100, sql_s), row_of(OURS, 5_000, 20.0)])
    (verdict,) = told.verdicts
    assert verdict.holds is holds
    assert verdict.ours == f"{sql_s / 10:.1f} times"
    assert f"| 5,000 | {OURS} | 20.0 | 250 | 40.0 | 40,000 | 1 | 1 | 3 |" in told.tables[0]


def test_the_first_turn_is_not_shown() -> None:
    told = page([row_of(OURS, 100, 90.0, repetition=-1), row_of(OURS, 100, 10.0)])
    assert "| 10.0 |" in told.tables[0]
    assert "90.0" not in told.tables[0]


def test_a_machine_without_beds_gives_a_page_that_says_why() -> None:
    told = page([{**TINY.settings, "unavailable": "it needs root"}])
    assert "Left out: it needs root." in told.ours
    assert not told.tables
    assert not told.verdicts


@pytest.fixture
def context(tmp_path: Path) -> Any:
    made = Context(seed=1)
    yield made
    made.close()


def test_the_driver_is_given_files_with_what_the_case_names(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(driver: str, asked: dict[str, Any], hosts: bed.Hosts) -> list[Row]:
        assert (driver, hosts.n) == ("batch_driver", 3)
        n = TINY["subscriptions"]
        assert pq.read_metadata(asked["subscriptions"]).num_rows == n
        assert pq.read_metadata(asked["clauses"]).num_rows >= n
        for turn in asked["turns"]:
            seqs = [seq for path in turn["publications"] for seq in pq.read_table(path)["seq"].to_pylist()]
            assert seqs == list(range(n + 1, n + 1 + turn["n"]))
        return [
            row_of(way, turn["n"], 1.0, repetition=turn["repetition"])
            for turn in asked["turns"]
            for way in turn["ways"]
        ]

    monkeypatch.setattr("ps2stream_bench.figures.cluster_batch.rows_of", answer)
    rows = list(FIGURE.measure(TINY, context))
    assert [(row["n_publications"], row["way"]) for row in rows if row["repetition"] == 0] == [
        (500, OURS),
        (500, SQL),
        (1_000, OURS),
        (1_000, SQL),
        (2_000, OURS),
    ]


def test_ways_that_find_other_pairs_fail_the_case(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row_of(OURS, 500, 1.0), row_of(SQL, 500, 1.0, fingerprint="18")]
    monkeypatch.setattr("ps2stream_bench.figures.cluster_batch.rows_of", lambda *asked: rows)
    with pytest.raises(ValueError, match="must deliver the same matches"):
        list(FIGURE.measure(TINY, context))


def test_a_machine_without_beds_gives_a_row_that_says_why(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*asked: object) -> list[Row]:
        raise bed.UnavailableError("it needs root")

    monkeypatch.setattr("ps2stream_bench.figures.cluster_batch.rows_of", refuse)
    assert list(FIGURE.measure(TINY, context)) == [{"unavailable": "it needs root"}]


@needs_cluster
def test_both_ways_find_the_same_on_three_hosts(context: Context) -> None:
    rows = list(FIGURE.measure(TINY, context))
    assert {(row["n_publications"], row["way"]) for row in rows} == {
        *((n, way) for n in (500, 1_000) for way in (OURS, SQL)),
        (2_000, OURS),
    }
    assert all(row["n_matches"] > 0 and row["cpu_s"] > 0 for row in rows)
