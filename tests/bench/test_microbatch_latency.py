"""Every event that was fed to a running stream gets the time of the batch it was in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ps2stream.errors import EngineError
from ps2stream.testing import oracle
from ps2stream_bench.engines import stream_of
from ps2stream_bench.microbatch_latency import live_stream
from ps2stream_bench.workloads import corpus_for


def test_a_journal_fed_by_schedule_gives_every_event_its_latency(spark: SparkSession, tmp_path: Path) -> None:
    stream = stream_of(corpus_for("us", 400, 3), "q1", 300, 600, 3)
    settings = stream.settings(n_workers=2)
    with live_stream(spark, tmp_path, stream.plan(settings), settings, stream.loading) as live:
        latency = live.latency(stream.mixed.slice(0, 500), 1000.0)
        rate = live.load(stream.mixed.slice(500))
    assert latency.n_tuples == 500
    assert 1 <= latency.n_batches <= 500
    assert 0 < latency.processing_mean_ms < latency.mean_ms
    assert latency.waiting_mean_ms > 0
    assert latency.p50_ms <= latency.max_ms
    assert rate > 0
    events = pa.Table.from_batches([stream.events])
    expected = oracle.run(events, frozenset(stream.stop_words)).matches
    assert pq.read_table(tmp_path / "out" / "matches").num_rows == len(expected) > 0


def test_a_stream_that_fails_is_told(spark: SparkSession, tmp_path: Path) -> None:
    stream = stream_of(corpus_for("us", 400, 3), "q1", 300, 600, 3)
    settings = stream.settings(n_workers=2)
    with live_stream(spark, tmp_path, stream.plan(settings), settings, stream.loading) as live:
        shutil.rmtree(tmp_path / "state" / "plans")
        with pytest.raises(EngineError, match=r"plan .* cannot be read"):
            live.latency(stream.mixed.slice(0, 10), 1000.0)
