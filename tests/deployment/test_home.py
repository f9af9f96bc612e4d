from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from cli.plans import cell_plan
from ps2stream.cli.options.home import add_home, home_from
from ps2stream.config import Settings
from ps2stream.deployment.home import Home, state_of
from ps2stream.errors import StateError
from ps2stream.state.state import State


def _home(*words: str) -> Home:
    parser = argparse.ArgumentParser()
    add_home(parser)
    return home_from(parser.parse_args(words))


def test_the_option_beats_the_variable_beats_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PS2STREAM_HOME", raising=False)
    assert _home().directory == Path.cwd() / "ps2stream-data"
    monkeypatch.setenv("PS2STREAM_HOME", "/srv/a")
    assert _home().directory == Path("/srv/a")
    assert _home("--home", "/srv/b").journal == Path("/srv/b/journal")


def test_a_home_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = Home(Path("alerts"))
    monkeypatch.chdir("/")
    assert home.journal == tmp_path / "alerts" / "journal"


def test_stop_words_are_those_of_the_job(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.stop_words() == ()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job.json").write_text('{"stop_words": ["the", "a"]}')
    assert home.has_state
    assert home.stop_words() == ("the", "a")


def test_the_settings_are_those_that_the_job_is_bound_to(tmp_path: Path) -> None:
    home = Home(tmp_path)
    bound = Settings(n_workers=3, partitioner="grid", stop_words=("the",), grid_bits=7, max_cells=9)
    State.at(home.state).create(cell_plan(3), bound)
    assert home.settings() == bound
    assert state_of(home).job_file.job_id


def test_without_a_job_there_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"no job was started in .* yet; 'ps2stream run' starts one"):
        state_of(Home(tmp_path))


@pytest.mark.parametrize("content", ["", "{}", '{"stop_words": 5}'])
def test_a_damaged_job_file_is_told_of(tmp_path: Path, content: str) -> None:
    home = Home(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job.json").write_text(content)
    for read in (home.stop_words, home.settings):
        with pytest.raises(StateError, match=r"job\.json cannot be read"):
            read()
