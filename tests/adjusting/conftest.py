"""What tests of the controller share."""

from __future__ import annotations

import pytest

from adjusting.controlled_job import Considering
from ps2stream.adjusting import controller as control


@pytest.fixture
def considering(monkeypatch: pytest.MonkeyPatch) -> Considering:
    stand_in = Considering()
    monkeypatch.setattr(control, "consider", stand_in)
    return stand_in
