from __future__ import annotations

import pytest

from matching.indexes import tiny_sizes
from ps2stream.matching import index as index_module


@pytest.fixture
def tiny_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let indexes begin with no capacity at all."""
    monkeypatch.setattr(index_module, "initial_sizes", tiny_sizes)
