"""A journal as a Spark stream of its own, for users who want the events themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from laws.engines import JobHome, one_batch
from ps2stream.engines.spark.source import JournalSource
from ps2stream.model.events import in_order
from ps2stream.model.schemas import BEFORE_ALL_SEQS, EVENTS
from ps2stream.testing.generators import random_events


def read_into(spark: SparkSession, job_home: JobHome, name: str, **options: Any) -> pa.Table:
    """Stream what is in the journal into a directory of Parquet files; return all that is there."""
    spark.dataSource.register(JournalSource)
    source = spark.readStream.format("ps2stream_journal").options(**options).load(str(job_home.journal))
    assert source.schema == from_arrow_schema(EVENTS)
    writer = source.writeStream.option("checkpointLocation", str(job_home.directory / f"{name}-checkpoint"))
    query = writer.format("parquet").trigger(availableNow=True).start(str(job_home.directory / name))
    query.awaitTermination()
    return spark.read.parquet(str(job_home.directory / name)).orderBy("seq").toArrow()


@pytest.fixture
def events() -> pa.Table:
    """Events as a journal takes them: in order, each with the columns of its kind only."""
    kept, _, _ = in_order(one_batch(random_events(500, seed=61, invalid_share=0.0)), BEFORE_ALL_SEQS)
    return pa.Table.from_batches([kept])


def test_a_stream_of_events_is_the_journal(spark: SparkSession, job_home: JobHome, events: pa.Table) -> None:
    job_home.publish(events, packet_events=40)
    read = read_into(spark, job_home, "copy", parts=3, batch_events=120)
    assert read.to_pylist() == events.to_pylist()


def test_a_stream_goes_on_after_what_it_has_read(
    spark: SparkSession, job_home: JobHome, events: pa.Table
) -> None:
    job_home.publish(events.slice(0, 200), packet_events=40)
    assert read_into(spark, job_home, "copy").num_rows == 200
    job_home.publish(events, packet_events=40)
    assert read_into(spark, job_home, "copy").to_pylist() == events.to_pylist()
