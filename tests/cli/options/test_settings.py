"""Options become settings; a plan that was saved decides on workers and partitioner."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.plans import cell_plan
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.cli.options.settings import (
    PARTITIONER_NAMES,
    add_plan_file,
    add_plan_settings,
    add_settings,
    settings_and_plan,
    settings_from,
)
from ps2stream.config import Settings
from ps2stream.errors import ConfigError, StateError
from ps2stream.model.schemas import EVENTS
from ps2stream.partitioning import PARTITIONERS


def _parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_settings(parser)
    add_plan_file(parser)
    return parser.parse_args(words)


def _saved(directory: Path) -> str:
    replace(cell_plan(3), partitioner="grid").save(directory / "plan.npz")
    return str(directory / "plan.npz")


def test_the_help_names_every_partitioner_and_no_other() -> None:
    assert set(PARTITIONER_NAMES) == set(PARTITIONERS)


def test_the_defaults_in_the_help_are_those_of_the_settings() -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser)
    helps = {action.option_strings[0]: str(action.help) for action in parser._actions}
    defaults = Settings()
    for option, default in (
        ("--workers", defaults.n_workers),
        ("--dispatchers", defaults.n_dispatchers),
        ("--partitioner", defaults.partitioner),
        ("--batch-events", defaults.batch_events),
        ("--load", defaults.load),
        ("--sample-events", defaults.sample_events),
        ("--sample-prefix", defaults.sample_prefix_events),
        ("--sample-seed", defaults.sample_seed),
    ):
        assert helps[option].endswith(f"(default: {default})")


def test_without_options_the_settings_are_the_defaults() -> None:
    assert settings_from(_parsed()) == Settings()


def test_every_option_reaches_its_setting(tmp_path: Path) -> None:
    pq.write_table(EVENTS.empty_table(), tmp_path / "some.parquet")
    words = "--workers 3 --dispatchers 5 --partitioner grid --batch-events 7 --load paper --calibrate"
    sampling = f"--sample-events 11 --sample-prefix 13 --sample-seed 17 --sample {tmp_path}/some.parquet"
    assert settings_from(_parsed(*words.split(), *sampling.split())) == Settings(
        n_workers=3,
        n_dispatchers=5,
        partitioner="grid",
        batch_events=7,
        load="paper",
        calibrate=True,
        sample_events=11,
        sample_prefix_events=13,
        sample_seed=17,
        sample_file=tmp_path / "some.parquet",
    )


def test_options_of_load_adjustment_are_part_of_the_settings() -> None:
    given = settings_from(_parsed("--adjust", "off", "--window", "7"))
    assert given == Settings(adjustment=AdjustmentSettings("off", window=7))
    liked = AdjustmentSettings(window=60_000)
    assert settings_from(_parsed(), liked) == Settings(adjustment=liked)


def test_planning_alone_has_no_options_of_a_job() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_plan_settings(parser)
    assert settings_from(parser.parse_args(["--workers", "2"])) == Settings(n_workers=2)
    assert not hasattr(parser.parse_args([]), "dispatchers")


def test_a_plan_decides_on_workers_and_partitioner(tmp_path: Path) -> None:
    file = _saved(tmp_path)
    for agreeing in ([], ["--workers", "3"], ["--partitioner", "grid"]):
        settings, plan = settings_and_plan(_parsed("--plan", file, *agreeing))
        assert settings == Settings(n_workers=3, partitioner="grid")
        assert plan is not None
        assert plan.n_workers == 3
    assert settings_and_plan(_parsed("--workers", "2")) == (Settings(n_workers=2), None)


def test_a_plan_for_other_workers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--workers must be 3, as in the plan .*plan\.npz; got 4"):
        settings_and_plan(_parsed("--plan", _saved(tmp_path), "--workers", "4"))


def test_a_file_that_is_no_plan_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan.npz").write_bytes(b"no plan")
    with pytest.raises(StateError, match=r"plan\.npz cannot be read"):
        settings_and_plan(_parsed("--plan", str(tmp_path / "plan.npz")))
