"""The job of a campaign: a driver in a process of its own, on the cluster of the environment.

    python job.py WHERE SEED SOURCE ...

Keeps state and sink below WHERE, a URL, and adjusts the load at random by SEED. Writes a line of JSON for
every batch that is finished; when its stdin closes it processes what there is, and ends. Exit code 0;
FENCED if another driver has taken over, 1 for another error, with a line that says which.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engines.spark.faults.feeds import Position
from laws.chaos import Chaos
from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.engines.batch_tally import read_up_to
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.spark.kafka_stream import kafka_stream
from ps2stream.engines.spark.running_stream import RunningStream
from ps2stream.engines.spark.session import cluster_session
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.engines.stream_start import OnBatch, StreamOptions
from ps2stream.errors import FencedError, PS2StreamError
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.roles.reports import WorkerReport
from ps2stream.sources.kafka_range import KafkaRange
from ps2stream.testing.generators import random_events

FENCED = 4
_SETTINGS = Settings(n_workers=6, n_dispatchers=3, batch_events=500)
_SNAPSHOT_EVERY = 400
#: Of the batches, this share is adjusted before.
_ADJUSTED = 0.4

#: Half of the bed's slots: a driver that is paused keeps its executors, and the next one needs some, too.
_CONF = {"spark.cores.max": "6"}

Opened = contextlib.AbstractContextManager[RunningStream]


def of_journal(
    spark: SparkSession, where: str, options: StreamOptions, on_batch: OnBatch, arguments: list[str]
) -> Opened:
    """Open the stream of a journal in a directory."""
    return journal_stream(
        spark,
        Path(arguments[0]),
        f"{where}/state",
        f"{where}/out",
        _SETTINGS,
        on_batch=on_batch,
        controller=options.controller,
        snapshot_every=options.snapshot_every,
    )


def read_of_journal(done: BatchDone) -> Position:
    return {"journal": read_up_to(done)}


def of_topics(
    spark: SparkSession, where: str, options: StreamOptions, on_batch: OnBatch, arguments: list[str]
) -> Opened:
    """Open the stream of a deployment's topics."""
    servers, prefix = arguments
    topics = Topics(Kafka(servers), prefix)
    return kafka_stream(spark, topics, f"{where}/state", _SETTINGS, on_batch=on_batch, options=options)


def read_of_topics(done: BatchDone) -> Position:
    spans = [source.place.span for source in done.sources if isinstance(source, KafkaRange)]
    return {f"{span.topic}/{span.partition}": span.end for span in sorted(spans)}


#: How a stream of a source is opened, and how far a batch of it has read, in the words of ``Feed.position``.
SOURCES: dict[str, tuple[Callable[..., Opened], Callable[[BatchDone], Position]]] = {
    "journal": (of_journal, read_of_journal),
    "kafka": (of_topics, read_of_topics),
}


def tell(**said: Any) -> None:
    """Write a line, whole: a thread of batches tells, too."""
    os.write(1, json.dumps(said).encode() + b"\n")


def run(where: str, seed: int, source: str, arguments: list[str]) -> None:
    opened, position_of = SOURCES[source]

    def on_batch(done: BatchDone) -> None:
        workers = [report for report in done.reports if isinstance(report, WorkerReport)]
        tell(
            batch=done.batch_id,
            upto=position_of(done),
            duration_s=round(done.duration_s, 3),
            hosts={report.worker: report.host for report in workers},
            n_rebuilt=sum(report.rebuild_s > 0 for report in workers),
            n_adjustments=len(done.adjustments),
        )

    closed = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    spark = cluster_session("campaign", os.environ["PS2STREAM_MASTER"], conf=_CONF)
    spark.sparkContext.setLogLevel("WARN")  # what Spark makes of a fault
    chaos = Chaos(seed, one_batch(random_events(200, seed)), share=_ADJUSTED)
    options = StreamOptions(controller=chaos, snapshot_every=_SNAPSHOT_EVERY)
    try:
        with opened(spark, where, options, on_batch, arguments) as stream:
            tell(started=True)
            while not closed.is_set():
                stream.check()
                time.sleep(0.05)
            stream.process_all_available()
    finally:
        with contextlib.suppress(Exception):  # a JVM that was killed cannot be asked to end
            spark.stop()


def main() -> int:
    where, seed, source, *arguments = sys.argv[1:]
    try:
        run(where, int(seed), source, arguments)
    except PS2StreamError as error:
        tell(ended=f"{type(error).__name__}: {error}")
        return FENCED if isinstance(error, FencedError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
