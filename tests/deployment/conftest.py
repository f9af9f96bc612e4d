"""Homes for tests of deployments: such that have everything in them, and such that have a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream.deployment.home import Home
from ps2stream.deployment.store_note import StoreNote, url_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Name a home that does not exist yet."""
    return Home(tmp_path / "home")


@pytest.fixture(params=["here", "in a directory", "on s3"])
def any_home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Run a test with state and output in every kind of place; no home but that of "here" is empty."""
    home = Home(tmp_path / "home")
    if request.param == "in a directory":
        StoreNote(home.directory).write(url_of(tmp_path / "mounted"))
    elif request.param == "on s3":
        StoreNote(home.directory).write(request.getfixturevalue("s3").store().location())
    return home
