"""The Spark engines: the only package that imports pyspark.

    job              the tasks of a micro-batch; open it first
    stages           the roles as Spark runs them
    pinned_shuffle   packets to workers that stay on their hosts
    slots            what a cluster has for tasks, before workers are given their hosts
    stream           start the engine on a journal, or on a DataFrame of the user's own
    kafka_stream     start it on topics of Kafka
    query            what runs batches in the background: a loop of ours, or Structured Streaming
    running_stream   a stream that goes on by itself when a process of Spark dies
    source           a journal as a Spark stream, for those who want the events themselves
    dataframes       whether a user's DataFrame is one of events
    replay           an event log through the engine, as fast as it goes
    session          a session on this machine or on a cluster, with settings that suit us
    java, jvm        the Java that Spark needs, and the JVM that it runs in
    daemon           the process that Spark forks its Python processes from
    failures         what Spark says of a failure, in our words

Spark gives a batch its tasks and its shuffle, and a DataFrame of a user's own its batches; what a batch means
is in ``engines/durable_job.py``, ``roles`` and ``state``.
"""

from __future__ import annotations

from ps2stream.extras import require

# Before the modules below import pyspark: its own ImportError would not say what to install.
require("ps2stream.engines.spark", "spark")

from ps2stream.engines.spark.running_stream import RunningStream  # noqa: E402
from ps2stream.engines.spark.session import cluster_session, local_session  # noqa: E402
from ps2stream.engines.spark.source import JournalSource  # noqa: E402
from ps2stream.engines.spark.stream import (  # noqa: E402
    events_stream,
    journal_stream,
    match_events,
    read_matches,
    stream_matches,
)

__all__ = [
    "JournalSource",
    "RunningStream",
    "cluster_session",
    "events_stream",
    "journal_stream",
    "local_session",
    "match_events",
    "read_matches",
    "stream_matches",
]
