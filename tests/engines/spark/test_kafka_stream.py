"""The micro-batch engine on topics of Kafka finds what the oracle finds in the order that batches gave."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka.produced import batches_of, delivered, ordered_events, produce
from ps2stream.config import Settings
from ps2stream.engines.spark.kafka_stream import kafka_stream
from ps2stream.kafka.topics import Topics
from ps2stream.model.matches import Match
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events


@pytest.mark.parametrize(("n_workers", "n_dispatchers"), [pytest.param(1, 1, marks=pytest.mark.slow), (4, 3)])
def test_every_match_comes_once_whatever_form_events_have(
    spark: SparkSession, topics: Topics, tmp_path: Path, n_workers: int, n_dispatchers: int
) -> None:
    events = random_events(600, seed=n_workers, invalid_share=0.0)
    settings = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers, batch_events=150)
    produce(topics, events.slice(0, 300), seed=1)
    with kafka_stream(spark, topics, tmp_path / "state", settings) as stream:
        stream.process_all_available()
        produce(topics, events.slice(300, 250), seed=2)
        stream.process_all_available()
    produce(topics, events.slice(550), seed=3)
    with kafka_stream(spark, topics, tmp_path / "state", settings) as stream:
        stream.process_all_available()
    ordered = ordered_events(topics)
    assert ordered.num_rows == 600
    assert len(batches_of(topics)) > 3
    expected = oracle.run(ordered)
    assert len(expected.matches) > 100
    found = [Match(**row) for row in delivered(topics, topics.matches)]
    assert sorted(found) == sorted(expected.matches)
    assert len(delivered(topics, topics.rejected)) == len(expected.rejected)
