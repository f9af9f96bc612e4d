"""Start the engine on the topics of a deployment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.engines.spark.running_stream import RunningStream
from ps2stream.engines.spark.stream import feed_stream
from ps2stream.engines.stream_start import OnBatch, StreamOptions
from ps2stream.files import AnyPath
from ps2stream.kafka.topics import Topics
from ps2stream.planning.first_plan import feed_sample
from ps2stream.sinks.kafka import KafkaSink
from ps2stream.sinks.sink import Sink
from ps2stream.sources.kafka_feed import KafkaFeed

_USUAL = StreamOptions()


@contextlib.contextmanager
def kafka_stream(
    spark: SparkSession,
    topics: Topics,
    state: AnyPath,
    settings: Settings,
    *,
    sink: Sink | None = None,
    on_batch: OnBatch = lambda done: None,
    options: StreamOptions = _USUAL,
) -> Iterator[RunningStream]:
    """Run the stream of a deployment's topics while the context lasts; it goes on where it was stopped.

    Topics that are not there are made. Matches and rejected records go to topics, too, as packets of Arrow,
    unless there is another ``sink``. The first plan, if none is given, is made from what the topics hold by
    then.
    """
    topics.create()
    feed = KafkaFeed(topics)
    where = (state, sink or KafkaSink.of(topics))
    with feed_stream(
        spark, feed, where, settings, options, on_batch, lambda: feed_sample(feed, settings)
    ) as stream:
        yield stream
