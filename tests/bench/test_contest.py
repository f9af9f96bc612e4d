"""Partitioners meet on one stream: each gets the same tuples, and what they deliver is compared."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from ps2stream_bench.contest import (
    ALONE_RATE,
    alone_told,
    compared,
    entered,
    limits_told,
    ranges_of,
    sample_of_stream,
    stream_for,
    work_told,
    workload_of,
)
from ps2stream_bench.engines import Stream
from ps2stream_bench.figure import Case, Context
from ps2stream_bench.results import Row

CASE = Case({"country": "uk", "kind": "q3", "live": 300, "corpus": 400, "workers": 3, "dispatchers": 2})


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    context = Context(seed=5)
    yield stream_for(CASE, context, 240)
    context.close()


def test_a_stream_has_the_subscriptions_and_about_the_tuples_of_its_case(stream: Stream) -> None:
    assert stream.n_live == stream.loading.num_rows == 300
    assert stream.mixed.num_rows == 240
    context = Context(seed=5)
    assert workload_of(CASE, context) == "UK-Q3"
    context.close()


def test_a_sample_has_as_many_publications_as_subscriptions(stream: Stream) -> None:
    sample = sample_of_stream(stream, 100, 1)
    assert (sample.n_publications, sample.n_subscriptions, sample.n_live) == (100, 100, 300)


def test_stretches_are_equal_and_follow_each_other() -> None:
    events = pa.RecordBatch.from_pydict({"seq": list(range(11))})
    assert [each["seq"].to_pylist() for each in ranges_of(events, 3)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_contenders_get_the_same_tuples_and_find_the_same_matches(stream: Stream) -> None:
    meters = entered(stream, ("metric", "kd-tree"), CASE)
    assert [len(meter.engine.workers) for meter in meters.values()] == [3, 3]
    rows = list(compared(meters, ranges_of(stream.mixed, 2), 50, seed=1))
    turns = [(row["repetition"], row["partitioner"]) for row in rows]
    assert turns == [(0, "metric"), (0, "kd-tree"), (1, "metric"), (1, "kd-tree")]
    for row in rows:
        assert row["n_events"] == 120
        busiest = max(row["registrar_busy_s"], row["merger_busy_s"])
        assert row[ALONE_RATE] == pytest.approx(120 / busiest)
    found = [sum(row["n_matches"] for row in rows if row["partitioner"] == name) for name in meters]
    assert found[0] == found[1] > 0


def rated(name: str, repetition: int, projected: float, by_workers: float, alone: float) -> Row:
    rates = {"projected_tuples_per_s": projected, "worker_tuples_per_s": by_workers, ALONE_RATE: alone}
    return {"case": "c", "partitioner": name, "repetition": repetition, **rates}


def test_it_is_told_how_often_a_single_role_would_be_the_limit() -> None:
    rows = [rated("a", 0, 100.0, 100.0, 99.0), rated("b", 0, 100.0, 100.0, 101.0)]
    assert "in 1 of 2 lines" in alone_told(rows, ("partitioner",))


def test_it_is_told_how_often_dispatchers_are_the_limit() -> None:
    limits = [("a", "dispatcher"), ("a", "dispatcher"), ("a", "worker"), ("b", "worker")]
    rows = [{"partitioner": name, "limit": limit} for name, limit in limits]
    assert limits_told(rows, ("partitioner",)).startswith("in 1 of 2 lines the busiest dispatcher")


def worked(workload: str, name: str, busy_s: float, balance: float, replication: float) -> Row:
    about = {"workload": workload, "partitioner": name, "workers_busy_s": busy_s}
    return {**about, "busy_max_over_mean": balance, "replication": replication}


def test_plans_are_told_apart_by_work_balance_and_replication() -> None:
    told = work_told(
        [
            worked("US-Q1", "a", 1.0, 1.1, 1.25),
            worked("US-Q1", "b", 1.2, 1.3, 2.0),
            worked("UK-Q1", "a", 3.0, 1.2, 1.25),
            worked("UK-Q1", "b", 2.0, 1.5, 2.5),
        ]
    )
    assert "up to 1.50 times as long as those of the plan with the least (UK-Q1)" in told
    assert "busiest worker to mean: a 1.10 to 1.20, b 1.30 to 1.50" in told
    assert "replication: a 1.25, b 2.00 to 2.50" in told
