"""Loads are shares of what an engine can do, and a moderate one has a target to reach."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ps2stream_bench.figure import SCALES, Verdict
from ps2stream_bench.figures.offered_load import ENGINES, FIGURE, MODERATE, _points
from ps2stream_bench.latency import Latency
from ps2stream_bench.plots import save
from ps2stream_bench.results import Row


def row(engine: str, load: int, mean_ms: float, repetition: int = 0, *, kept_up: bool = True) -> Row:
    offered = 1000.0 * load
    latency = Latency(
        mean_ms, mean_ms, mean_ms * 2, mean_ms * 3, mean_ms * 4, mean_ms * 5, mean_ms / 3, mean_ms * 2 / 3,
        offered, offered, kept_up, 1000, 10,
    )  # fmt: skip
    about = {"engine": engine, "load": load, "repetition": repetition, "saturation_tuples_per_s": 100_000.0}
    return {**about, "point_s": 1.0, **latency.row()}


def verdicts(rows: list[Row]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in FIGURE.page(rows).verdicts}


def holding(rows: list[Row]) -> list[bool | None]:
    """Say of the target of each engine whether it is reached."""
    return [verdict.holds for verdict in verdicts(rows).values()]


@pytest.mark.parametrize(
    ("mean_ms", "expected"), [(20.0, [True, True]), (300.0, [False, True]), (900.0, [False, False])]
)
def test_a_moderate_load_is_judged_by_the_target_of_its_engine(mean_ms: float, expected: list[bool]) -> None:
    assert holding([row(engine, MODERATE, mean_ms) for engine in ENGINES]) == expected


def test_the_paper_claims_nothing_about_this_stream() -> None:
    assert not any(verdict.paper for verdict in verdicts([row("inline", MODERATE, 5.0)]).values())


def test_the_median_of_repetitions_decides() -> None:
    def rows(*means: float) -> list[Row]:
        return [row("inline", MODERATE, ms, i) for i, ms in enumerate(means)]

    assert holding(rows(10.0, 900.0, 20.0)) == [True, None]
    assert holding(rows(10.0, 900.0, 30.0)) == [False, None]


def test_other_loads_say_nothing_about_a_moderate_one() -> None:
    assert holding([row("inline", 20, 1.0), row("inline", 120, 5000.0)]) == [None, None]


def test_the_table_has_a_line_for_each_engine_and_load_in_order() -> None:
    rows = [row("microbatch", 50, 700.0), row("inline", 120, 900.0, kept_up=False)]
    rows += [row("inline", 5, 10.0, 1), row("inline", 5, 12.0, 0), row("inline", 120, 900.0, 1)]
    (table,) = FIGURE.page(rows).tables
    cells = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [[line[0].strip("| "), line[1], line[4]] for line in cells] == [
        ["inline", "5", "2 of 2"],
        ["inline", "120", "1 of 2"],
        ["microbatch", "50", "1 of 1"],
    ]
    assert cells[0][5] == "11.0"


def test_a_page_tells_saturation_and_what_a_batch_costs_at_rest() -> None:
    page = FIGURE.page([row("inline", 5, 30.0), row("inline", 80, 300.0), row("microbatch", 50, 900.0)])
    assert "*inline* saturates at 100,000 tuples/s" in page.ours
    assert "a batch takes 20 ms (inline) and 600 ms (microbatch)" in page.differs


@pytest.mark.parametrize("mean_ms", [0.3, 100.0, 700.0])
def test_a_drawing_has_ticks_however_few_the_points(tmp_path: Path, mean_ms: float) -> None:
    one = {name: mean_ms for name in row("inline", 50, 1.0) if name.startswith("latency")}
    (drawing,) = FIGURE.page([{**row("inline", 50, 1.0), **one}]).drawings
    save(drawing, tmp_path / "drawing.png")
    assert (tmp_path / "drawing.png").stat().st_size > 0


def test_every_scale_has_a_moderate_load_for_each_engine() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert [case["engine"] for case in cases] == list(ENGINES)
        assert all(str(MODERATE) in case["loads"].split() for case in cases)


class Steady:
    """An engine of a known speed that remembers what it was given."""

    def __init__(self) -> None:
        self.offered: list[tuple[float, int]] = []
        self.seen: list[int] = []

    def load(self, events: pa.RecordBatch) -> float:
        self.seen += events.column(0).to_pylist()
        return 1000.0

    def latency(self, events: pa.RecordBatch, tuples_per_s: float, *, seed: int) -> Latency:
        self.seen += events.column(0).to_pylist()
        self.offered.append((tuples_per_s, events.num_rows))
        return Latency(1, 1, 1, 1, 1, 1, 0, 1, tuples_per_s, tuples_per_s, True, events.num_rows, 1)


def test_loads_are_shares_of_saturation_on_events_of_their_own() -> None:
    engine = Steady()
    events = pa.record_batch({"number": list(range(10_000))})
    rows = list(_points(engine, events, [10, 50, 120], 2.0, seed=1))
    assert sorted(engine.offered) == [(100.0, 200), (500.0, 1000), (1200.0, 2400)]
    assert engine.seen == list(range(len(engine.seen)))
    assert sorted(each["load"] for each in rows) == [10, 50, 120]
    assert {each["saturation_tuples_per_s"] for each in rows} == {1000.0}


def test_a_fast_engine_gets_shorter_points_rather_than_events_twice() -> None:
    engine = Steady()
    rows = list(_points(engine, pa.record_batch({"number": list(range(1000))}), [50, 120], 2.0, seed=1))
    assert engine.seen == list(range(len(engine.seen)))
    assert rows[0]["point_s"] == pytest.approx(850 / 1700)
    assert len(engine.seen) == pytest.approx(1000, abs=2)
