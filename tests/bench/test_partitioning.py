"""The benchmarks of partitioners run, and their rows say what they should."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ps2stream.model.schemas import SUBSCRIBE
from ps2stream.partitioning import PARTITIONERS
from ps2stream.partitioning.hybrid import HybridSettings
from ps2stream.testing import oracle
from ps2stream_bench.partitioning import compare, predict, sensitivity, speed
from ps2stream_bench.partitioning.__main__ import main, parse, run
from ps2stream_bench.partitioning.streams import stream_of
from ps2stream_bench.results import Row
from ps2stream_bench.workload import KINDS, synthetic_corpus

NAMES = list(PARTITIONERS)
CORPUS = "--corpus-size 400 --seed 3"
COMPARE = f"compare {CORPUS} --subscriptions 600 --publications 300 --sample 200 --workers 3 --repeat 2"


def rows_of(command: str) -> list[Row]:
    return run(parse(command.split()))


@pytest.fixture(scope="module")
def compared() -> list[Row]:
    return rows_of(COMPARE)


def test_partitioners_take_turns_on_every_workload(compared: list[Row]) -> None:
    turns = [(row["workload"], row["repetition"], row["partitioner"]) for row in compared]
    assert turns == list(product(KINDS, range(2), NAMES))


def test_a_comparison_counts_the_oracles_matches(compared: list[Row]) -> None:
    corpus = synthetic_corpus(400, 3)
    for kind in KINDS:
        events = stream_of(corpus, kind, 600, 300, 3).events
        expected = len(oracle.run(events, corpus.tokenizer().stop_words).matches)
        assert expected > 0
        assert {row["n_matches"] for row in compared if row["workload"] == kind} == {expected}


def test_the_figures_of_a_comparison_fit_together(compared: list[Row]) -> None:
    n_tuples = 300 + 60
    for row in compared:
        assert row["n_publications"] == 300
        assert row["matches_per_publication"] == row["n_matches"] / 300
        assert row["candidates_per_publication"] >= row["matches_per_publication"]
        assert 1 <= row["fan_out"] <= 3
        assert 1 <= row["replication"] <= 3
        assert 0 <= row["discarded_share"] < 1
        assert 1 <= row["busy_max_over_mean"] <= 3
        assert row["busy_max_over_mean"] <= row["busy_max_over_min"]
        assert row["estimated_load_ms"] > 0
        assert row["estimated_balance"] >= 1
        assert row["worker_tuples_per_s"] == pytest.approx(n_tuples / row["busiest_worker_s"])
        busiest = max(row["busiest_worker_s"], row["busiest_dispatcher_s"])
        assert row["projected_tuples_per_s"] == pytest.approx(n_tuples / busiest)
        assert (row["limit"] == "worker") == (busiest == row["busiest_worker_s"])


def test_rows_say_where_and_with_which_settings_they_were_measured(compared: list[Row]) -> None:
    for row in compared:
        assert {"commit", "processor", "cost_match_ns", "build_s"} <= row.keys()
        assert (row["command"], row["corpus"], row["load"]) == ("compare", "synthetic", "candidates")
        assert (row["argument_seed"], row["argument_workers"]) == (3, 3)
        assert row["argument_workloads"] == "q1 q2 q3"


def test_the_table_of_a_comparison_has_a_line_for_each_workload_and_partitioner(compared: list[Row]) -> None:
    lines = compare.report(compared).splitlines()[2:]
    assert [line.split(" | ")[:2] for line in lines] == [
        [f"| {kind}", name] for kind in KINDS for name in NAMES
    ]


def test_partitioners_that_find_different_matches_are_not_compared(compared: list[Row]) -> None:
    compare.check(compared)
    wrong = {**compared[0], "n_matches": compared[0]["n_matches"] + 1}
    with pytest.raises(SystemExit, match="same matches of q1"):
        compare.check([*compared, wrong])


def test_loading_is_no_part_of_the_mixed_phase() -> None:
    stream = stream_of(synthetic_corpus(400, 3), "q3", 600, 300, 3)
    loading, mixed = list(stream.loading(250)), list(stream.mixed(250))
    assert [batch.num_rows for batch in loading] == [250, 250, 100]
    assert sum(batch.num_rows for batch in mixed) == stream.n_mixed == 360
    assert {op for batch in loading for op in batch["op"].to_pylist()} == {SUBSCRIBE}
    sample = stream.sample(100, 1)
    assert (sample.n_publications, sample.n_subscriptions, sample.n_live) == (100, 100, 600)
    assert sample.churn == pytest.approx(0.1)


def test_predictions_are_judged_for_every_load_function_over_several_plans() -> None:
    rows = rows_of(f"predict {CORPUS} --workloads q1 --sample 300 --workers 2 4 --repeat 2")
    groups = [("all", "all"), ("all", "2"), ("all", "4"), *((name, "all") for name in NAMES)]
    models = [(load, costs) for load in ("candidates", "paper") for costs in ("calibrated", "standard")]
    assert [(row["load"], row["costs"], row["partitioner"], row["workers"]) for row in rows] == [
        (*model, *group) for model in models for group in groups
    ]
    for row in rows:
        assert -1 <= row["rank_correlation"] <= 1
        assert 0 <= row["mean_error"] <= row["max_error"]
        assert 0 < row["n"] <= 6 * len(NAMES)
        assert row["cost_publication_ns"] > 0
    assert len(predict.report(rows).splitlines()) == 2 + len(models)


def test_building_a_plan_is_timed_for_every_sample_and_number_of_workers() -> None:
    rows = rows_of(f"speed {CORPUS} --workloads q3 --samples 100 200 --workers 2 3 --repeat 2")
    points = [(row["sample"], row["repetition"], row["workers"], row["partitioner"]) for row in rows]
    assert points == list(product((100, 200), (0, 1), (2, 3), NAMES))
    assert all(row["build_s"] > 0 for row in rows)
    assert len(speed.report(rows).splitlines()) == 2 + 2 * len(NAMES)


def test_thresholds_are_varied_one_at_a_time_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "sensitivity.png"
    options = f"--subscriptions 500 --sample 200 --workers 3 --workloads q3 --plot {picture}"
    rows = rows_of(f"sensitivity {CORPUS} {options} --settings sigma theta")
    assert [(row["setting"], row["value"]) for row in rows] == [
        (setting, value) for setting in ("sigma", "theta") for value in sensitivity.VALUES[setting]
    ]
    for row in rows:
        assert 0 < row["max_load_ms"] <= row["load_ms"]
        assert row["max_over_mean"] == pytest.approx(3 * row["max_load_ms"] / row["load_ms"])
        assert row["units"] >= 1
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(sensitivity.report(rows).splitlines()) == 2 + len(rows)


def test_the_defaults_of_all_thresholds_are_among_what_is_tried() -> None:
    usual = HybridSettings()
    assert all(getattr(usual, setting) in values for setting, values in sensitivity.VALUES.items())


def test_the_command_writes_raw_rows_and_prints_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.parquet"
    main(f"speed {CORPUS} --workloads q1 --samples 100 --workers 2 --out {out}".split())
    assert pq.read_table(out).num_rows == len(NAMES)
    assert capsys.readouterr().out.startswith("| workload | partitioner |")


def test_a_command_line_that_asks_for_the_unknown_is_refused() -> None:
    for command in ("compare --partitioners nobody", "predict --workloads q9", "speed --out rows.csv"):
        with pytest.raises(SystemExit):
            parse(command.split())
