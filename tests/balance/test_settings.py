"""What a user may choose about load adjustment."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ps2stream.balance.selection import SELECTORS
from ps2stream.balance.settings import SCOPES, AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.errors import ConfigError


def test_the_defaults_are_valid_and_leave_room_between_beginning_and_end() -> None:
    settings = AdjustmentSettings()
    assert 1.0 <= settings.target < settings.sigma
    assert settings.selector == "gr"
    assert Settings().adjustment == settings


@pytest.mark.parametrize(
    ("scope", "is_local", "is_global"),
    [("both", True, True), ("local", True, False), ("global", False, True), ("off", False, False)],
)
def test_a_scope_says_what_is_adjusted(scope: Any, is_local: bool, is_global: bool) -> None:
    settings = AdjustmentSettings(scope=scope)
    assert (settings.is_local, settings.is_global) == (is_local, is_global)
    assert scope in SCOPES


@pytest.mark.parametrize("selector", SELECTORS)
def test_every_selector_can_be_chosen(selector: str) -> None:
    assert AdjustmentSettings(selector=selector).selector == selector


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scope": "some"}, "adjust must be one of both, local, global, off; got 'some'"),
        ({"selector": "xy"}, "selector must be one of dp, gr, si, ra; got 'xy'"),
        ({"sigma": 1.1, "target": 1.1}, "sigma must be above target"),
        ({"target": 0.99}, "target at least 1"),
        ({"sigma": math.nan}, "sigma must be above target"),
        ({"target": math.nan}, "sigma must be above target"),
        ({"window": 0}, "window must be at least 1; got 0"),
        ({"check_every": 0}, "check_every must be at least 1; got 0"),
        ({"drain_limit": -1000}, "drain_limit must be at least 1; got -1,000"),
        ({"hot_cells": -1}, "hot_cells must not be negative; got -1"),
        ({"margin": 1.0}, r"margin must lie in \[0, 1\); got 1.0"),
        ({"margin": -0.1}, r"margin must lie in \[0, 1\); got -0.1"),
        ({"drain_share": math.nan}, r"drain_share must lie in \[0, 1\); got nan"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AdjustmentSettings(**changed)


@pytest.mark.parametrize(
    "changed",
    [{"target": 1.0}, {"hot_cells": 0}, {"margin": 0.0}, {"drain_share": 0.0}, {"window": 1}],
)
def test_what_lies_on_the_edge_is_allowed(changed: dict[str, Any]) -> None:
    for name, value in changed.items():
        assert getattr(AdjustmentSettings(**changed), name) == value
