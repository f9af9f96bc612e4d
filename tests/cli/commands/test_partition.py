"""A sample in, a plan out: figures, files, drawings, and errors that say what was needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from cli.conftest import Run
from ps2stream.config import Settings
from ps2stream.demo.workload import Workload
from ps2stream.model.schemas import EVENTS
from ps2stream.partitioning import PARTITIONERS
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import costs_of, log_sample
from ps2stream.planning.trial import try_plan
from ps2stream.sources.event_log import EventLog


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> str:
    workload = Workload(seed=5)
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    pq.write_table(pa.Table.from_batches([workload.subscriptions(1_000), workload.events(3_000)]), path)
    return str(path)


def test_a_plan_is_made_tried_and_saved(run: Run, events: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.npz"
    ran = run("partition", events, "--workers", "3", "--json", "--plan", str(file), "--sample-events", "1600")
    assert ran.code == 0, ran.err
    (row,) = ran.json()
    plan = Plan.load(file)
    assert (plan.partitioner, plan.n_workers, plan.number) == (Settings().partitioner, 3, 1)
    settings = Settings(n_workers=3, sample_events=1_600)
    sample = log_sample(EventLog(Path(events)), settings)
    trial = try_plan(plan, sample, settings)
    loads = trial.loads(costs_of(sample, settings))
    assert row["loads_ms"] == pytest.approx((loads / sample.n_publications / 1_000).tolist())
    assert row["load_ms"] == pytest.approx(sum(row["loads_ms"]))
    assert row["max_over_min"] == pytest.approx(loads.max() / loads.min())
    assert row["stored"] == trial.n_subscriptions.tolist()
    assert row["replication"] == pytest.approx(trial.replication)
    assert row["fan_out"] == pytest.approx(trial.fan_out)
    assert row["discarded"] == pytest.approx(trial.n_discarded / 800)
    assert row["build_s"] > 0
    assert row["sample"] == {
        "publications": 800,
        "subscriptions": 800,
        "live": 1_000,
        "churn": pytest.approx(0.1, rel=0.02),
    }
    assert set(row["costs"]) == {"match", "publication", "insert", "delete", "load"}


def test_the_same_call_makes_the_same_plan_and_another_seed_another(
    run: Run, events: str, tmp_path: Path
) -> None:
    options = ["--workers", "3", "--sample-events", "300", "--quiet"]
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        call = ["partition", events, "--plan", str(tmp_path / name), "--sample-seed", seed, *options]
        assert run(*call).code == 0
    first, again, other = (Plan.load(tmp_path / name) for name in "abc")
    assert np.array_equal(first.frequencies.terms, again.frequencies.terms)
    assert np.array_equal(first.h1.cell_owner, again.h1.cell_owner)
    assert not np.array_equal(first.frequencies.terms, other.frequencies.terms)


def test_all_partitioners_are_compared_and_drawn(run: Run, events: str, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "plans"
    ran = run("partition", events, "--all", "--workers", "2", "--draw", str(directory))
    assert ran.code == 0, ran.err
    header, *rows = ran.out.splitlines()
    assert header.startswith("partitioner")
    assert [row.split()[0] for row in rows] == list(PARTITIONERS)
    drawings = {f"{name}{ending}" for name in PARTITIONERS for ending in (".png", ".svg")}
    assert {path.name for path in directory.iterdir()} == drawings
    for name in PARTITIONERS:
        assert f"{name}: planning" in ran.err
        assert f"{name}: trying the plan" in ran.err


def test_a_plan_is_drawn_as_often_as_asked(run: Run, events: str, tmp_path: Path) -> None:
    png, svg = tmp_path / "plan.PNG", tmp_path / "plan.svg"
    ran = run("partition", events, "--draw", str(png), "--draw", str(svg), "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in svg.read_bytes()


def test_trees_are_printed_where_there_are_some(run: Run, events: str) -> None:
    assert "\ngrid: no tree" in run("partition", events, "--partitioner", "grid", "--tree").out
    (row,) = run("partition", events, "--partitioner", "grid", "--tree", "--json").json()
    assert row["tree"] is None


def test_a_log_without_events_has_a_plan_too(run: Run, tmp_path: Path) -> None:
    pq.write_table(EVENTS.empty_table(), tmp_path / "none.parquet")
    call = ["partition", str(tmp_path / "none.parquet"), "--json", "--draw", str(tmp_path / "none.png")]
    ran = run(*call, "--quiet")
    assert ran.code == 0, ran.err
    (row,) = ran.json()
    assert (row["load_ms"], row["max_over_min"], row["replication"]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["missing.parquet"], 3, "no such file or directory"),
        (["notes.txt"], 3, "not a readable Parquet file"),
        (["EVENTS", "--partitioner", "magic"], 2, "--partitioner must be one of grid"),
        (["EVENTS", "--workers", "0"], 2, "--workers must lie between 1 and 1,024; got 0"),
        (["EVENTS", "--load", "weight"], 2, "--load must be one of candidates, paper; got 'weight'"),
        (["EVENTS", "--draw", "plan.pdf"], 3, "must end in .png or .svg; got plan.pdf"),
        (["EVENTS", "--draw", "plan"], 3, "must end in .png or .svg; got plan"),
        (["EVENTS", "--draw", "gone/plan.png"], 3, "a drawing needs a file in a directory that can be"),
        (["EVENTS", "--plan", "gone/plan.npz"], 3, "the plan needs a file in a directory that can be"),
        (["EVENTS", "--plan", "."], 3, "the plan needs a file in a directory that can be"),
        (["EVENTS", "--all", "--draw", "notes.txt"], 3, "notes.txt"),
        (["EVENTS", "--all", "--plan", "plan.npz"], 2, "--all and --plan exclude each other"),
        (["EVENTS", "--all", "--partitioner", "grid"], 2, "--all and --partitioner exclude each other"),
        ([], 2, "the following arguments are required: EVENTS"),
    ],
)
def test_a_wrong_call_says_what_was_needed(
    run: Run,
    events: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("no events in here")
    ran = run("partition", *(events if word == "EVENTS" else word for word in words))
    assert ran.code == code
    assert message in ran.err
    assert ran.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_interrupting_it_leaves_no_half_written_file(
    run: Run, events: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(figure: Figure, file: Any, **options: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", interrupt)
    ran = run("partition", events, "--draw", str(tmp_path / "plan.png"))
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == "ps2stream: interrupted"
    assert not list(tmp_path.iterdir())


def test_calibrated_costs_are_those_of_this_machine(run: Run, events: str) -> None:
    measured, standard = (
        run("partition", events, "--json", "--quiet", "--partitioner", "grid", *options).json()[0]["costs"]
        for options in (["--calibrate"], [])
    )
    assert measured != standard
