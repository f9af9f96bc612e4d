"""An engine is warmed up before its saturation is looked for, and no event is used twice."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from ps2stream_bench.live.saturation import flooded, saturation_of
from ps2stream_bench.results import Row


@dataclass
class Engine:
    """Remember what it got; be twice as fast when it is warm, and keep up with less than a flood."""

    keeps_up_with: float = 130.0
    got: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def flood(self, events: pa.RecordBatch) -> Row:
        self.got += events.column("number").to_pylist()
        return {"tuples_per_s": 200.0 if self.rates else 100.0}

    def offer(self, events: pa.RecordBatch, tuples_per_s: float, seed: int) -> Row:
        self.got += events.column("number").to_pylist()
        self.rates.append(tuples_per_s)
        return {"kept_up": tuples_per_s <= self.keeps_up_with}


def events(n: int = 10_000) -> pa.RecordBatch:
    return pa.record_batch({"number": list(range(n))})


def test_the_saturation_is_the_highest_rate_that_a_warm_engine_keeps_up_with() -> None:
    engine = Engine()
    found = saturation_of(engine, events(), warm_s=4.0, seed=1)
    assert engine.rates == [pytest.approx(rate) for rate in (35.0, 180.0, 150.0, 124.0)]
    assert found.tuples_per_s == pytest.approx(124.0)
    assert found.flood_tuples_per_s == 200.0
    assert engine.got + found.rest.column("number").to_pylist() == list(range(10_000))


def test_an_engine_that_keeps_up_with_nothing_gets_the_lowest_rate() -> None:
    assert saturation_of(Engine(0.0), events(), warm_s=4.0, seed=1).tuples_per_s == pytest.approx(60.0)


def test_looking_for_the_saturation_leaves_events_for_what_is_to_be_measured() -> None:
    found = saturation_of(Engine(0.0), events(1_000), warm_s=1e6, seed=1)
    assert found.rest.num_rows >= 100


def test_a_flood_of_a_warm_engine_leaves_most_events() -> None:
    rate, rest = flooded(Engine(), events(1_000), warm_s=1e6, seed=1)
    assert (rate, rest.num_rows) == (200.0, 700)
