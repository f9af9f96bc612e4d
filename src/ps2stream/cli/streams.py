"""The stream of a deployment, started by the engine that was chosen, while somebody looks after signals."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ps2stream.cli.interrupts import AbruptInterrupts
from ps2stream.cli.options.cluster import conf_from, master_from
from ps2stream.cli.options.delivery import EXACTLY_ONCE
from ps2stream.cli.options.engine import INLINE, REALTIME
from ps2stream.deployment.home import Home

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ps2stream.config import Settings
    from ps2stream.engines.live_stream import LiveStream
    from ps2stream.engines.meter import Meter
    from ps2stream.engines.stream_start import StreamOptions
    from ps2stream.metrics.board import Board
    from ps2stream.partitioning.plan import Plan


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run: the stream of a home, as the options say; its batches go to a meter."""

    home: Home
    settings: Settings
    plan: Plan | None
    arguments: argparse.Namespace
    meter: Meter
    board: Board

    @property
    def options(self) -> StreamOptions:
        from ps2stream.engines.stream_start import StreamOptions

        return StreamOptions(self.plan, self.arguments.interval, self.arguments.prune)


def running_stream(
    job: Job, interrupts: AbruptInterrupts, spark_log: Path
) -> AbstractContextManager[LiveStream]:
    """Run a stream while the context lasts."""
    if job.arguments.engine == INLINE:
        return _inline(job)
    if job.arguments.engine == REALTIME:
        return _realtime(job, interrupts, spark_log)
    return _on_spark(job, interrupts, spark_log)


@contextlib.contextmanager
def _inline(job: Job) -> Iterator[LiveStream]:
    from ps2stream.cli.render.compilation import load_kernels
    from ps2stream.engines.embedded import embedded_stream

    load_kernels()
    home = job.home
    with embedded_stream(
        home.journal, home.state, home.out, job.settings, on_batch=job.meter.add, options=job.options
    ) as stream:
        yield stream


@contextlib.contextmanager
def _on_spark(job: Job, interrupts: AbruptInterrupts, spark_log: Path) -> Iterator[LiveStream]:
    from ps2stream.cli.render.compilation import load_kernels
    from ps2stream.engines.spark.jvm import end_jvm
    from ps2stream.engines.spark.session import own_session

    with (
        interrupts.tidied_by(end_jvm),
        own_session(
            "ps2stream run",
            log=spark_log,
            master=master_from(job.arguments),
            conf=conf_from(job.arguments),
            meanwhile=load_kernels,
        ) as spark,
        _of_feed(job, spark) as stream,
    ):
        yield stream


@contextlib.contextmanager
def _realtime(job: Job, interrupts: AbruptInterrupts, spark_log: Path) -> Iterator[LiveStream]:
    from ps2stream.cli.render.compilation import load_kernels
    from ps2stream.engines.spark.jvm import end_jvm
    from ps2stream.engines.spark.realtime import RealtimeOptions, realtime_conf, realtime_stream
    from ps2stream.engines.spark.session import own_session
    from ps2stream.planning.first_plan import feed_sample, plan_of
    from ps2stream.sources.kafka_feed import KafkaFeed

    topics, settings, master = job.home.topics, job.settings, master_from(job.arguments)
    assert topics is not None  # check_realtime
    options = RealtimeOptions(
        lambda: job.plan or plan_of(feed_sample(KafkaFeed(topics), settings), settings),
        match_format=job.arguments.match_format,
        is_exact=job.arguments.delivery == EXACTLY_ONCE,
        board=job.board,
    )
    conf = {**realtime_conf(settings, on_cluster=master is not None), **conf_from(job.arguments)}
    with (
        interrupts.tidied_by(end_jvm),
        own_session(
            "ps2stream run", log=spark_log, master=master, conf=conf, meanwhile=load_kernels
        ) as spark,
        realtime_stream(spark, topics, job.home.state, settings, options) as stream,
    ):
        yield stream


def _of_feed(job: Job, spark: SparkSession) -> AbstractContextManager[LiveStream]:
    """Start the stream of a journal, or of topics."""
    home, options = job.home, job.options
    if home.topics is None:
        from ps2stream.engines.spark.stream import journal_stream

        return journal_stream(
            spark,
            home.journal,
            home.state,
            home.out,
            job.settings,
            plan=options.plan,
            on_batch=job.meter.add,
            interval_s=options.interval_s,
            prune=options.prune,
        )
    from ps2stream.engines.spark.kafka_stream import kafka_stream
    from ps2stream.sinks.kafka import KafkaSink

    sink = KafkaSink.of(home.topics, job.arguments.match_format)
    return kafka_stream(
        spark, home.topics, home.state, job.settings, sink=sink, on_batch=job.meter.add, options=options
    )
