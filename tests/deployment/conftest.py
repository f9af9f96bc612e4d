"""A home for tests of deployments."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream.deployment.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Name a home that does not exist yet."""
    return Home(tmp_path / "home")
