"""The report in docs/paper is what its rows give: nobody has touched a number by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream_bench.figures import MODULES, figures_named
from ps2stream_bench.report import Reported, page_text, reported, summary_text
from ps2stream_bench.results import Results

PAPER = Path(__file__).parents[2] / "docs" / "paper"


@pytest.fixture(scope="module")
def pages() -> list[Reported]:
    return reported(figures_named(["all"]), Results(PAPER / "rows"))


def test_every_figure_is_reported_and_no_other(pages: list[Reported]) -> None:
    assert [page.figure.name for page in pages] == list(MODULES)
    assert {path.stem for path in PAPER.glob("*.md")} == {"README", *MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_a_page_is_what_its_rows_give(name: str, pages: list[Reported]) -> None:
    (page,) = [each for each in pages if each.figure.name == name]
    assert (PAPER / f"{name}.md").read_text() == page_text(page)
    drawn = {path.name for path in (PAPER / "images").glob(f"{name}-*.png")}
    assert {f"{name}-{drawing.name}.png" for drawing in page.page.drawings} <= drawn


def test_the_summary_is_what_all_rows_give(pages: list[Reported]) -> None:
    assert (PAPER / "README.md").read_text() == summary_text(pages)


def test_the_rows_are_those_of_one_clean_state_of_the_code(pages: list[Reported]) -> None:
    commits = {row["commit"] for page in pages for row in page.rows}
    assert all("dirty" not in commit and commit != "unknown" for commit in commits)
    assert {page.scale for page in pages} <= {"small", "paper"}
