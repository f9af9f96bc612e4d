"""Latency counts from when a tuple was due, and every tuple counts once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.testing import oracle
from ps2stream_bench.engines import Stream, loaded, stream_of
from ps2stream_bench.latency import (
    Latency,
    RealClock,
    Timeline,
    VirtualClock,
    arrivals,
    inline_latency,
    open_loop,
    projected_latency,
)
from ps2stream_bench.workloads import corpus_for


def numbered(n: int) -> pa.RecordBatch:
    return pa.record_batch({"number": np.arange(n)})


def offered(
    tuples_per_s: float, seconds: float, service_s: Callable[[int, int], float], max_batch: int = 10_000
) -> Timeline:
    """Offer tuples to an engine that needs ``service_s(first, n)`` for a batch."""
    n = int(tuples_per_s * seconds)

    def process(batch: pa.RecordBatch) -> float:
        return service_s(batch.column(0)[0].as_py(), batch.num_rows)

    return open_loop(process, numbered(n), arrivals(n, tuples_per_s, 1, "even"), VirtualClock(), max_batch)


def test_a_stall_delays_all_who_were_due_meanwhile() -> None:
    timeline = offered(1000, 4, lambda first, n: 1.0 if first == 1000 else 1e-6 * n)
    delayed = timeline.latencies_s() > 0.001
    assert delayed.sum() == pytest.approx(1000, abs=3)
    # They were due evenly during that second, so they waited from all of it to nothing.
    assert np.sort(timeline.latencies_s()[delayed]) == pytest.approx(
        np.linspace(0, 1, delayed.sum()), abs=0.005
    )
    latency = timeline.latency(1000)
    assert latency.p90_ms == pytest.approx(600, abs=5)
    assert latency.max_ms == pytest.approx(1000, abs=2)


@settings(deadline=None)
@given(
    gaps=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=60),
    fixed_s=st.floats(0.001, 0.5),
    each_s=st.floats(0.0, 0.2),
    max_batch=st.integers(1, 20),
)
def test_the_loop_agrees_with_a_queue_that_takes_tuples_one_by_one(
    gaps: list[float], fixed_s: float, each_s: float, max_batch: int
) -> None:
    due = np.cumsum(gaps)
    timeline = open_loop(
        lambda batch: fixed_s + each_s * batch.num_rows, numbered(len(due)), due, VirtualClock(), max_batch
    )
    expected = queued(due.tolist(), fixed_s, each_s, max_batch)
    assert timeline.latencies_s() == pytest.approx(expected)
    latency = timeline.latency(1.0)
    ordered = sorted(expected)
    for share, quantile_ms in ((0.5, latency.p50_ms), (0.9, latency.p90_ms), (0.99, latency.p99_ms)):
        assert quantile_ms / 1000 == pytest.approx(quantile(ordered, share))
    assert latency.mean_ms / 1000 == pytest.approx(sum(expected) / len(expected))
    assert latency.waiting_mean_ms + latency.processing_mean_ms == pytest.approx(latency.mean_ms)


def queued(due: list[float], fixed_s: float, each_s: float, max_batch: int) -> list[float]:
    """Serve a queue in the simplest way; return how long each stayed."""
    stayed: list[float] = []
    now = 0.0
    while len(stayed) < len(due):
        now = max(now, due[len(stayed)])
        served = [when for when in due[len(stayed) :] if when <= now][:max_batch]
        now += fixed_s + each_s * len(served)
        stayed += [now - when for when in served]
    return stayed


def quantile(ordered: list[float], share: float) -> float:
    """Return the least value that is not below a share of all of them."""
    return next(value for i, value in enumerate(ordered, 1) if i / len(ordered) >= share - 1e-12)


@settings(deadline=None)
@given(
    n=st.integers(1, 300),
    max_batch=st.integers(1, 50),
    service_s=st.floats(0.0, 0.05),
    seed=st.integers(0, 9),
)
def test_batches_hold_every_tuple_once_and_none_before_it_is_due(
    n: int, max_batch: int, service_s: float, seed: int
) -> None:
    clock, due, seen = VirtualClock(), arrivals(n, 1000.0, seed), []

    def process(batch: pa.RecordBatch) -> float:
        numbers = batch.column(0).to_pylist()
        assert 1 <= len(numbers) <= max_batch
        assert due[numbers[-1]] <= clock.now()
        seen.extend(numbers)
        return service_s

    latency = open_loop(process, numbered(n), due, clock, max_batch).latency(1000.0)
    assert seen == list(range(n))
    assert latency.n_tuples == n
    assert latency.n_batches >= n / max_batch


@pytest.mark.parametrize("load", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("fixed_s", [0.0, 0.02, 0.5])
def test_an_engine_keeps_up_with_less_than_it_can_do(load: float, fixed_s: float) -> None:
    timeline = offered(200, 20, lambda first, n: fixed_s + load * n / 200)
    assert timeline.latency(200).kept_up


@pytest.mark.parametrize("load", [1.2, 1.5, 3.0])
@pytest.mark.parametrize("max_batch", [1, 50, 100_000])
def test_an_engine_does_not_keep_up_with_more_than_it_can_do(load: float, max_batch: int) -> None:
    timeline = offered(200, 20, lambda first, n: load * n / 200, max_batch)
    latency = timeline.latency(200)
    assert not latency.kept_up
    assert latency.achieved_tuples_per_s == pytest.approx(200 / load, rel=0.02)


def test_a_stall_that_is_caught_up_with_is_no_overload() -> None:
    def service_s(first: int, n: int) -> float:
        return 0.5 if 9000 <= first < 9100 else 0.3 * n / 1000

    assert offered(1000, 20, service_s).kept_up()


def test_an_engine_that_stalls_for_good_at_the_end_has_not_kept_up() -> None:
    assert not offered(1000, 20, lambda first, n: 4.0 if first > 19_500 else 1e-6).kept_up()


def test_a_single_tuple_is_a_stream() -> None:
    latency = open_loop(lambda batch: 0.25, numbered(1), np.array([1.0]), VirtualClock()).latency(1.0)
    assert (latency.p50_ms, latency.p99_9_ms, latency.n_batches) == (250.0, 250.0, 1)
    assert latency.kept_up


def test_poisson_arrivals_meet_their_rate_and_come_by_chance() -> None:
    due = arrivals(20_000, 500.0, 3)
    assert np.all(np.diff(due) >= 0)
    assert due[-1] == pytest.approx(40.0, rel=0.01)
    # The distances of a Poisson process scatter as much as they are long.
    assert np.diff(due).std() == pytest.approx(1 / 500, rel=0.05)
    assert np.array_equal(due, arrivals(20_000, 500.0, 3))
    assert not np.array_equal(due, arrivals(20_000, 500.0, 4))


def test_even_arrivals_have_equal_distances() -> None:
    assert arrivals(4, 2.0, 0, "even").tolist() == [0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize(("n", "tuples_per_s"), [(0, 1.0), (1, 0.0)])
def test_a_schedule_without_tuples_or_rate_is_refused(n: int, tuples_per_s: float) -> None:
    with pytest.raises(ValueError, match="a schedule needs"):
        arrivals(n, tuples_per_s, 0)


def test_the_real_clock_waits_until_a_time() -> None:
    clock = RealClock()
    clock.wait_until(0.02)
    assert clock.now() > 0.015
    clock.wait_until(0.0)  # what is past needs no waiting


def test_a_row_has_a_field_for_every_figure() -> None:
    latency = Latency(1, 2, 3, 4, 5, 6, 0.5, 0.5, 1000, 990, True, 100, 10)
    row = latency.row()
    assert [row[f"latency_{name}_ms"] for name in ("mean", "p50", "p90", "p99", "p99_9", "max")] == [
        1, 2, 3, 4, 5, 6
    ]  # fmt: skip
    assert row["mean_batch_events"] == 10
    assert replace(latency, kept_up=False).row()["kept_up"] is False


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of(corpus_for("us", 400, 3), "q1", 300, 600, 3)


def test_an_inline_engine_delivers_all_matches_to_the_sink(stream: Stream, tmp_path: Path) -> None:
    settings = stream.settings(n_workers=2)
    engine = loaded(stream.plan(settings), settings, stream.loading)
    latency = inline_latency(engine, stream.mixed, 2000.0, tmp_path, max_batch=100)
    expected = oracle.run(pa.Table.from_batches([stream.events]), frozenset(stream.stop_words)).matches
    assert len(expected) > 0
    assert pq.read_table(tmp_path / "matches").num_rows == len(expected)
    assert latency.n_tuples == stream.mixed.num_rows
    assert latency.n_batches >= latency.n_tuples / 100
    assert 0 < latency.p50_ms <= latency.p99_9_ms <= latency.max_ms
    assert latency.achieved_tuples_per_s <= 2000.0 * 1.1


def test_a_cluster_needs_no_longer_than_all_its_roles_on_one_core(stream: Stream) -> None:
    settings = stream.settings(n_workers=4, n_dispatchers=2)
    engine = loaded(stream.plan(settings), settings, stream.loading)
    tally = engine.tally

    def busy_s() -> float:
        workers_s = sum(each.busy_s for each in tally.workers)
        dispatchers_s = sum(each.busy_s for each in tally.dispatchers)
        return workers_s + dispatchers_s + tally.registrar_busy_s + tally.merger_busy_s

    before_s = busy_s()
    latency = projected_latency(engine, stream.mixed, 1e9)
    took_s = latency.n_tuples / latency.achieved_tuples_per_s  # no idle time: all is due at once
    assert 0 < took_s < busy_s() - before_s


def test_events_that_an_engine_would_reject_are_refused(stream: Stream) -> None:
    settings = stream.settings(n_workers=1)
    engine = loaded(stream.plan(settings), settings, stream.loading)
    with pytest.raises(ValueError, match="seqs above 300; the first has 1"):
        inline_latency(engine, stream.loading, 1000.0)
