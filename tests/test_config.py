"""Settings are checked when they are made."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ps2stream.config import MAX_WORKERS, Settings
from ps2stream.errors import ConfigError
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.plan import Plan, owners_of_cells


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_workers": 0}, "workers must lie between 1 and 1,024; got 0"),
        ({"n_workers": MAX_WORKERS + 1}, "workers must lie between 1 and 1,024; got 1,025"),
        ({"n_dispatchers": 0}, "dispatchers must lie between 1 and 1,024; got 0"),
        ({"grid_bits": 0}, "grid_bits must lie between 1 and 20; got 0"),
        ({"grid_bits": 21}, "grid_bits must lie between 1 and 20; got 21"),
        ({"max_cells": 0}, "max_cells must lie between 1 and 4,096; got 0"),
        ({"batch_events": 0}, "batch_events must lie between 1 and 100,000,000; got 0"),
        ({"sample_events": -1}, "sample_events must lie between 0 and 100,000,000; got -1"),
        ({"sample_prefix_events": 0}, "sample_prefix_events must lie between 1 and 1,000,000,000; got 0"),
        ({"sample_seed": -1}, "sample_seed must lie between 0 and 4,294,967,295; got -1"),
        ({"partitioner": "magic"}, "partitioner must be one of grid"),
        ({"load": "weight"}, "load must be one of candidates, paper; got 'weight'"),
    ],
)
def test_a_setting_out_of_its_range_is_an_error_that_says_so(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Settings(**options)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_is_fixed_when_it_is_named(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(sample_file=kind("sample.parquet"))
    monkeypatch.chdir("/")
    assert settings.sample_file == tmp_path / "sample.parquet"
    assert replace(settings, n_workers=2).sample_file == settings.sample_file


def test_the_defaults_are_valid() -> None:
    settings = Settings()
    assert partitioner_named(settings.partitioner).name == settings.partitioner


def test_an_unknown_partitioner_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"one of .*grid.*; got 'magic'"):
        partitioner_named("magic")


def test_an_index_gets_its_own_grid_and_counts_in_the_cells_of_the_plan() -> None:
    plan = Plan(1, "grid", 1, Grid.over((0, 0, 1, 1), 2), owners_of_cells(np.zeros(16, np.int32)))
    chosen = Settings(grid_bits=5, max_cells=7).index_settings(plan)
    assert chosen.grid == Grid.over(WORLD, 5)
    assert chosen.counters == plan.grid
    assert chosen.max_cells == 7


def test_stop_words_reach_the_tokenizer() -> None:
    assert Settings(stop_words=("The", "a")).tokenizer().stop_words == {"the", "a"}
