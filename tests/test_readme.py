"""The Python of the README and of the tutorial runs as it stands there; links and paths lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.engines.spark import journal_stream
from ps2stream.model.matches import Match

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ps2stream"
PAGES = [ROOT / "README.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")
_ROOM = re.compile(r"^### `([a-z/]+)/`: .+\?\n\nOpen `([a-z_/]+\.py)` first", re.MULTILINE)
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def python_blocks(page: str = "README.md") -> list[str]:
    return _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def promised_by(block: str) -> list[str]:
    """Return what the comments behind calls of print say."""
    return re.findall(r"print\(.*\)  # (.+)$", block, re.MULTILINE)


def anchors_of(page: Path) -> set[str]:
    """Name the headings of a page as GitHub does in links."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_first_block_prints_the_match_that_its_comment_promises(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inline, _ = python_blocks()
    exec(inline, {})
    (promised,) = re.findall(r"# (.+ <- .+)$", inline, re.MULTILINE)
    assert capsys.readouterr().out == f"{promised}\n"


def test_the_second_block_finds_the_same_matches_on_spark(spark: SparkSession) -> None:
    inline, on_spark = python_blocks()
    names: dict[str, Any] = {}
    exec(inline, names)
    exec(on_spark, names)
    assert names["spark"].sparkContext is spark.sparkContext
    found = [Match(**row) for row in names["matches"].toArrow().to_pylist()]
    assert found == names["ps2"].match(names["events"])
    assert found == [Match("alarm", 1, "m1", 2)]
    (columns,) = re.findall(r"\.show\(\)  # (.+)$", on_spark, re.MULTILINE)
    assert columns.split(", ") == names["matches"].columns


def test_the_tutorial_prints_what_its_comments_promise(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    without_a_job, after_a_job = python_blocks("docs/tutorial.md")
    names: dict[str, Any] = {}
    exec(without_a_job, names)
    home = names["deployment"].home
    with journal_stream(spark, home.journal, home.state, home.out, Settings(n_workers=2)) as stream:
        stream.process_all_available()
    exec(after_a_job, names)
    promised = [*promised_by(without_a_job), *promised_by(after_a_job)]
    assert len(promised) == 4
    assert capsys.readouterr().out.splitlines() == promised


def test_the_map_has_every_package_with_a_file_that_exists() -> None:
    rooms = dict(_ROOM.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))
    packages = {str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("__init__.py")} - {"."}
    assert set(rooms) == {package for package in packages if not package.startswith("cli/")}
    assert [room for room, first in rooms.items() if not (SOURCE / room / first).is_file()] == []


@pytest.mark.parametrize("name", ["architecture", "performance"])
def test_files_of_the_package_that_a_page_names_exist(name: str) -> None:
    named = _PATH.findall((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    in_package = [path for path in named if not path.startswith(("commands/", "tests/"))]
    assert in_package
    assert [path for path in in_package if not (SOURCE / path).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors_of(linked), f"{page.name} links to {target}#{anchor}"
