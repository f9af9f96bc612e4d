"""The parts of a home lie below it, and stay there when the working directory changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream.state.home_layout import HomeLayout


def test_the_parts_of_a_home_differ_and_lie_in_it(tmp_path: Path) -> None:
    home = HomeLayout(tmp_path)
    parts = {home.journal, home.state, home.out}
    assert len(parts) == 3
    assert {part.parent for part in parts} == {tmp_path}
    assert not any(part.exists() for part in parts)


def test_a_relative_home_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = HomeLayout(Path("alerts"))
    monkeypatch.chdir("/")
    assert home.state.parent == tmp_path / "alerts"
