"""Events and journals for the tests of the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS

MakeEvents = Callable[..., pa.RecordBatch]


@pytest.fixture
def make_events() -> MakeEvents:
    """Make ``n`` events with ids ``prefix0, prefix1, ...``: every third one a subscribe."""

    def make(n: int, prefix: str = "e", text: str = "fire at the harbour") -> pa.RecordBatch:
        rows: list[dict[str, Any]] = []
        for number in range(n):
            event_id = f"{prefix}{number}"
            if number % 3 == 2:
                region = {"min_lon": -1.0, "min_lat": -2.0, "max_lon": 3.0, "max_lat": 4.0}
                rows.append({"op": "subscribe", "id": event_id, "expression": "fire OR flood", **region})
            else:
                rows.append({"op": "publish", "id": event_id, "lat": 1.5, "lon": float(number), "text": text})
        return pa.RecordBatch.from_pylist(rows, schema=EVENTS)

    return make


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Open a new journal, not durable because no test cuts the power."""
    with Journal.open(tmp_path / "journal", create=True, durable=False) as opened:
        yield opened
