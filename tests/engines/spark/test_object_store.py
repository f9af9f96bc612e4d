"""A micro-batch job whose state and sink are on an object store delivers what one on files does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from engines.streams import SETTINGS, batches_of, plan_for, random_stream
from ps2stream.engines.spark.job import MicroBatchJob
from ps2stream.errors import FencedError
from ps2stream.model.matches import Match
from ps2stream.model.schemas import MATCHES
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.host_files import HostFiles
from ps2stream.state.lease import Lease
from ps2stream.state.state import State
from ps2stream.testing.oracle import run
from s3_server import S3Server


@pytest.fixture
def spark_on_s3(spark: SparkSession, s3: S3Server) -> Iterator[SparkSession]:
    """Let tasks have the credentials that the driver has: a cluster's own settings do that elsewhere."""
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update(s3.environment)
    yield spark
    environment.clear()
    environment.update(before)


def matches_in(sink: ParquetSink) -> list[Match]:
    files = [pq.read_table(pa.BufferReader(sink.matches.get(key))) for key in sink.matches.list()]
    table = pa.concat_tables([MATCHES.empty_table(), *files])
    return sorted(Match(**row) for row in table.to_pylist())


def started(spark: SparkSession, state: State, sink: ParquetSink) -> MicroBatchJob:
    job = MicroBatchJob(spark, state.open(SETTINGS), SETTINGS, sink, snapshot_every=60)
    job.start()
    return job


def test_a_job_on_an_object_store_that_is_taken_over_delivers_each_match_once(
    spark_on_s3: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    spark, events, store = spark_on_s3, random_stream(600, 5), s3.store()
    batches = [spark.createDataFrame(pa.table(batch)) for batch in batches_of(events, 100)]
    sink = ParquetSink.at(store.under("out").location())
    with Lease(store, "first").held() as lease:
        state = State(store, HostFiles(tmp_path / "first")).taken_over(lease)
        old = started(spark, state.create(plan_for(events), SETTINGS), sink)
        for batch_id in range(3):
            old.process_events(batches[batch_id], batch_id)
    with Lease(store, "second").held() as lease:
        state = State(store, HostFiles(tmp_path / "second")).taken_over(lease)
        new = started(spark, state, sink)
        new.process_events(batches[2], 2)  # Spark had not noted it as done
        before = matches_in(sink)
        with pytest.raises(FencedError):
            old.process_events(batches[3], 3)
        assert matches_in(sink) == before
        for batch_id in range(3, 6):
            new.process_events(batches[batch_id], batch_id)
        assert state.log.base() >= 0, "a snapshot was taken on the way"
    sink.finish()
    assert matches_in(sink) == sorted(run(events).matches)
    assert len(before) > 20
