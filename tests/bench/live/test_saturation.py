"""An engine is warmed up before its saturation is measured, and no event is used twice."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from ps2stream_bench.live.saturation import saturation_of
from ps2stream_bench.results import Row


@dataclass
class Engine:
    """Remember what it got, and be twice as fast when it is warm."""

    got: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def flood(self, events: pa.RecordBatch) -> Row:
        self.got += events.column("number").to_pylist()
        return {"tuples_per_s": 200.0 if self.rates else 100.0}

    def offer(self, events: pa.RecordBatch, tuples_per_s: float, seed: int) -> Row:
        self.got += events.column("number").to_pylist()
        self.rates.append(tuples_per_s)
        return {}


def test_the_saturation_is_that_of_a_warm_engine() -> None:
    engine, events = Engine(), pa.record_batch({"number": list(range(1000))})
    saturation, rest = saturation_of(engine, events, warm_s=4.0, seed=1)
    assert saturation == 200.0
    assert engine.rates == [pytest.approx(25.0)]
    assert engine.got + rest.column("number").to_pylist() == list(range(1000))


def test_warming_up_leaves_most_events() -> None:
    engine, events = Engine(), pa.record_batch({"number": list(range(1000))})
    _, rest = saturation_of(engine, events, warm_s=1e6, seed=1)
    assert rest.num_rows == 500
