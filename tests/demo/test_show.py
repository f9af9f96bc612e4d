"""The publisher lets the stream drift when it is told to, and only then."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from ps2stream.config import Settings
from ps2stream.demo import show
from ps2stream.demo.show import DemoSettings, Publisher
from ps2stream.demo.workload import BusyArea, Workload
from ps2stream.engines.meter import Meter
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS
from waiting import HANG_S


class Places(Workload):
    """A workload that only counts: how many events and how many shifts were asked for."""

    def __init__(self) -> None:
        self.n_events = self.n_shifts = 0

    def events(self, n: int) -> pa.RecordBatch:
        self.n_events += n
        rows = [{"op": "publish", "id": "p", "lat": 0.0, "lon": 0.0, "text": "x"}] * n
        return pa.RecordBatch.from_pylist(rows, EVENTS)

    def shift(self) -> BusyArea:
        self.n_shifts += 1
        return BusyArea(f"place {self.n_shifts}", 0.0, 0.0, 1.0)


@pytest.mark.parametrize("drift", [True, False])
def test_places_become_busy_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drift: bool
) -> None:
    monkeypatch.setattr(show, "_FIRST_SHIFT_S", 0.02)
    monkeypatch.setattr(show, "_SHIFT_EVERY_S", 0.02)
    monkeypatch.setattr(show, "_PUBLISH_EVERY_S", 0.01)
    workload = Places()
    with Journal.open(tmp_path, create=True, durable=False) as journal:
        demo = DemoSettings(rate=1_000, drift=drift)
        publisher = Publisher(journal, workload, demo, Meter(Settings()))
        publisher.start()
        deadline = time.monotonic() + HANG_S
        while (workload.n_shifts < 2 if drift else workload.n_events < 200) and time.monotonic() < deadline:
            time.sleep(0.01)
        publisher.stop()
    assert publisher.failure is None
    assert workload.n_events > 0
    assert publisher.busy_around == (f"place {workload.n_shifts}" if drift else "")
    assert (workload.n_shifts >= 2) is drift
