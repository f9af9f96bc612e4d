"""Options of load adjustment become its settings, and say what they are by default."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace

import pytest

from ps2stream.balance.selection import SELECTORS
from ps2stream.balance.settings import SCOPES, AdjustmentSettings
from ps2stream.cli.options.adjustment import (
    SCOPE_NAMES,
    SELECTOR_NAMES,
    add_adjustment_settings,
    adjustment_from,
)
from ps2stream.errors import ConfigError

OPTIONS = {
    "--adjust": "scope",
    "--selector": "selector",
    "--sigma": "sigma",
    "--balance-target": "target",
    "--window": "window",
    "--hot-cells": "hot_cells",
    "--check-every": "check_every",
    "--margin": "margin",
    "--drain-share": "drain_share",
    "--drain-limit": "drain_limit",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_adjustment_settings(parser)
    return parser


def _settings(*words: str) -> AdjustmentSettings:
    return adjustment_from(_parser().parse_args(words))


def test_the_help_names_every_scope_and_selector_and_no_other() -> None:
    assert set(SCOPE_NAMES) == set(SCOPES)
    assert set(SELECTOR_NAMES) == set(SELECTORS)
    helps = {action.option_strings[0]: str(action.help) for action in _parser()._actions}
    assert all(f"{name} (" in helps["--selector"] for name in SELECTORS)
    assert all(name in helps["--adjust"] for name in SCOPES)


def test_every_setting_has_an_option_whose_help_ends_with_its_default() -> None:
    assert set(OPTIONS.values()) == {field.name for field in fields(AdjustmentSettings)}
    helps = {action.option_strings[0]: str(action.help) for action in _parser()._actions}
    for option, name in OPTIONS.items():
        assert helps[option].endswith(f"(default: {getattr(AdjustmentSettings(), name)})")


def test_without_options_the_settings_are_the_defaults() -> None:
    assert _settings() == AdjustmentSettings()


def test_every_option_reaches_its_setting() -> None:
    words = (
        "--adjust local --selector dp --sigma 2.5 --balance-target 1.25 --window 3 --hot-cells 4 "
        "--check-every 5 --margin 0.6 --drain-share 0.7 --drain-limit 8"
    )
    expected = AdjustmentSettings("local", "dp", 2.5, 1.25, 3, 4, 5, 0.6, 0.7, 8)
    assert _settings(*words.split()) == expected


def test_what_is_given_goes_before_what_a_command_would_like() -> None:
    liked = replace(AdjustmentSettings(), window=60_000, sigma=1.3)
    settings = adjustment_from(_parser().parse_args(["--sigma", "2"]), liked)
    assert settings == replace(liked, sigma=2.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--adjust sometimes", "adjust must be one of both, local, global, off; got 'sometimes'"),
        ("--selector best", "selector must be one of"),
        ("--sigma 1.05", "sigma must be above target"),
        ("--sigma nan", "sigma must be above target"),
        ("--window 0", "window must be at least 1; got 0"),
        ("--margin 1", r"margin must lie in \[0, 1\); got 1.0"),
        ("--drain-share nan", r"drain_share must lie in \[0, 1\)"),
        ("--hot-cells -1", "hot_cells must not be negative; got -1"),
    ],
)
def test_a_value_out_of_its_range_is_refused(words: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _settings(*words.split())
