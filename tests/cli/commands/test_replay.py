from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ps2stream.cli.main import main
from ps2stream.cli.render.load_figures import LoadFigures
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS, EVENTS, MATCHES, REJECTED
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from waiting import HANG_S

_IMPOSSIBLE = (BEFORE_ALL_SEQS, AFTER_ALL_SEQS)


def _write(path: Path, events: pa.Table) -> Path:
    pq.write_table(events, path, row_group_size=100)
    return path


def _from_below_zero(events: pa.Table) -> pa.Table:
    """Shift the seqs, so that some are negative and one is 0, and add the two that cannot be."""
    shifted = pc.subtract(events.column("seq"), events.column("seq")[events.num_rows // 2])
    impossible = [
        {"seq": seq, "op": "publish", "id": "x", "lat": 0, "lon": 0, "text": "x"} for seq in _IMPOSSIBLE
    ]
    return pa.concat_tables([events.set_column(0, "seq", shifted), pa.Table.from_pylist(impossible, EVENTS)])


def _expected(events: pa.Table) -> oracle.Deliveries:
    """Ask the oracle about the events in the order of their seq, which is the order of a replay."""
    return oracle.run(events.take(pc.sort_indices(events.column("seq"))))


def _matches(out: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in pq.read_table(out / "matches").to_pylist())


def _rejected(out: Path) -> list[str]:
    return sorted(
        str((row["seq"], row["op"], row["id"])) for row in pq.read_table(out / "rejected").to_pylist()
    )


def test_inline_replay_delivers_what_the_oracle_says(tmp_path: Path) -> None:
    events = random_events(800, seed=21)
    log, out, report = _write(tmp_path / "e.parquet", events), tmp_path / "out", tmp_path / "r.json"
    arguments = [str(log), "--out", str(out), "--report", str(report), "--engine", "inline", "--workers", "3"]
    assert main(["replay", *arguments, "--dispatchers", "2", "--batch-events", "90", "--quiet"]) == 0
    expected = _expected(events)
    assert _matches(out) == sorted(tuple(match) for match in expected.matches)
    assert _rejected(out) == sorted(str(tuple(each)) for each in expected.rejected)
    figures = json.loads(report.read_text())
    assert figures["matches"] == len(expected.matches)
    assert figures["rejected"] == len(expected.rejected)
    assert figures["engine"] == "inline"
    assert len(figures["workers"]) == 3


def test_adjustments_and_the_last_loads_are_in_the_report_and_change_no_match(tmp_path: Path) -> None:
    events = random_events(1_500, seed=31, publication_share=0.8)
    log, out, report = _write(tmp_path / "e.parquet", events), tmp_path / "out", tmp_path / "r.json"
    base = ["replay", str(log), "--out", str(out), "--report", str(report), "--engine", "inline", "--quiet"]
    base += ["--workers", "3", "--batch-events", "60"]
    assert main([*base, "--window", "50", "--sigma", "1.02", "--balance-target", "1.01"]) == 0
    assert _matches(out) == sorted(tuple(match) for match in _expected(events).matches)
    figures = json.loads(report.read_text())
    assert figures["adjustments"]
    for adjustment in figures["adjustments"]:
        assert adjustment["reason"]
        assert len(adjustment["loads_before"]) == 3
    loads = LoadFigures.of(figures["loads"])
    assert loads.sigma == 1.02
    assert len(loads.workers) == 3
    assert loads.plans[0] == 1 + len(figures["adjustments"])
    assert loads.n_subscriptions == figures["live_subscriptions"]
    assert main([*base, "--adjust", "off"]) == 0
    figures = json.loads(report.read_text())
    assert (figures["adjustments"], figures["loads"]) == ([], None)


@pytest.mark.parametrize("engine", ["inline", "microbatch"])
def test_replay_as_a_command(tmp_path: Path, engine: str) -> None:
    events = _from_below_zero(random_events(600, seed=22))
    log, out, report = _write(tmp_path / "e.parquet", events), tmp_path / "out", tmp_path / "r.json"
    command = [
        sys.executable,
        "-m",
        "ps2stream",
        "replay",
        str(log),
        "--out",
        str(out),
        "--report",
        str(report),
    ]
    done = subprocess.run(
        [*command, "--engine", engine, "--partitioner", "grid", "--workers", "2", "--dispatchers", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = _expected(events)
    assert _matches(out) == sorted(tuple(match) for match in expected.matches)
    assert _rejected(out) == sorted(str(tuple(each)) for each in expected.rejected)
    figures = json.loads(report.read_text())
    assert figures["rejected"] == len(expected.rejected)
    assert len(LoadFigures.of(figures["loads"]).workers) == 2
    assert isinstance(figures["adjustments"], list)
    assert "Traceback" not in done.stderr
    assert f"replaying: {events.num_rows} of {events.num_rows} events (100%)" in done.stderr


def test_nothing_matched_leaves_tables_that_can_be_read(tmp_path: Path) -> None:
    log = _write(tmp_path / "e.parquet", EVENTS.empty_table())
    out = tmp_path / "out"
    assert (
        main(["replay", str(log), "--out", str(out), "--report", str(tmp_path / "r"), "--engine", "inline"])
        == 0
    )
    assert pq.read_table(out / "matches").schema == MATCHES
    assert pq.read_table(out / "rejected").schema == REJECTED


def test_a_second_replay_replaces_the_first_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    base = ["--out", str(out), "--report", str(tmp_path / "r.json"), "--engine", "inline", "--quiet"]
    main(
        [
            "replay",
            str(_write(tmp_path / "a.parquet", random_events(900, seed=23))),
            *base,
            "--batch-events",
            "50",
        ]
    )
    (out / "notes.txt").write_text("mine")
    events = random_events(200, seed=24)
    main(["replay", str(_write(tmp_path / "b.parquet", events)), *base])
    assert _matches(out) == sorted(tuple(match) for match in _expected(events).matches)
    assert (out / "notes.txt").read_text() == "mine"


def test_the_report_can_go_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = _write(tmp_path / "e.parquet", random_events(50, seed=25))
    assert (
        main(
            [
                "replay",
                str(log),
                "--out",
                str(tmp_path / "o"),
                "--report",
                "-",
                "--engine",
                "inline",
                "--quiet",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["events"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.parquet"], 3, "no such file or directory"),
        (["e.parquet", "--workers", "0"], 2, "workers must lie between 1 and 1,024; got 0"),
        (["e.parquet", "--partitioner", "magic"], 2, "partitioner must be one of grid"),
        (["e.parquet", "--engine", "storm"], 2, "invalid choice: 'storm'"),
        (["e.parquet", "--engine", "realtime"], 2, "--engine realtime needs Kafka: --kafka HOST:PORT"),
        (["e.parquet", "--stop-words", "none.txt"], 3, "stop words none.txt cannot be read"),
        (["e.parquet", "--sample", "none.parquet"], 3, "none.parquet: no such file or directory"),
        (
            ["e.parquet", "--sample-seed", "-1"],
            2,
            "--sample-seed must lie between 0 and 4,294,967,295; got -1",
        ),
        (["e.parquet", "--load", "weight"], 2, "load must be one of candidates, paper; got 'weight'"),
        (["e.parquet", "--selector", "best"], 2, "selector must be one of dp, gr, si, ra; got 'best'"),
        (["e.parquet", "--sigma", "1"], 2, "sigma must be above target"),
        (["e.parquet", "--window", "many"], 2, "argument --window: invalid int value: 'many'"),
        (["e.parquet", "--plan", "none.npz"], 3, "none.npz cannot be read: [Errno 2]"),
        (["notes.txt"], 3, "not a readable Parquet file"),
        (["narrow.parquet"], 3, "column 'op' (string) is missing"),
    ],
)
def test_a_wrong_call_says_what_was_needed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PS2STREAM_KAFKA", raising=False)
    _write(Path("e.parquet"), random_events(10, seed=1))
    pq.write_table(pa.table({"seq": [1]}), "narrow.parquet")
    Path("notes.txt").write_text("no events in here")
    assert main(["replay", *arguments, "--out", "o", "--report", "r.json", "--quiet"]) == code
    assert message in capsys.readouterr().err
    assert not Path("r.json").exists()


def test_a_replay_goes_by_the_plan_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    events = random_events(500, seed=27)
    _write(Path("e.parquet"), events)
    assert main(["partition", "e.parquet", "--workers", "3", "--plan", "plan.npz", "--quiet"]) == 0
    replay = ["replay", "e.parquet", "--out", "o", "--report", "r.json", "--engine", "inline", "--quiet"]
    Path("notes.txt").write_text("what cannot be read is not needed, either")
    assert main([*replay, "--plan", "plan.npz", "--sample", "notes.txt"]) == 0
    assert _matches(Path("o")) == sorted(tuple(match) for match in _expected(events).matches)
    report = json.loads(Path("r.json").read_text())
    assert (report["n_workers"], len(report["workers"])) == (3, 3)
    assert main([*replay, "--plan", "plan.npz", "--workers", "4"]) == 3
    assert "--workers must be 3, as in the plan plan.npz; got 4" in capsys.readouterr().err


def test_a_sample_of_another_log_changes_the_plan_and_no_match(tmp_path: Path) -> None:
    events = random_events(400, seed=28)
    log = _write(tmp_path / "e.parquet", events)
    other = _write(tmp_path / "other.parquet", random_events(300, seed=29))
    base = ["--report", str(tmp_path / "r.json"), "--engine", "inline", "--quiet", "--workers", "3"]
    sampling = [
        "--sample",
        str(other),
        "--sample-events",
        "100",
        "--sample-prefix",
        "50",
        "--sample-seed",
        "3",
    ]
    for number, options in enumerate(([], sampling, ["--load", "paper"])):
        out = tmp_path / str(number)
        assert main(["replay", str(log), "--out", str(out), *base, *options]) == 0
        assert _matches(out) == sorted(tuple(match) for match in _expected(events).matches)


@pytest.mark.parametrize("report", ["nowhere/r.json", "."])
def test_a_report_without_a_directory_is_noticed_before_old_results_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], report: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(Path("e.parquet"), random_events(300, seed=1))
    base = ["replay", "e.parquet", "--out", "o", "--engine", "inline", "--quiet", "--report"]
    assert main([*base, "r.json"]) == 0
    before = _matches(Path("o"))
    assert main([*base, report]) == 3
    assert "the report needs a file" in capsys.readouterr().err
    assert _matches(Path("o")) == before


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupting_a_replay_ends_it_without_a_traceback(tmp_path: Path) -> None:
    log = _write(tmp_path / "e.parquet", random_events(20_000, seed=26, publication_share=0.9))
    command = [sys.executable, "-m", "ps2stream", "replay", str(log), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [*command, "--report", str(tmp_path / "r.json"), "--engine", "inline", "--batch-events", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + HANG_S
    while not list((tmp_path / "out").glob("matches/batch-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not (tmp_path / "r.json").exists()
    assert not list((tmp_path / "out").glob("matches/.*.tmp"))
