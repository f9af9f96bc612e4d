"""A report is made of rows and of nothing else, and says what the rows say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ps2stream_bench.figure import Case, Drawing, Figure, Page, Verdict
from ps2stream_bench.metrics import middles
from ps2stream_bench.plots import lines
from ps2stream_bench.report import page_text, reported, summary_text, write
from ps2stream_bench.results import Results, Row

FACTS = {
    "commit": "abc123",
    "measured_at": "2026-11-16T07:00:00+00:00",
    "processor": "a processor",
    "n_cores": 2,
    "memory_bytes": 24 * 2**30,
    "system": "Linux",
    "python": "3.11.7",
    "numba": "0.65",
    "pyspark": "4.3.0",
    "seed": 1,
    "source": "generated",
}


def _page(rows: Sequence[Row]) -> Page:
    largest = max(row["rate"] for row in rows)

    def draw(canvas: object) -> None:
        axes = canvas.subplots()  # type: ignore[attr-defined]
        lines(axes, {"rate": {n: each for (n,), each in middles(rows, ["n"], "rate").items()}})

    return Page(
        "The paper shows a line.",
        "So do we.",
        "They do not differ.",
        ["| a table |\n|---|"],
        [Drawing("line", "A line.", draw)],
        [Verdict("It is fast", "5 tuples/s", f"{largest} tuples/s", largest > 5)],
    )


FIGURE = Figure(
    "fast",
    "How fast",
    "About it.",
    lambda scale: [Case({"n": n}) for n in range(2)],
    lambda case, context: [],
    _page,
)


def _results(directory: Path, scale: str, rates: list[float]) -> Results:
    results = Results(directory)
    for n, rate in enumerate(rates):
        row = {**FACTS, "case": str(Case({"n": n})), "scale": scale, "n": n, "rate": rate}
        results.write(results.file_of("fast", scale, {"n": n}), [row])
    return results


@pytest.mark.parametrize(("rate", "verdict"), [(9.0, "yes"), (3.0, "**no**")])
def test_a_verdict_is_what_the_rows_say(tmp_path: Path, rate: float, verdict: str) -> None:
    (found,) = reported([FIGURE], _results(tmp_path, "small", [1.0, rate]))
    line = f"It is fast | 5 tuples/s | {rate} tuples/s | {verdict} |"
    assert line in page_text(found)
    assert line in summary_text([found])
    assert f"{int(rate > 5)} of 1 hold" in summary_text([found])


def test_the_largest_scale_is_reported_unless_one_is_asked_for(tmp_path: Path) -> None:
    _results(tmp_path, "tiny", [1.0, 1.5])
    results = _results(tmp_path, "small", [2.0, 2.5])
    assert [each.scale for each in reported([FIGURE], results)] == ["small"]
    assert [each.rows[0]["rate"] for each in reported([FIGURE], results, "tiny")] == [1.0]
    assert reported([FIGURE], results, "paper") == []


def test_a_scale_that_is_not_complete_gives_way_to_one_that_is(tmp_path: Path) -> None:
    results = _results(tmp_path, "paper", [9.0])
    (alone,) = reported([FIGURE], results)
    assert (alone.scale, alone.missing) == ("paper", ("n=1",))
    assert "not measured: n=1" in page_text(alone)
    _results(tmp_path, "small", [2.0, 2.5])
    (whole,) = reported([FIGURE], results)
    assert (whole.scale, whole.missing) == ("small", ())


def test_rows_of_other_seeds_files_and_cases_do_not_count(tmp_path: Path) -> None:
    results = _results(tmp_path, "small", [2.0, 2.5])
    strays: list[Row] = [{"seed": 2}, {"source": "file 1234"}, {"case": "n=77"}]
    for number, stray in enumerate(strays):
        row = {**FACTS, "case": "n=1", "scale": "small", "n": 1, "rate": 1e9, **stray}
        results.write(results.file_of("fast", "small", {"stray": number}), [row])
    (found,) = reported([FIGURE], results)
    assert sorted(row["rate"] for row in found.rows) == [2.0, 2.5]
    (other,) = reported([FIGURE], results, seed=2)
    assert [row["rate"] for row in other.rows] == [1e9]
    assert "--seed 2" in page_text(other)


def test_a_claim_that_the_rows_do_not_tell_about_is_counted_apart(tmp_path: Path) -> None:
    (found,) = reported([FIGURE], _results(tmp_path, "small", [1.0, 2.0]))
    unknown = replace(found.page, verdicts=[Verdict("It is small", "1 KB", "not measured", None)])
    text = summary_text([replace(found, page=unknown)])
    assert "| It is small | 1 KB | not measured | not measured |" in text
    assert "0 of 1 hold; 1 could not be judged." in text


def test_a_report_made_of_the_rows_of_a_report_is_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write(reported([FIGURE], _results(tmp_path / "results", "small", [1.0, 7.0])), first)
    write(reported([FIGURE], Results(first / "rows")), second)
    names = ["README.md", "fast.md", "images/fast-line.png"]
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    assert Results(second / "rows").read("fast", "small") == Results(first / "rows").read("fast", "small")


def test_a_new_report_replaces_the_old_one(tmp_path: Path) -> None:
    write(reported([FIGURE], _results(tmp_path / "a", "tiny", [1.0])), tmp_path / "out")
    write(reported([FIGURE], _results(tmp_path / "b", "small", [2.0])), tmp_path / "out")
    assert [
        path.relative_to(tmp_path / "out" / "rows") for path in (tmp_path / "out").rglob("*.parquet")
    ] == [Path("small/fast.parquet")]


def test_a_page_says_where_its_rows_come_from(tmp_path: Path) -> None:
    (found,) = reported([FIGURE], _results(tmp_path, "small", [1.0, 2.0]))
    text = page_text(found)
    for told in ("abc123", "2026-11-16", "seed 1", "./dev bench run fast --scale small", "2 raw rows"):
        assert told in text
    assert "a processor, 2 cores, 24 GiB" in summary_text([found])
