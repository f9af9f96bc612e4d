"""The command line teaches, refuses what makes no sense, and says what it did."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ps2stream.model.schemas import EVENTS
from ps2stream_bench.cli import main
from ps2stream_bench.figures import MODULES


def _help(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_tells_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = _help(capsys)
    for told in ("figures", "run", "report", "generate", "examples:", "exit status"):
        assert told in text
    assert "24 GiB" in _help(capsys, "run")
    assert "--check" in _help(capsys, "generate")


def test_figures_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(MODULES)


def test_an_unknown_figure_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", "figure-7"])
    assert stopped.value.code == 2
    assert "baselines" in capsys.readouterr().err


def test_a_file_of_publications_has_to_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "journal", "--publications", str(tmp_path / "none.parquet")]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_a_file_of_publications_has_to_have_what_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, narrow = tmp_path / "text.parquet", tmp_path / "narrow.parquet"
    text.write_text("lat,lon,text")
    pq.write_table(pa.table({"lat": [1.0], "words": ["a"]}), narrow)
    for path, complaint in ((text, "is no Parquet"), (narrow, "lacks lon, text; it has lat, words")):
        for command in (["run", "journal"], ["report"]):
            assert main([*command, "--publications", str(path)]) == 2
            assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["run", "journal", "--seed", "-1"],
        ["generate", "x.parquet", "--publications", "0"],
        ["generate", "x.parquet", "--workload", "q1", "--subscriptions", "0"],
        ["generate", "x.parquet", "--publications", "many"],
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(command)
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert "or more; got" in told or "invalid whole number value: 'many'" in told


def test_damaged_rows_are_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "tiny" / "journal" / "x.parquet"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"PAR1 and nothing else")
    assert main(["report", "--results", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith("ps2stream-bench: ")


def test_a_report_needs_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--results", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "ps2stream-bench run" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_and_a_report_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = str(tmp_path / "results"), tmp_path / "out"
    command = ["run", "journal", "--scale", "tiny", "--results", results]
    assert main(command) == 0
    assert "3 cases measured, 0 kept, 0 failed" in capsys.readouterr().out
    assert main(command) == 0
    assert "0 cases measured, 3 kept" in capsys.readouterr().out
    assert main(["report", "--results", results, "--out", str(out)]) == 0
    assert "1 pages" in capsys.readouterr().out
    assert "append, durable" in (out / "journal.md").read_text()
    assert "[The journal](journal.md) (tiny)" in (out / "README.md").read_text()


def test_publications_of_a_user_take_the_place_of_generated_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.parquet"
    assert main(["generate", str(own), "--country", "uk", "--publications", "3000"]) == 0
    command = ["run", "journal", "--scale", "tiny", "--results", str(tmp_path / "results")]
    assert main([*command, "--publications", str(own)]) == 0
    rows = pq.read_table(next((tmp_path / "results").rglob("*.parquet")))
    assert {source.split()[0] for source in rows["source"].to_pylist()} == {"file"}


def test_generate_writes_publications_and_says_what_they_are_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "us.parquet"
    assert main(["generate", str(out), "--publications", "5000", "--check"]) == 0
    table = pq.read_table(out)
    assert (table.num_rows, table.column_names) == (5000, ["id", "lat", "lon", "text"])
    told = capsys.readouterr().out
    assert "5,000 rows" in told
    assert "zipf_slope" in told


@pytest.mark.parametrize("workload", ["q1", "drifting"])
def test_generate_writes_event_logs(tmp_path: Path, workload: str) -> None:
    out = tmp_path / "events.parquet"
    sizes = ["--subscriptions", "200", "--publications", "1000"]
    assert main(["generate", str(out), "--workload", workload, *sizes]) == 0
    table = pq.read_table(out)
    assert table.schema.equals(EVENTS)
    assert table["op"].to_pylist().count("publish") == 1000
    assert table["seq"].to_pylist() == list(range(1, table.num_rows + 1))


def test_generate_needs_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(tmp_path / "none" / "x.parquet")]) == 2
    assert "there is no directory" in capsys.readouterr().err
