"""Engines that differ in one knob are loaded and measured as they should be."""

from __future__ import annotations

from contextlib import closing
from functools import cache

import pytest

from ps2stream_bench.figure import Case, Context
from ps2stream_bench.figures import cost
from ps2stream_bench.metrics import where
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import Corpus, Shape, corpus_for

CASE = Case({"country": "us", "kind": "q1", "n_live": 400, "n_publications": 100, "n_repetitions": 2})


@cache
def corpus() -> Corpus:
    return corpus_for("us", 2_000, 1)


@cache
def compared() -> list[Row]:
    wide = Shape(side_km=(500.0, 500.0))
    contenders = {
        8: cost.contender(CASE, corpus(), wide),
        4: cost.contender(CASE, corpus(), wide, grid_bits=4),
    }
    with closing(Context(1)) as context:
        return list(cost.compare(CASE, context, "bits", contenders, alike=True))


def test_every_value_has_a_row_of_its_loading_and_one_of_each_repetition() -> None:
    rows = compared()
    told = sorted((row["bits"], row["phase"], row["repetition"]) for row in rows)
    assert told == [(bits, phase, n) for bits in (4, 8) for phase, n in [("load", 0), ("run", 0), ("run", 1)]]


def test_as_many_subscriptions_are_loaded_as_the_case_says_and_stay_as_many() -> None:
    rows = compared()
    assert {row["n_loaded"] for row in where(rows, phase="load")} == {400}
    assert all(abs(row["n_live"] - 400) <= 1 for row in where(rows, phase="run"))


def test_work_is_counted_for_each_publication() -> None:
    for row in where(compared(), phase="run"):
        assert row["n_publications"] == pytest.approx(100, abs=2)
        assert row["cost_us"] == pytest.approx(row["cpu_s"] * 1e6 / row["n_publications"])
        assert row["candidates_per_publication"] >= row["matches_per_publication"] > 0
        assert row["lists_per_publication"] > 0


def test_engines_that_must_be_alike_and_are_not_are_refused() -> None:
    contenders = {side: cost.contender(CASE, corpus(), Shape(side_km=(side, side))) for side in (1.0, 900.0)}
    with closing(Context(1)) as context, pytest.raises(ValueError, match="must deliver the same matches"):
        list(cost.compare(CASE, context, "side", contenders, alike=True))


def test_chunks_are_numbered_on_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_CHUNK", 40)
    chunks = list(cost.chunks_of(cost.Group(100), corpus(), "q2", 11, seed=1))
    assert [chunk.num_rows for chunk in chunks] == [40, 40, 20]
    assert [seq for chunk in chunks for seq in chunk["seq"].to_pylist()] == list(range(11, 111))
    assert len({name for chunk in chunks for name in chunk["id"].to_pylist()}) == 100
    assert chunks[0]["expression"].to_pylist() != chunks[1]["expression"].to_pylist()


def test_a_group_may_draw_from_a_corpus_of_its_own() -> None:
    other = corpus_for("uk", 200, 1)
    group = cost.Group(10, Shape(), other)
    each = cost.Contender(corpus(), "q1", (group,), cost.Group(10))
    stream = cost._stream(each, 20, seed=1)
    first, *_ = cost._loading(each, stream, seed=1)
    assert max(first["min_lon"].to_pylist()) > -20.0 > max(stream.loading["min_lon"].to_pylist())


@pytest.mark.parametrize("scale", ["tiny", "small", "paper"])
def test_every_scale_has_a_case_of_q1_and_of_q2(scale: str) -> None:
    assert [case["kind"] for case in cost.cases(scale)] == ["q1", "q2"]  # type: ignore[arg-type]
