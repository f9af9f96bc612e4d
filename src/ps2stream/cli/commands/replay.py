"""``ps2stream replay``: run an ordered event log through the whole pipeline."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ps2stream.cli.interrupts import abrupt_interrupts
from ps2stream.cli.options.cluster import add_cluster, cluster_from, conf_from
from ps2stream.cli.options.engine import INLINE, MICROBATCH, REALTIME, add_engine
from ps2stream.cli.options.kafka import add_kafka, needed_kafka
from ps2stream.cli.options.output_file import check_target
from ps2stream.cli.options.settings import add_plan_file, add_settings, settings_and_plan
from ps2stream.cli.spark_log import spark_log
from ps2stream.extras import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ps2stream.config import Settings
    from ps2stream.engines.replay import Replayed
    from ps2stream.engines.spark.replay import ReplayFiles
    from ps2stream.engines.tally import Tally
    from ps2stream.files import AnyPath
    from ps2stream.kafka.client import Kafka
    from ps2stream.partitioning.plan import Plan
    from ps2stream.sources.event_log import EventLog

_DESCRIPTION = """\
Run an ordered event log through the whole pipeline, as fast as it goes.

EVENTS is a Parquet file, or a directory of them, with the columns
  seq int64, op string (publish, subscribe or unsubscribe), id string,
  lat, lon double, text string                       for publish
  expression string, min_lon, min_lat, max_lon, max_lat double   for subscribe
(null where an op has no use for a column; other columns are ignored).

DIR receives
  matches/   subscription_id, subscription_seq, publication_id, publication_seq
  rejected/  seq, op, id, reason
as Parquet; files of an earlier replay there are replaced. A replay that is stopped (Ctrl-C) leaves them
incomplete and writes no report.

With --engine realtime resident roles match it, with topics of Kafka between them (--kafka) that are gone
afterwards. Every publication is matched as of its seq, so the result is the same.

On a cluster (--master) the hosts share nothing but a store (--store); credentials are taken from the
environment of every host, as everywhere (AWS_ACCESS_KEY_ID and so on). A local DIR gets the files at the end.
"""

_EPILOG = """\
examples:
  ps2stream replay events.parquet --out result --report report.json
  ps2stream replay events/ --out result --report - --engine microbatch --workers 8
  ps2stream replay events.parquet --out result --report - --adjust off
  ps2stream replay events.parquet --out result --report - --plan plan.npz
  ps2stream replay events.parquet --out result --report - --engine realtime --kafka broker:9092
  ps2stream replay events.parquet --out result --report - --master spark://host:7077 --store s3://bucket/ps2
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="run an event log through the whole pipeline, as fast as it goes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("events", metavar="EVENTS", type=Path, help="Parquet file or directory")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=_out,
        required=True,
        help="where matches/ and rejected/ go: a directory, or a URL such as s3://bucket/result",
    )
    parser.add_argument(
        "--report", metavar="FILE.json", required=True, help="where the figures of the run go; - prints them"
    )
    add_engine(parser, MICROBATCH, (INLINE, MICROBATCH, REALTIME))
    add_kafka(parser)
    add_cluster(parser)
    add_plan_file(parser)
    add_settings(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import time

    if arguments.engine != INLINE:
        require(f"ps2stream replay --engine {arguments.engine}", "spark")
    kafka = needed_kafka(arguments) if arguments.engine == REALTIME else None
    from ps2stream.cli.render.compilation import load_kernels
    from ps2stream.cli.render.progress import open_progress
    from ps2stream.sinks.parquet import ParquetSink
    from ps2stream.sources.event_log import EventLog

    settings, plan = settings_and_plan(arguments)
    master, store = cluster_from(arguments) if arguments.engine != INLINE else (None, None)
    started = time.monotonic()
    if arguments.report != "-":
        check_target("the report", Path(arguments.report))
    events = EventLog(arguments.events)
    ParquetSink.at(arguments.out).clear()
    load_kernels(quiet=arguments.quiet)
    with open_progress("replaying", events.n_events, quiet=arguments.quiet) as advance:

        def on_progress(tally: Tally) -> None:
            advance(tally.n_events, f"{tally.n_matches:,} matches")

        if arguments.engine == INLINE:
            from ps2stream.engines.replay import replay_inline

            replayed = replay_inline(events, arguments.out, settings, on_progress, plan)
        else:
            conf = conf_from(arguments)
            if kafka is not None:
                from ps2stream.engines.spark.realtime import realtime_conf

                conf = {**realtime_conf(settings, on_cluster=master is not None), **conf}
            with _session(arguments.out, master, store, conf) as (spark, where):
                replay = _microbatch if kafka is None else _realtime(kafka)
                replayed = replay(spark, events, where, settings, on_progress, plan)
        # Events that came too late are done with, too.
        advance(events.n_events, f"{replayed.tally.n_matches:,} matches")
    report = {
        "engine": arguments.engine,
        "partitioner": settings.partitioner,
        "n_workers": settings.n_workers,
        "n_dispatchers": settings.n_dispatchers,
        "batch_events": settings.batch_events,
        **replayed.tally.report(replayed.wall_s),
        "loads": replayed.loads,
        "total_s": time.monotonic() - started,
    }
    text = json.dumps(report, indent=2)
    if arguments.report == "-":
        print(text)
    else:
        Path(arguments.report).write_text(text + "\n")
    return 0


def _out(name: str) -> AnyPath:
    """Take a URL as it is, all else as a path."""
    from ps2stream.store.urls import is_url

    return name if is_url(name) else Path(name)


def _microbatch(spark: SparkSession, *about: Any) -> Replayed:
    from ps2stream.engines.spark.replay import replay_microbatch

    return replay_microbatch(spark, *about)


def _realtime(kafka: Kafka) -> Callable[..., Replayed]:
    """Return a replay by topics that are gone afterwards."""

    def replay(
        spark: SparkSession,
        events: EventLog,
        where: ReplayFiles,
        settings: Settings,
        on_progress: Callable[[Tally], None],
        plan: Plan | None,
    ) -> Replayed:
        from ps2stream.engines.spark.realtime_replay import replay_realtime, replay_topics

        with replay_topics(kafka, settings) as topics:
            places = topics, where.state, where.out
            return replay_realtime(spark, events, places, settings, on_progress, plan)

    return replay


@contextlib.contextmanager
def _session(
    out: AnyPath, master: str | None, store: str | None, conf: dict[str, str]
) -> Iterator[tuple[SparkSession, ReplayFiles]]:
    """Lend a session of Spark, on this machine or on a cluster, and where a replay has its files."""
    from ps2stream.engines.spark.jvm import end_jvm
    from ps2stream.engines.spark.replay import ReplayFiles, shared_files
    from ps2stream.engines.spark.session import own_session

    with (
        abrupt_interrupts() as interrupts,
        spark_log(interrupts) as log,
        tempfile.TemporaryDirectory(prefix="ps2stream-replay-") as scratch,
        interrupts.tidied_by(lambda: shutil.rmtree(scratch, ignore_errors=True)),
        interrupts.tidied_by(end_jvm),
        own_session("ps2stream replay", log=log, master=master, conf=conf) as spark,
        contextlib.nullcontext(ReplayFiles.below(Path(scratch), out))
        if store is None
        else shared_files(Path(scratch), store, out) as where,
    ):
        yield spark, where
